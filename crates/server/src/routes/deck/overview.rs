//! `GET /api/deck/overview`: tool health, sessions and models.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::{LoadedTool, ToolCounters};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Operator, Shared, operation};
use crate::app::App;
use crate::deck::RecentCalls;
use crate::model_trouble::TroubleReport;
use crate::routes::openapi::Operation;
use crate::routes::tools::ToolSummary;

/// With fewer calls the error rate means little.
const MIN_CALLS: u64 = 5;

#[derive(Serialize, JsonSchema)]
pub(super) struct Overview {
    /// Milliseconds since 1970.
    now: u64,
    registry: RegistryOverview,
    sessions: SessionCounts,
    models: Models,
    audit: AuditOverview,
    tools: Vec<ToolOverview>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct RegistryOverview {
    version: String,
    commit: Option<String>,
    tools: usize,
    is_locked: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct SessionCounts {
    active: u64,
    text: u64,
    voice: u64,
    total: u64,
    turns: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Models {
    text: String,
    /// What is asked when it fails, or null.
    fallback: Option<String>,
    /// The trouble with the text model, or null if it answers.
    trouble: Option<TroubleReport>,
    voice: Option<String>,
    /// How long callers wait for the voice model, or null if it has not answered yet.
    #[serde(rename = "firstAudio")]
    first_audio: Option<FirstAudio>,
}

/// Milliseconds from the end of the user's speech to the first audio, of the last thousand answers.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct FirstAudio {
    p50: f64,
    p95: f64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct AuditOverview {
    is_kept: bool,
    lost_lines: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ToolOverview {
    #[serde(flatten)]
    tool: ToolSummary,
    /// In the last hour: not called; healthy; p95 over its latency budget; at least one call in five failed; or failed
    /// with too few calls to judge.
    health: Health,
    /// Within the last hour.
    lately: RecentCalls,
    /// Counters since the start; milliseconds and tokens of the last thousand answers.
    #[schemars(with = "BTreeMap<String, f64>")]
    figures: ToolCounters,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Health {
    Idle,
    Well,
    Slow,
    Failing,
    Unclear,
}

pub(super) async fn get(State(app): Shared, _: Operator) -> Json<Overview> {
    let snapshot = app.registry.snapshot();
    let counters = app.orchestrator.metrics().counters();
    let recent = app.deck.charts.series.recent_calls(&counters);
    let tool_overview = |tool: &LoadedTool| {
        let id = tool.metadata().tool_id.as_str();
        let tool_counters = counters.tools.iter().find(|(known, _)| **known == *id);
        let tool_counters = tool_counters.map(|(_, counters)| *counters).unwrap_or_default();
        tool_overview(tool, tool_counters, recent.get(id).copied().unwrap_or_default())
    };
    Json(Overview {
        now: app.orchestrator.now_ms(),
        registry: RegistryOverview {
            version: snapshot.version().to_owned(),
            commit: snapshot.commit().map(str::to_owned),
            tools: snapshot.len(),
            is_locked: app.registry.is_locked(),
        },
        sessions: SessionCounts {
            active: counters.text + counters.voice,
            text: counters.text,
            voice: counters.voice,
            total: counters.total,
            turns: counters.turns,
        },
        models: Models {
            text: app.text.model().to_owned(),
            fallback: app.text.models().get(1).map(|model| model.name.clone()),
            trouble: app.text.model_trouble().as_ref().map(TroubleReport::new),
            voice: app.voice.as_ref().map(|voice| voice.model().to_owned()),
            first_audio: first_audio(&app),
        },
        audit: AuditOverview { is_kept: app.operations.audit.is_some(), lost_lines: counters.audit_lost },
        tools: snapshot.tools().map(tool_overview).collect(),
    })
}

fn first_audio(app: &App) -> Option<FirstAudio> {
    let model = app.voice.as_ref()?.model();
    let latency = app.orchestrator.metrics().first_audio_latency(model)?;
    Some(FirstAudio { p50: latency.p50, p95: latency.p95 })
}

fn tool_overview(tool: &LoadedTool, figures: ToolCounters, lately: RecentCalls) -> ToolOverview {
    let health = health(figures, lately, tool.metadata().latency_budget_ms);
    ToolOverview { tool: ToolSummary::new(tool), health, lately, figures }
}

fn health(counters: ToolCounters, recent: RecentCalls, budget_ms: u64) -> Health {
    match recent {
        RecentCalls { calls: 0, .. } => Health::Idle,
        // One in five.
        RecentCalls { calls, errors } if errors * 5 >= calls => {
            if calls < MIN_CALLS {
                Health::Unclear
            } else {
                Health::Failing
            }
        }
        _ if counters.p95 > budget_ms as f64 => Health::Slow,
        _ => Health::Well,
    }
}

pub(super) fn describe() -> Operation {
    operation("getOverview", "Get the tool overview").json_response::<Overview>(200, "The overview.", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_follows_recent_calls_and_latency() {
        let of = |calls, errors, p95| {
            health(ToolCounters { p95, ..ToolCounters::default() }, RecentCalls { calls, errors }, 100)
        };
        assert_eq!(of(0, 0, 500.0), Health::Idle);
        assert_eq!(of(4, 4, 1.0), Health::Unclear, "too few calls to judge");
        assert_eq!(of(4, 0, 1.0), Health::Well);
        assert_eq!(of(10, 2, 1.0), Health::Failing);
        assert_eq!(of(10, 1, 100.5), Health::Slow);
        assert_eq!(of(10, 1, 100.0), Health::Well);
    }
}
