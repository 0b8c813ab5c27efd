//! Records as JSON Lines.

use std::fmt;
use std::io::{BufRead, Read as _};

use quarterdeck_contracts::{KnowledgeRecord, parse_json};
use serde_json::Value;

use super::fields::{Fields, PathDefaults};
use super::{Fault, MAX_FILE_BYTES};

/// What a file gave: records with their lines, and faults.
pub type ReadRecords = (Vec<(KnowledgeRecord, usize)>, Vec<Fault>);

/// Reads one record from each line that is not empty; `_id` is another name for `id`. Lines that are not records are
/// faults.
pub fn read_jsonl(mut input: impl BufRead, path: &PathDefaults) -> std::io::Result<ReadRecords> {
    let mut records = Vec::new();
    let mut faults = Vec::new();
    let mut line = Vec::new();
    for number in 0.. {
        line.clear();
        if (&mut input).take(MAX_FILE_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 == MAX_FILE_BYTES && line.last() != Some(&b'\n') {
            faults.push(Fault::new(number + 1, format!("the line is longer than {MAX_FILE_BYTES} bytes")));
            // What follows cannot be told from the rest of this line.
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match record(&line, path, number + 1) {
            Ok(record) => records.push((record, number + 1)),
            Err(fault) => faults.push(fault),
        }
    }
    Ok((records, faults))
}

fn record(line: &[u8], path: &PathDefaults, number: usize) -> Result<KnowledgeRecord, Fault> {
    let refused =
        |reason: &dyn fmt::Display| Fault::new(number, format!("the line is not a JSON object: {reason}"));
    let line = std::str::from_utf8(line).map_err(|error| refused(&error))?;
    let Value::Object(given) = parse_json(line).map_err(|fault| refused(&fault))? else {
        return Err(refused(&"it is another kind of value"));
    };
    let mut fields = Fields::default();
    for (name, value) in given {
        fields.set(&name, value).map_err(|message| Fault::new(number, message))?;
    }
    fields.record(&PathDefaults { slug: None, ..path.clone() }, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_lines_are_read_and_bad_ones_are_said() {
        let lines = concat!(
            "{\"_id\": \"4983\", \"title\": \"A\", \"text\": \"a\"}\n",
            "not json\n\n",
            "{\"id\": \"person:x\", \"title\": \"X\", \"type\": \"doc\"}\n",
            "{\"id\": \"person:y\", \"title\": \"Y\"}\n",
        );
        let (records, faults) = read_jsonl(lines.as_bytes(), &PathDefaults::default()).unwrap();
        let ids: Vec<_> = records.iter().map(|(record, line)| (record.id.as_str(), *line)).collect();
        assert_eq!(ids, [("4983", 1), ("person:y", 5)]);
        let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [2, 4]);
    }

    #[test]
    fn line_that_is_no_object_or_has_a_key_twice_is_refused() {
        for (line, reason) in [
            (&b"[1]"[..], "another kind of value"),
            (br#"{ "id": "doc:a", "title": "A", "title": "B" }"#, "the key \"title\" stands twice"),
            (b"{ \"title\": \"\xff\" }", "invalid utf-8"),
        ] {
            let fault = record(line, &PathDefaults::default(), 1).unwrap_err();
            assert!(fault.message.contains(reason), "{fault:?}");
        }
    }
}
