//! `quarterdeck kb search`.

use anyhow::anyhow;
use quarterdeck_contracts::{
    Knowledge, KnowledgeQuery, RecordFilters, RecordKind, SearchResult, SearchResults,
};
use serde_json::json;

use super::open;
use crate::arguments::Format;
use crate::arguments::knowledge::KbSearchOptions;
use crate::terminal::{count, paint, plain, print};
use crate::{ExitStatus, environment, wire};

/// Width of the bar of a perfect score.
const BAR_CHARS: usize = 20;

pub(super) fn search(options: &KbSearchOptions) -> anyhow::Result<ExitStatus> {
    let query = KnowledgeQuery {
        query: options.query.clone(),
        namespace: options.namespace.into(),
        filters: RecordFilters {
            kind: options.kind.map(RecordKind::from),
            tags: options.tags.clone(),
            date_range: None,
        },
        top_k: options.top_k.clamp(1, 100),
        include_snippets: true,
        snippet_length: 300,
    };
    let found = wire::block_on(async {
        let base = open(&options.kb, &options.data).await?;
        base.search(query).await.map_err(|error| anyhow!(error))
    })??;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!(found)))?,
        Format::Human => print(&format_results(&found))?,
    }
    Ok(if found.results.is_empty() { ExitStatus::Problems } else { ExitStatus::Success })
}

fn format_results(found: &SearchResults) -> String {
    let style = environment::style_of_stdout();
    let mut text = String::new();
    for SearchResult { record, score, snippet, matched } in &found.results {
        let full = (score * BAR_CHARS as f64).round() as usize;
        let bar =
            format!("{}{}", "█".repeat(full.min(BAR_CHARS)), "·".repeat(BAR_CHARS.saturating_sub(full)));
        text.push_str(&format!(
            "{}  {bar} {score:.2}  {}\n",
            paint(&plain(&record.title), "1", style),
            plain(&record.id)
        ));
        if let Some(snippet) = snippet {
            text.push_str(&format!("    {}\n", highlight(&plain(snippet), matched, style)));
        }
        let why = if matched.is_empty() { "its meaning".to_owned() } else { plain(&matched.join(", ")) };
        text.push_str(&format!("    matched by {why}\n\n"));
    }
    match (found.results.is_empty(), found.without_filters) {
        (false, _) => {}
        (true, Some(others)) => {
            text.push_str(&format!(
                "no results with these filters; {} without them\n",
                count(others, "record")
            ));
        }
        (true, None) => text.push_str("no results\n"),
    }
    if found.degraded {
        text.push_str("(searched by words only; `quarterdeck kb build` adds meaning)\n");
    }
    text
}

fn highlight(snippet: &str, matched: &[String], style: quarterdeck_compiler::Style) -> String {
    let is_matched = |word: &str| matched.iter().any(|other| other.to_lowercase() == word.to_lowercase());
    let mut text = String::new();
    let mut rest = snippet;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c: char| !c.is_alphanumeric()).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        text.push_str(before);
        text.push_str(&if is_matched(word) { paint(word, "4", style) } else { word.to_owned() });
        rest = after;
    }
    text + rest
}
