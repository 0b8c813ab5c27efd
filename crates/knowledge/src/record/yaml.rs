//! Front matter: one YAML mapping, read event by event. Aliases are refused and nesting is limited, so that no file can
//! grow beyond its size.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

use super::Fault;

const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 16;

/// The fields of a mapping with the lines of their keys, counted from `first_line`.
pub(super) fn read_fields(text: &str, first_line: usize) -> Result<Vec<(String, Value, usize)>, Fault> {
    if text.len() > MAX_FRONT_MATTER_BYTES {
        return Err(Fault::new(
            first_line,
            format!("front matter is longer than {MAX_FRONT_MATTER_BYTES} bytes"),
        ));
    }
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let line = first_line + error.marker().line().saturating_sub(1);
            Fault::new(line, format!("front matter is not YAML: {}", error.info()))
        })?;
        let line = first_line + span.start.line().saturating_sub(1);
        reader.take(event, line).map_err(|message| Fault::new(line, message))?;
    }
    Ok(reader.fields)
}

#[derive(Default)]
struct Reader {
    open: Vec<Frame>,
    fields: Vec<(String, Value, usize)>,
    documents: usize,
}

enum Frame {
    List(Vec<Value>),
    Map { map: Map<String, Value>, key: Option<(String, usize)> },
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::Alias(_) => Err("front matter may not use aliases (`*name`)".to_owned()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { Err("front matter is one document".to_owned()) } else { Ok(()) }
            }
            Event::Scalar(text, style, _, _) => {
                let is_key = matches!(self.open.last(), Some(Frame::Map { key: None, .. }));
                let is_plain = style == ScalarStyle::Plain && !is_key;
                let value = if is_plain { plain(&text) } else { Value::String(text.into_owned()) };
                self.put(value, line)
            }
            Event::SequenceStart(..) => self.open(Frame::List(Vec::new())),
            Event::MappingStart(..) => self.open(Frame::Map { map: Map::new(), key: None }),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Frame::List(list)) => self.put(Value::Array(list), line),
                // The outermost mapping has given its fields already.
                Some(Frame::Map { .. }) if self.open.is_empty() => Ok(()),
                Some(Frame::Map { map, .. }) => self.put(Value::Object(map), line),
                None => Ok(()),
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(&mut self, frame: Frame) -> Result<(), String> {
        if matches!(self.open.last(), Some(Frame::Map { key: None, .. })) {
            return Err("a key is a word, not a list or a mapping".to_owned());
        }
        if self.open.is_empty() && matches!(frame, Frame::List(_)) {
            return Err("front matter is a mapping: `title: …`".to_owned());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("front matter nests deeper than {MAX_DEPTH}"));
        }
        self.open.push(frame);
        Ok(())
    }

    fn put(&mut self, value: Value, line: usize) -> Result<(), String> {
        let depth = self.open.len();
        match self.open.last_mut() {
            None if value.is_null() || value == "" => Ok(()),
            None => Err("front matter is a mapping: `title: …`".to_owned()),
            Some(Frame::List(list)) => {
                list.push(value);
                Ok(())
            }
            Some(Frame::Map { map, key }) => match (key.take(), value) {
                (None, Value::String(name)) => {
                    if map.contains_key(&name) {
                        return Err(format!("`{name}` is given twice"));
                    }
                    *key = Some((name, line));
                    Ok(())
                }
                (None, _) => Err("a key is a word, not a list or a mapping".to_owned()),
                (Some((name, line)), value) => {
                    if depth == 1 {
                        self.fields.push((name.clone(), value, line));
                        map.insert(name, Value::Null);
                    } else {
                        map.insert(name, value);
                    }
                    Ok(())
                }
            },
        }
    }
}

/// A scalar without quotes, by YAML 1.2's core schema. Dates stay text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::Number(number.into());
    }
    let looks_numeric = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    let number = if looks_numeric { text.parse::<f64>().ok().and_then(Number::from_f64) } else { None };
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_come_with_their_lines() {
        let fields = read_fields(
            "title: A\ntags: [a, 'b']\nlast_updated: 2025-03-14\nmetadata: { born: 1874, x: {y: 1.5} }\n",
            2,
        );
        assert_eq!(
            fields.unwrap(),
            [
                ("title".to_owned(), json!("A"), 2),
                ("tags".to_owned(), json!(["a", "b"]), 3),
                ("last_updated".to_owned(), json!("2025-03-14"), 4),
                ("metadata".to_owned(), json!({ "born": 1874, "x": { "y": 1.5 } }), 5),
            ]
        );
    }

    #[test]
    fn what_could_grow_is_refused() {
        for bad in
            ["a: &x [1]\nb: *x", "- a", "just words", "a: 1\na: 2", "? [a]\n: b", "a: [", "a: 1\n---\nb: 2"]
        {
            assert!(read_fields(bad, 1).is_err(), "{bad}");
        }
        assert!(read_fields(&format!("a: {}", "[".repeat(10_000)), 1).is_err());
        assert_eq!(read_fields("", 1), Ok(Vec::new()));
        assert_eq!(read_fields("# only a comment", 1), Ok(Vec::new()));
    }
}
