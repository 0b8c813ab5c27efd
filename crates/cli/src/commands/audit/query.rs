//! `quarterdeck audit query`.

use std::io::Write;

use quarterdeck_runtime::audit::{Filter, matches_filter};

use super::line::show;
use super::reader::{self, for_each_line};
use crate::ExitStatus;
use crate::arguments::operator::{AuditQueryOptions, Period};
use crate::config::LocalConfig;
use crate::output::Output;

pub(crate) fn run(options: &AuditQueryOptions) -> anyhow::Result<ExitStatus> {
    let filter = Filter {
        event: options.event.clone(),
        client: options.client.clone(),
        session: options.session.clone(),
        tool: options.tool.clone(),
        error: options.error.clone(),
        ..period_filter(&options.period)
    };
    let config = LocalConfig::load()?;
    let mut reader = reader::open_for(options.data.or(&config), &filter)?;
    let mut out = Output::to(None)?;
    let damaged = for_each_line(&mut reader, |line, value| {
        if matches_filter(value, &filter) {
            out.write_all(show(line, value, options.format).as_bytes())?;
        }
        Ok(())
    })?;
    out.finish()?;
    Ok(if damaged > 0 { ExitStatus::Problems } else { ExitStatus::Success })
}

/// Times are compared as text, so they are formatted as the trail formats them.
pub(super) fn period_filter(period: &Period) -> Filter {
    let text = |time: &jiff::Timestamp| format!("{time:.3}");
    Filter {
        since: period.since.as_ref().map(text),
        until: period.until.as_ref().map(text),
        ..Filter::default()
    }
}
