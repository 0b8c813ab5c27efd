//! The same figures for programs, at one moment.

use std::sync::Arc;

use serde::Serialize;

use super::Metrics;
use super::tool::{ToolMetrics, ms, tokens};
use super::window::Window;

/// What has been counted so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Sessions that are written in.
    pub text: u64,
    /// Sessions that are spoken in.
    pub voice: u64,
    /// Sessions since the start.
    pub total: u64,
    /// Turns since the start.
    pub turns: u64,
    /// Audit lines that could not be kept.
    pub audit_lost: u64,
    /// The tools that were called, by their ids.
    pub tools: Vec<(Arc<str>, ToolFigures)>,
}

/// One tool's figures. Counts are since the start; times and sizes are of the last thousand answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFigures {
    /// How often its handler has answered.
    pub calls: u64,
    /// How many of those were failures.
    pub errors: u64,
    /// How often a gate has refused it.
    pub refused: u64,
    /// How often a recorded answer was given again.
    pub cache_hits: u64,
    /// How often it took longer than it should.
    pub over_budget: u64,
    /// Milliseconds.
    pub average: f64,
    /// Milliseconds.
    pub p50: f64,
    /// Milliseconds.
    pub p95: f64,
    /// Milliseconds.
    pub p99: f64,
    /// Tokens of an answer.
    pub tokens_average: u64,
    /// Tokens of an answer.
    pub tokens_p95: u64,
}

impl Metrics {
    /// What has been counted so far.
    pub fn figures(&self) -> Figures {
        let counts = self.lock();
        // Sorting thousands of samples takes its time, and every call that ends wants the lock.
        let copies: Vec<_> =
            counts.tools.iter().map(|(tool, metrics)| (tool.clone(), metrics.copy())).collect();
        let (text, voice, total) = (counts.text, counts.voice, counts.total);
        let (turns, audit_lost) = (counts.turns, counts.audit_lost);
        drop(counts);
        let tools = copies.into_iter().map(|(tool, copy)| (tool, copy.figures())).collect();
        Figures { text, voice, total, turns, audit_lost, tools }
    }
}

/// A tool's counts, and samples that are not sorted yet.
struct Copied {
    counted: ToolFigures,
    took_ms: Window,
    size: Window,
}

impl ToolMetrics {
    fn copy(&self) -> Copied {
        let counted = ToolFigures {
            calls: self.calls,
            errors: self.errors.values().sum(),
            refused: self.refused.values().sum(),
            cache_hits: self.cache_hits,
            over_budget: self.slow,
            ..ToolFigures::default()
        };
        Copied { counted, took_ms: self.took_ms.clone(), size: self.size.clone() }
    }
}

impl Copied {
    fn figures(self) -> ToolFigures {
        let (took, size) = (self.took_ms.summary(), self.size.summary());
        ToolFigures {
            average: ms(took.average),
            p50: ms(took.p50),
            p95: ms(took.p95),
            p99: ms(took.p99),
            tokens_average: tokens(size.average),
            tokens_p95: tokens(size.p95),
            ..self.counted
        }
    }
}
