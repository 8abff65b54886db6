//! Words that a scripted model picks up on its way: what a tool result said as `::name=value` on a line of its own
//! stands for `{{name}}` in the inputs of later turns, as a model writes down what it has read.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Fills in what was said, the last of each name. What nobody said stays as it is written.
pub(super) fn fill(input: &mut Map<String, Value>, contents: &[&Value]) {
    if !input.values().any(asks) {
        return;
    }
    let mut said = BTreeMap::new();
    for content in contents {
        for block in content.as_array().into_iter().flatten() {
            if block.get("type").and_then(Value::as_str) == Some("tool_result") {
                note(block.get("content"), &mut said);
            }
        }
    }
    input.values_mut().for_each(|value| fill_value(value, &said));
}

fn asks(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(values) => values.iter().any(asks),
        Value::Object(map) => map.values().any(asks),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A tool result is a text or a list of blocks with texts.
fn note<'a>(content: Option<&'a Value>, said: &mut BTreeMap<&'a str, &'a str>) {
    match content {
        Some(Value::String(text)) => {
            said.extend(text.lines().filter_map(|line| line.strip_prefix("::")?.trim_end().split_once('=')));
        }
        Some(Value::Array(blocks)) => {
            blocks.iter().for_each(|block| note(block.get("text"), said));
        }
        _ => {}
    }
}

fn fill_value(value: &mut Value, said: &BTreeMap<&str, &str>) {
    match value {
        Value::String(text) if text.contains("{{") => {
            for (name, what) in said {
                *text = text.replace(&format!("{{{{{name}}}}}"), what);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| fill_value(value, said)),
        Value::Object(map) => map.values_mut().for_each(|value| fill_value(value, said)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_tool_said_stands_in_later_inputs_and_what_nobody_said_stays() {
        let contents = [
            json!("::host=1 is what the person said, and that is no tool result"),
            json!([{ "type": "tool_result", "content": "x\n::host=41\n::host=42\nno ::tree=/x\n::tree=/a b" }]),
            json!([{ "type": "tool_result", "content": [{ "type": "text", "text": "::empty=\n" }] }, { "type": "text", "text": "::host=9" }]),
        ];
        let contents: Vec<&Value> = contents.iter().collect();
        let input = json!({ "command": "kill {{host}}{{empty}} {{nobody}}", "list": [{ "path": "{{tree}}/x" }], "number": 1 });
        let Value::Object(mut input) = input else { panic!() };
        fill(&mut input, &contents);
        assert_eq!(
            Value::Object(input),
            json!({ "command": "kill 42 {{nobody}}", "list": [{ "path": "/a b/x" }], "number": 1 })
        );
    }

    #[test]
    fn an_input_without_a_gap_is_left_alone() {
        let Value::Object(mut input) = json!({ "command": "echo ${x} }}" }) else { panic!() };
        let before = input.clone();
        fill(&mut input, &[&Value::Null, &json!([1])]);
        assert_eq!(input, before);
    }
}
