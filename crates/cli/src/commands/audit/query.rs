//! `quarterdeck audit query`.

use std::io::Write;

use quarterdeck_runtime::audit::{Filter, matches_filter};

use super::line::show;
use super::trail::{Trail, each};
use crate::Verdict;
use crate::arguments::operating::{AuditQueryOptions, Period};
use crate::config::Site;
use crate::output::Output;

pub(crate) fn run(options: &AuditQueryOptions) -> anyhow::Result<Verdict> {
    let filter = Filter {
        event: options.event.clone(),
        client: options.client.clone(),
        session: options.session.clone(),
        tool: options.tool.clone(),
        error: options.error.clone(),
        ..during(&options.period)
    };
    let site = Site::load()?;
    let mut trail = Trail::open(options.data.or(&site))?;
    let mut out = Output::to(None)?;
    let damaged = each(&mut trail, |line, value| {
        if matches_filter(value, &filter) {
            out.write_all(show(line, value, options.format).as_bytes())?;
        }
        Ok(())
    })?;
    out.finish()?;
    Ok(if damaged > 0 { Verdict::Problems } else { Verdict::Fine })
}

/// Lines of a stretch of time. Times are compared as text, so they are written as the trail writes them.
pub(super) fn during(period: &Period) -> Filter {
    let text = |time: &jiff::Timestamp| format!("{time:.3}");
    Filter {
        since: period.since.as_ref().map(text),
        until: period.until.as_ref().map(text),
        ..Filter::default()
    }
}
