//! Retrieval quality: judged sets in BEIR's format, nDCG@10 and recall@10.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use quarterdeck_contracts::KnowledgeRecord;
use serde_json::Value;

use crate::record::{PathDefaults, read_jsonl};

/// Which records answer which question, and how well: by question, then by record.
pub type Judgements = BTreeMap<String, HashMap<String, u32>>;

/// What was found for each question, the best first, with scores.
pub type Run = BTreeMap<String, Vec<(String, f64)>>;

/// Means over the judged questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvalMetrics {
    /// How many questions have judgements.
    pub questions: usize,
    /// Normalised discounted cumulative gain of the first ten.
    pub ndcg_at_10: f64,
    /// The share of what is relevant that is among the first ten.
    pub recall_at_10: f64,
}

/// Reads `corpus.jsonl`: one record a line, `_id`, `title`, `text`.
pub fn load_corpus(path: &Path) -> io::Result<Vec<KnowledgeRecord>> {
    let (records, faults) = read_jsonl(BufReader::new(File::open(path)?), &PathDefaults::default())?;
    match faults.first() {
        Some(fault) => Err(invalid(path, fault.line, &fault.message)),
        None => Ok(records.into_iter().map(|(record, _)| record).collect()),
    }
}

/// Reads `queries.jsonl`: `_id` and `text`.
pub fn load_queries(path: &Path) -> io::Result<Vec<(String, String)>> {
    let mut queries = Vec::new();
    for (number, line) in BufReader::new(File::open(path)?).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let query: Value = serde_json::from_str(&line)?;
        match (query["_id"].as_str(), query["text"].as_str()) {
            (Some(id), Some(text)) => queries.push((id.to_owned(), text.to_owned())),
            _ => return Err(invalid(path, number + 1, "a query has `_id` and `text`")),
        }
    }
    Ok(queries)
}

/// Reads `qrels.tsv`: a header, then question, record and score, separated by tabs.
pub fn load_qrels(path: &Path) -> io::Result<Judgements> {
    let mut judgements = Judgements::new();
    for (number, line) in BufReader::new(File::open(path)?).lines().enumerate().skip(1) {
        let line = line?;
        let fields: Vec<&str> = line.trim().split('\t').collect();
        match (&fields[..], fields.last().and_then(|score| score.parse().ok())) {
            ([""], _) => {}
            ([query, record, _], Some(score)) => {
                judgements.entry((*query).to_owned()).or_default().insert((*record).to_owned(), score);
            }
            _ => return Err(invalid(path, number + 1, "a line has query, record and score")),
        }
    }
    Ok(judgements)
}

/// Scores a run. A question without an answer counts as zero; one without judgements does not count.
pub fn evaluate(run: &Run, judgements: &Judgements) -> EvalMetrics {
    let (mut questions, mut ndcg, mut recall) = (0, 0.0, 0.0);
    for (question, relevant) in judgements {
        let mut ideal: Vec<u32> = relevant.values().copied().filter(|score| *score > 0).collect();
        if ideal.is_empty() {
            continue;
        }
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        questions += 1;
        let found = run.get(question).map_or(&[][..], Vec::as_slice);
        let gains: Vec<u32> =
            found.iter().take(10).map(|(id, _)| relevant.get(id).copied().unwrap_or(0)).collect();
        ndcg += discounted(&gains) / discounted(&ideal[..ideal.len().min(10)]);
        recall += gains.iter().filter(|gain| **gain > 0).count() as f64 / ideal.len() as f64;
    }
    let mean = |sum: f64| if questions == 0 { 0.0 } else { sum / questions as f64 };
    EvalMetrics { questions, ndcg_at_10: mean(ndcg), recall_at_10: mean(recall) }
}

/// Writes a run: question, record and score, separated by tabs, the best first.
pub fn write_run(run: &Run, mut output: impl Write) -> io::Result<()> {
    for (question, found) in run {
        for (record, score) in found {
            writeln!(output, "{question}\t{record}\t{score:.6}")?;
        }
    }
    Ok(())
}

fn discounted(gains: &[u32]) -> f64 {
    gains.iter().enumerate().map(|(at, gain)| f64::from(*gain) / (at as f64 + 2.0).log2()).sum()
}

fn invalid(path: &Path, line: usize, message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}:{line} {message}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_what_the_definitions_say() {
        let judgements: Judgements = [
            ("a".to_owned(), HashMap::from([("x".to_owned(), 1), ("y".to_owned(), 1)])),
            ("b".to_owned(), HashMap::from([("z".to_owned(), 1)])),
        ]
        .into();
        let run: Run = [("a".to_owned(), vec![("n".to_owned(), 0.9), ("x".to_owned(), 0.5)])].into();
        let metrics = evaluate(&run, &judgements);
        let expected = (1.0 / 3_f64.log2()) / (1.0 + 1.0 / 3_f64.log2()) / 2.0;
        assert!((metrics.ndcg_at_10 - expected).abs() < 1e-12, "{metrics:?}");
        assert_eq!((metrics.questions, metrics.recall_at_10), (2, 0.25));
        let mut text = Vec::new();
        write_run(&run, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "a\tn\t0.900000\na\tx\t0.500000\n");
    }
}
