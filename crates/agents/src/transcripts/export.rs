//! Questions without an answer, as what an editor begins with: records of the knowledge base to be filled in, and cases that
//! fail until a record is found for the question.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quarterdeck_contracts::{Case, CaseFixtures, Expectation};
use serde_json::{Value, json};

use super::read::UnansweredQuestion;

/// How long a question may be that becomes a title or a query, in characters: what `kb_search` takes.
const MAX_QUESTION_CHARS: usize = 200;
const MAX_SLUG_CHARS: usize = 60;
const RECORDS_FILE: &str = "unanswered.jsonl";
/// A case file that is put into the folder of `kb_search`.
pub const CASES_FILE: &str = "unanswered.case.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    pub name: &'static str,
    pub text: String,
}

/// One question, however often it was asked.
struct DistinctQuestion<'a> {
    id: String,
    text: String,
    last: &'a UnansweredQuestion,
    times: usize,
}

/// Records that `quarterdeck kb import` takes, one for each question. Their text is to be written by an editor.
pub fn export_records(questions: &[UnansweredQuestion]) -> ExportedFile {
    let lines = distinct(questions).into_iter().map(|question| format!("{}\n", record(&question)));
    ExportedFile { name: RECORDS_FILE, text: lines.collect() }
}

/// Cases for `kb_search`, one for each question: the record is found by the question as it was asked.
pub fn export_cases(questions: &[UnansweredQuestion]) -> ExportedFile {
    let cases: Vec<Case> = distinct(questions).iter().map(case).collect();
    ExportedFile { name: CASES_FILE, text: format!("{:#}\n", json!(cases)) }
}

fn case(question: &DistinctQuestion<'_>) -> Case {
    let found = json!({ "ok": true, "data": { "results": [{ "id": question.id }] } });
    Case {
        name: format!("finds an answer to: {}", question.text),
        mode: None,
        now: None,
        given: Some(CaseFixtures { kb: vec![record(question)], ..CaseFixtures::default() }),
        said: Some(question.text.clone()),
        calls: Vec::new(),
        args: Some(json!({ "query": question.text })),
        expect: Some(Expectation(found)),
        exact: false,
        confirm: None,
    }
}

fn record(question: &DistinctQuestion<'_>) -> Value {
    let DistinctQuestion { id, text, last, times } = question;
    let asked = Timestamp::from_millisecond(last.at_ms as i64).unwrap_or(Timestamp::UNIX_EPOCH);
    let day = asked.strftime("%Y-%m-%d").to_string();
    let comment = last.comment.as_ref().map(|comment| format!(" The user wrote: {comment}"));
    let reason = last.reason.as_str();
    json!({
        "id": id,
        "title": text,
        "text": format!(
            "Write the answer here. Asked {times} times, last on {day}; it got no answer ({reason}).{}",
            comment.unwrap_or_default()
        ),
        "tags": ["unanswered"],
        "last_updated": day,
    })
}

/// The questions without repetitions, in the order of their ids.
fn distinct(questions: &[UnansweredQuestion]) -> Vec<DistinctQuestion<'_>> {
    let mut by_text: BTreeMap<String, DistinctQuestion<'_>> = BTreeMap::new();
    for question in questions {
        let line: Vec<&str> = question.question.split_whitespace().collect();
        let text: String = line.join(" ").chars().take(MAX_QUESTION_CHARS).collect();
        let known = by_text.entry(text.to_lowercase()).or_insert_with(|| DistinctQuestion {
            id: String::new(),
            text,
            last: question,
            times: 0,
        });
        known.times += 1;
        if question.at_ms > known.last.at_ms {
            known.last = question;
        }
    }
    let mut found: Vec<_> = by_text.into_values().collect();
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for question in &mut found {
        let slug = slug(&question.text);
        let count = taken.entry(slug.clone()).and_modify(|count| *count += 1).or_insert(1);
        let suffix = if *count > 1 { format!("-{count}") } else { String::new() };
        question.id = format!("doc:unanswered-{slug}{suffix}");
    }
    found
}

/// Letters and digits of ASCII, with dashes between them.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.chars() {
        if slug.len() >= MAX_SLUG_CHARS {
            break;
        }
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "question".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::CaseFile;

    use super::super::read::UnansweredReason;
    use super::*;

    fn asked(question: &str, at_ms: u64) -> UnansweredQuestion {
        let (session_id, reason) = ("ses_1".to_owned(), UnansweredReason::NoEvidence);
        UnansweredQuestion {
            session_id,
            turn: 1,
            at_ms,
            question: question.to_owned(),
            reason,
            comment: None,
        }
    }

    #[test]
    fn equal_questions_are_one_record_and_ids_are_unique() {
        let questions = [
            asked("Refunds?", 1),
            asked("refunds?\n", 2),
            asked("Refunds!", 3),
            asked("払い戻し", 4),
            asked("返金", 5),
        ];
        let records = export_records(&questions).text;
        let ids: Vec<Value> = records
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON")["id"].take())
            .collect();
        let expected =
            ["refunds", "refunds-2", "question", "question-2"].map(|slug| format!("doc:unanswered-{slug}"));
        assert_eq!(ids, expected);
        assert!(records.contains("Asked 2 times"), "{records}");
    }

    #[test]
    fn cases_are_read_as_a_case_file() {
        let file = export_cases(&[asked("What is the refund policy?", 1)]);
        let cases: CaseFile = serde_json::from_str(&file.text).expect("it is a case file");
        let cases = cases.into_cases();
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0].said.as_deref(), Some("What is the refund policy?"));
        assert!(file.name.ends_with(".case.json"));
    }
}
