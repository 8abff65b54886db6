//! Words that a scripted model picks up on its way: what a tool result said as `::name=value` on a line of its own
//! stands for `{{name}}` in the texts and inputs of later turns, as a model writes down what it has read.

use std::collections::BTreeMap;

use serde_json::Value;

use super::script::Turn;

/// How many are kept, and how long a name and what it stands for may be, in bytes. Anything else is not picked up.
const MOST: usize = 512;
const LONGEST_NAME: usize = 64;
const LONGEST_VALUE: usize = 4096;
/// How much of them is written into one turn, in bytes. A gap that does not fit stays as it is written.
const MOST_FILLED: usize = 256 * 1024;

/// What was said, the last of each name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Words(BTreeMap<String, String>);

impl Words {
    /// Picks up what a text says.
    pub(super) fn note(&mut self, text: &str) {
        let lines = text.lines().filter_map(|line| line.strip_prefix("::")?.trim_end().split_once('='));
        for (name, value) in lines {
            self.put(name, value);
        }
    }
    /// Picks up what was said later.
    pub(super) fn extend(&mut self, later: Self) {
        if self.0.is_empty() {
            *self = later;
            return;
        }
        later.0.iter().for_each(|(name, value)| self.put(name, value));
    }
    fn put(&mut self, name: &str, value: &str) {
        if name.len() > LONGEST_NAME || value.len() > LONGEST_VALUE {
            return;
        }
        if let Some(kept) = self.0.get_mut(name) {
            value.clone_into(kept);
        } else if self.0.len() < MOST {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Fills the gaps of a turn. What nobody said stays as it is written, and what is filled in is not looked at again.
    pub(super) fn fill(&self, turn: &mut Turn) {
        let mut room = MOST_FILLED;
        if let Some(text) = &mut turn.text {
            self.fill_text(text, &mut room);
        }
        let inputs = turn.tools.iter_mut().flat_map(|tool| tool.input.values_mut());
        inputs.for_each(|value| self.fill_value(value, &mut room));
    }
    fn fill_value(&self, value: &mut Value, room: &mut usize) {
        match value {
            Value::String(text) => self.fill_text(text, room),
            Value::Array(values) => values.iter_mut().for_each(|value| self.fill_value(value, room)),
            Value::Object(map) => map.values_mut().for_each(|value| self.fill_value(value, room)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    fn fill_text(&self, text: &mut String, room: &mut usize) {
        if self.0.is_empty() || !text.contains("{{") {
            return;
        }
        let mut filled = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, gap)) = rest.split_once("{{") {
            filled.push_str(before);
            let found = name_of(gap).and_then(|name| Some((name, self.0.get(name)?)));
            rest = match found {
                Some((name, value)) if value.len() <= *room => {
                    *room -= value.len();
                    filled.push_str(value);
                    gap.get(name.len() + 2..).unwrap_or_default()
                }
                _ => {
                    filled.push('{');
                    rest.get(before.len() + 1..).unwrap_or_default()
                }
            };
        }
        filled.push_str(rest);
        *text = filled;
    }
}

/// The name at the beginning of what follows a `{{`.
fn name_of(gap: &str) -> Option<&str> {
    // No further than a name is long: else a text of braces alone would be read again for each of them.
    let near = gap.as_bytes().get(..gap.len().min(LONGEST_NAME + 2))?;
    gap.get(..near.windows(2).position(|pair| pair == b"}}")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::script::Tool;
    use super::*;

    fn filled(words: &Words, text: &str) -> String {
        let mut turn = Turn::says(text);
        words.fill(&mut turn);
        turn.text.unwrap()
    }

    #[test]
    fn what_was_said_stands_in_texts_and_inputs_and_what_nobody_said_stays() {
        let mut words = Words::default();
        words.note("x\n::host=41\n::host=42\nno ::tree=/x\n::tree=/a b\n::empty=\n");
        let Value::Object(input) = json!({ "command": "kill {{host}}{{empty}} {{nobody}}", "list": [{ "path": "{{tree}}/x" }], "number": 1 })
        else {
            panic!()
        };
        let tools = vec![Tool { name: "Bash".into(), input }];
        let mut turn = Turn { tools, ..Turn::says("{{{host}}} in {{tree}}, {{") };
        words.fill(&mut turn);
        assert_eq!(
            Value::Object(turn.tools.remove(0).input),
            json!({ "command": "kill 42 {{nobody}}", "list": [{ "path": "/a b/x" }], "number": 1 })
        );
        assert_eq!(turn.text.unwrap(), "{42} in /a b, {{");
    }

    #[test]
    fn what_is_filled_in_is_not_filled_again_and_never_swells() {
        let mut words = Words::default();
        words.note("::a={{b}}{{b}}\n::b={{a}}{{a}}\n");
        assert_eq!(filled(&words, "{{a}}"), "{{b}}{{b}}");
        words.note(&format!("::long={}\n::longer={}", "x".repeat(4096), "x".repeat(4097)));
        assert_eq!(filled(&words, "{{longer}}"), "{{longer}}");
        let long = filled(&words, &"{{long}}".repeat(8000));
        assert!(long.len() < MOST_FILLED + 8 * 8000 && long.ends_with("{{long}}"));
        for number in 0..2 * MOST {
            words.note(&format!("::n{number}=1"));
        }
        assert_eq!((words.0.len(), filled(&words, "{{n600}}")), (MOST, "{{n600}}".to_owned()));
        assert_eq!(filled(&words, &"{".repeat(60_000)).len(), 60_000);
    }
}
