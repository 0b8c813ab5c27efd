//! Judged sets. SciFact lies beside the repository on some machines and is not part of it.

use std::path::{Path, PathBuf};

use quarterdeck_contracts::Knowledge;
use quarterdeck_knowledge::eval::{EvalMetrics, Run, evaluate, load_corpus, load_qrels, load_queries};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};
use quarterdeck_testkit::block_on;

use crate::world::ask;

/// The folder of a set, or `None` with a word on standard error. `QUARTERDECK_IR` names the folder of sets.
#[expect(clippy::print_stderr, reason = "a test that had nothing to evaluate must say so")]
#[expect(clippy::disallowed_methods, reason = "the set is on some machines only")]
fn set(name: &str) -> Option<PathBuf> {
    let sets = match std::env::var_os("QUARTERDECK_IR") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/ir"),
    };
    let folder = sets.join(name);
    if !folder.exists() {
        eprintln!("the set {name} is not on this machine; its metrics were not checked");
        return None;
    }
    Some(folder)
}

fn measure(folder: &Path, thresholds: ScoreThresholds) -> EvalMetrics {
    let records = load_corpus(&folder.join("corpus.jsonl")).unwrap();
    let base = KnowledgeBase::build(records, None, None, thresholds, &mut |_| {}).unwrap();
    let mut run = Run::new();
    for (id, question) in load_queries(&folder.join("queries.jsonl")).unwrap() {
        let found = block_on(base.search(ask(&question, 10))).unwrap();
        run.insert(id, found.results.into_iter().map(|hit| (hit.record.id, hit.score)).collect());
    }
    evaluate(&run, &load_qrels(&folder.join("qrels.tsv")).unwrap())
}

#[test]
fn scifact_by_words_reaches_what_was_measured() {
    let Some(folder) = set("scifact") else { return };
    let ranked = measure(&folder, ScoreThresholds::NONE);
    assert_eq!(ranked.questions, 300);
    assert!(ranked.ndcg_at_10 >= 0.69 && ranked.recall_at_10 >= 0.82, "{ranked:?}");
    // A few questions come back empty: the thresholds were set for other questions, and this is their price here.
    let answered = measure(&folder, ScoreThresholds::default());
    assert!(answered.ndcg_at_10 >= 0.68 && answered.recall_at_10 >= 0.81, "{answered:?}");
}
