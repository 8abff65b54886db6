//! What is looked at of a request; all else is skipped while it is read, so that no request swells in memory.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::words::Words;

/// A request for messages.
#[derive(serde::Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    pub(super) model: String,
    #[serde(default)]
    pub(super) stream: bool,
    #[serde(default)]
    pub(super) messages: Talk,
    #[serde(default)]
    tools: Vec<IgnoredAny>,
}

impl Asked {
    /// Titles and summaries are asked for without tools, beside the conversation.
    pub(super) fn is_aside(&self) -> bool {
        self.tools.is_empty()
    }
}

/// The conversation so far.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// How many times the model has spoken. What stands in several messages in a row was said once.
    pub(super) spoken: usize,
    /// What the tools said.
    pub(super) words: Words,
}

#[derive(serde::Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Node,
}

impl<'de> Deserialize<'de> for Talk {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Talk;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of messages")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<Talk, A::Error> {
                let mut talk = Talk::default();
                let mut before = false;
                while let Some(message) = messages.next_element::<Message>()? {
                    let speaks = message.role == "assistant";
                    talk.spoken += usize::from(speaks && !before);
                    before = speaks;
                    talk.words.extend(message.content.told);
                }
                Ok(talk)
            }
        }
        from.deserialize_seq(Messages)
    }
}

/// Any value: a message's content, one of its blocks, a text in it.
#[derive(Default)]
struct Node {
    /// What its texts say.
    said: Words,
    /// What the tool results in it say.
    told: Words,
    /// It is the text `tool_result`.
    marks: bool,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Nodes)
    }
}

struct Nodes;

impl<'de> Visitor<'de> for Nodes {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        let mut node = Node { marks: text == "tool_result", ..Node::default() };
        node.said.note(text);
        Ok(node)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut node = Node::default();
        while let Some(entry) = list.next_element::<Node>()? {
            node.said.extend(entry.said);
            node.told.extend(entry.told);
        }
        Ok(node)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut node = Node::default();
        let mut is_result = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "type" => is_result = map.next_value::<Node>()?.marks,
                "content" | "text" => {
                    let inner: Node = map.next_value()?;
                    node.said.extend(inner.said);
                    node.told.extend(inner.told);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if is_result {
            let said = std::mem::take(&mut node.said);
            node.told.extend(said);
        }
        Ok(node)
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::default())
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Node, E> {
        Ok(Node::default())
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Node, E> {
        Ok(Node::default())
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Node, E> {
        Ok(Node::default())
    }
    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(messages: &serde_json::Value) -> Asked {
        let whole =
            json!({ "model": "m", "unknown": {"deep": [1]}, "messages": messages, "tools": [{"name": "x"}] });
        serde_json::from_str(&whole.to_string()).unwrap()
    }

    #[test]
    fn what_the_model_said_in_several_messages_counts_once() {
        let asked = asked(&json!([
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
            {"role": "assistant", "content": [{"type": "tool_use"}]}, {"role": "user", "content": []},
            {"role": "assistant", "content": null}, {"role": "user", "content": {"odd": [1, -1, 0.5, true]}}
        ]));
        assert_eq!(asked.messages.spoken, 2);
        assert!(!asked.stream && !asked.is_aside());
        assert!(serde_json::from_str::<Asked>(r#"{"messages": []}"#).unwrap().is_aside());
        assert!(serde_json::from_str::<Asked>(r#"{"messages": 1}"#).is_err());
    }

    #[test]
    fn only_what_a_tool_said_is_picked_up_whatever_the_order_of_the_keys() {
        let asked = asked(&json!([
            {"role": "user", "content": "::a=from the person"},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "::b=2\n::c=3"},
                {"content": [{"type": "text", "text": "::c=4"}, {"type": "image", "source": {"data": "::d=5"}}], "type": "tool_result"},
                {"type": "text", "text": "::e=6"}
            ]}
        ]));
        let mut expected = Words::default();
        expected.note("::b=2\n::c=4");
        assert_eq!(asked.messages.words, expected);
    }
}
