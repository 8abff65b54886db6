//! Builds the tree from the YAML parser's events, with a budget that aliases draw on too. No recursion.

use super::*;

pub(super) struct Builder {
    file: Arc<str>,
    stack: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    bytes: usize,
}

/// A list or mapping that has not ended yet.
struct Open {
    place: Place,
    tag: Option<Tag>,
    anchor: usize,
    value: OpenValue,
}

enum OpenValue {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<Entry>,
        merged: Vec<Entry>,
        lines: HashMap<String, usize>,
        key: Option<(String, Place, bool)>,
    },
}

impl Builder {
    pub(super) fn new(file: Arc<str>) -> Self {
        Self {
            file,
            stack: Vec::new(),
            root: None,
            documents: 0,
            anchors: HashMap::new(),
            nodes: 0,
            bytes: 0,
        }
    }

    pub(super) fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), LoadError> {
        let place =
            Place { file: Arc::clone(&self.file), line: span.start.line(), column: span.start.col() + 1 };
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let sentence = "a second document begins here, and a Compose file has one";
                    return Err(LoadError::syntax(place, sentence).advise("put it into a file of its own"));
                }
                Ok(())
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err(LoadError::syntax(place, "this alias stands inside of what it names"));
                };
                self.charge_tree(&node, &place)?;
                self.place_node(node, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let (tag, kind) = read_tag(tag.as_deref(), &place)?;
                self.charge(text.len(), &place)?;
                let scalar = match (style, kind) {
                    (ScalarStyle::Plain, None) => Scalar::plain(&text),
                    (_, Some("int" | "float" | "bool" | "null")) => Scalar::plain(&text),
                    (_, _) => Scalar::text(text),
                };
                self.place_node(Node { place, tag, value: Value::Scalar(scalar) }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(place, tag.as_deref(), anchor, OpenValue::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let value = OpenValue::Mapping {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    lines: HashMap::new(),
                    key: None,
                };
                self.open(place, tag.as_deref(), anchor, value)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
        }
    }

    pub(super) fn finish(self) -> Result<Option<Node>, LoadError> {
        match self.stack.last() {
            None => Ok(self.root),
            Some(open) => Err(LoadError::syntax(open.place.clone(), "this never ends")),
        }
    }

    fn open(
        &mut self,
        place: Place,
        tag: Option<&RawTag>,
        anchor: usize,
        value: OpenValue,
    ) -> Result<(), LoadError> {
        let (tag, _) = read_tag(tag, &place)?;
        self.charge(0, &place)?;
        if self.stack.len() >= DEEPEST {
            return Err(LoadError::syntax(place, format!("nested deeper than {DEEPEST} levels")));
        }
        if let Some(Open { value: OpenValue::Mapping { key: None, .. }, .. }) = self.stack.last() {
            return Err(LoadError::syntax(place, "a key must be text, and this is a list or a mapping"));
        }
        self.stack.push(Open { place, tag, anchor, value });
        Ok(())
    }

    fn close(&mut self) -> Result<(), LoadError> {
        let Some(open) = self.stack.pop() else { return Ok(()) };
        let value = match open.value {
            OpenValue::Sequence(items) => Value::Sequence(items),
            OpenValue::Mapping { mut entries, merged, lines, .. } => {
                for entry in merged {
                    if !lines.contains_key(&entry.key) {
                        entries.push(entry);
                    }
                }
                Value::Mapping(entries)
            }
        };
        self.place_node(Node { place: open.place, tag: open.tag, value }, open.anchor)
    }

    /// Puts a finished node where it belongs: under the open key, into the open list, or at the root.
    fn place_node(&mut self, node: Node, anchor: usize) -> Result<(), LoadError> {
        if anchor > 0 {
            let place = node.place.clone();
            self.charge_tree(&node, &place)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.value {
            OpenValue::Sequence(items) => items.push(node),
            OpenValue::Mapping { entries, merged, lines, key } => match key.take() {
                None => *key = Some(as_key(node)?),
                Some((_, _, true)) => merge_key(node, merged)?,
                Some((name, place, false)) => {
                    if let Some(first) = lines.insert(name.clone(), place.line) {
                        let sentence =
                            format!("the key `{}` stands here again, first on line {first}", shown(&name));
                        return Err(LoadError::syntax(place, sentence));
                    }
                    entries.push(Entry { key: name, place, node });
                }
            },
        }
        Ok(())
    }

    fn charge_tree(&mut self, node: &Node, place: &Place) -> Result<(), LoadError> {
        match &node.value {
            Value::Scalar(scalar) => self.charge(scalar.text.len(), place),
            Value::Sequence(items) => {
                self.charge(0, place)?;
                items.iter().try_for_each(|item| self.charge_tree(item, place))
            }
            Value::Mapping(entries) => {
                self.charge(0, place)?;
                entries.iter().try_for_each(|entry| {
                    self.charge(entry.key.len(), place)?;
                    self.charge_tree(&entry.node, place)
                })
            }
        }
    }

    fn charge(&mut self, bytes: usize, place: &Place) -> Result<(), LoadError> {
        self.nodes += 1;
        self.bytes += bytes;
        if self.nodes > MOST_NODES || self.bytes > MOST_BYTES {
            let sentence = format!(
                "with its aliases written out the file has more than {MOST_NODES} values or {MOST_BYTES} bytes"
            );
            return Err(LoadError::syntax(place.clone(), sentence));
        }
        Ok(())
    }
}

/// The key, its place, and whether it is the merge key `<<`.
fn as_key(node: Node) -> Result<(String, Place, bool), LoadError> {
    match (node.tag, node.value) {
        (None, Value::Scalar(Scalar { text, kind: Kind::Text })) => {
            let merges = text == "<<";
            Ok((text, node.place, merges))
        }
        (Some(_), _) => Err(LoadError::syntax(node.place, "a tag belongs to a value, not to a key")),
        (None, Value::Scalar(scalar)) => {
            let sentence =
                format!("a key must be text, and `{}` is {}", shown(&scalar.text), scalar.kind.noun());
            Err(LoadError::syntax(node.place, sentence).advise("put the key into quotes"))
        }
        (None, _) => Err(LoadError::syntax(node.place, "a key must be text")),
    }
}

/// `<<: *defaults` or `<<: [*a, *b]`: what stands first wins, and the mapping's own keys win over all.
fn merge_key(node: Node, merged: &mut Vec<Entry>) -> Result<(), LoadError> {
    let sources = match node.value {
        Value::Sequence(items) => items,
        value => vec![Node { value, ..node }],
    };
    for source in sources {
        let Value::Mapping(entries) = source.value else {
            return Err(LoadError::syntax(
                source.place,
                "`<<` takes a mapping, an alias of one, or a list of them",
            ));
        };
        for entry in entries {
            if !merged.iter().any(|known| known.key == entry.key) {
                merged.push(entry);
            }
        }
    }
    Ok(())
}

/// Compose's tag, and the name of a YAML type.
fn read_tag<'t>(tag: Option<&'t RawTag>, place: &Place) -> Result<(Option<Tag>, Option<&'t str>), LoadError> {
    let Some(tag) = tag else { return Ok((None, None)) };
    let suffix = tag.suffix.as_str();
    if tag.is_yaml_core_schema()
        && matches!(suffix, "str" | "int" | "float" | "bool" | "null" | "map" | "seq")
    {
        return Ok((None, Some(suffix)));
    }
    match (tag.handle.as_str(), suffix) {
        ("!", "reset") => Ok((Some(Tag::Reset), None)),
        ("!", "override") => Ok((Some(Tag::Override), None)),
        ("" | "!", "" | "!") => Ok((None, Some("str"))),
        _ => Err(LoadError::syntax(
            place.clone(),
            format!("the tag `{}` is not known here", shown(&tag.to_string())),
        )
        .advise("Compose has `!reset` and `!override`")),
    }
}
