//! The same set, model and questions, in memory and in the database.

use std::time::Duration;

use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_knowledge::eval::{Run, evaluate};
use serde_json::{Value, json};

use crate::world::{Set, build, node, open, percentiles, query, server, timed};

pub(crate) async fn measure(set: &Set) -> Value {
    let server = server();
    let url = server.create_database();
    // Nothing stays in memory, so that everything is asked of pgvector.
    let pgvector = node(&url, 0).await;
    build(&pgvector, set.records.clone(), set.model.clone()).await;
    let pgvector = open(&pgvector, &set.model).await;
    let loaded = open(&node(&url, usize::MAX).await, &set.model).await;
    json!({
        "passages": set.base.stats().passages,
        "file_in_memory": ranked(set, &set.base).await,
        "database_in_memory": ranked(set, &loaded).await,
        "pgvector": ranked(set, &pgvector).await,
    })
}

async fn ranked(set: &Set, base: &KnowledgeBase) -> Value {
    let (mut run, mut times) = (Run::new(), Vec::<Duration>::new());
    for (id, question) in &set.questions {
        // The first time embeds the question.
        timed(base, query(question, 10, &[])).await;
        let (found, time) = timed(base, query(question, 10, &[])).await;
        assert!(!found.degraded, "it was searched by words");
        run.insert(id.clone(), found.results.into_iter().map(|hit| (hit.record.id, hit.score)).collect());
        times.push(time);
    }
    let metrics = evaluate(&run, &set.judgements);
    let mut report = percentiles(times);
    report["ndcg_at_10"] = json!(metrics.ndcg_at_10);
    report["recall_at_10"] = json!(metrics.recall_at_10);
    report
}
