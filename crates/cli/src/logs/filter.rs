//! What is logged: a level for all, and levels for parts of the program.

use std::collections::BTreeMap;
use std::fmt;

use quarterdeck_compiler::nearest;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The parts that write to the log. A test compares them with the manifests.
const CRATES: [&str; 14] = [
    "quarterdeck",
    "quarterdeck_agents",
    "quarterdeck_host_mcp",
    "quarterdeck_invitations",
    "quarterdeck_knowledge_postgres",
    "quarterdeck_mcp_server",
    "quarterdeck_pipeline",
    "quarterdeck_postgres",
    "quarterdeck_remote_calendar",
    "quarterdeck_runtime",
    "quarterdeck_server",
    "quarterdeck_store",
    "quarterdeck_telemetry",
    "quarterdeck_transports",
];
const LEVELS: &str = "off, error, warn, info, debug, trace";
const MAX_PARTS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    level: LevelFilter,
    parts: BTreeMap<String, LevelFilter>,
}

impl Filter {
    pub(super) fn new(level: LevelFilter) -> Self {
        Self { level, parts: BTreeMap::new() }
    }

    pub(super) fn level(&self) -> LevelFilter {
        self.level
    }

    /// `debug`, or `warn,quarterdeck_server=debug`. Without a level for all, that is `rest`. A word without a level is an
    /// error: it would be a part that does not exist, and silence for all others.
    pub(super) fn parse(text: &str, rest: LevelFilter) -> Result<Self, String> {
        let mut filter = Self::new(rest);
        let mut has_level = false;
        for word in text.split(',').map(str::trim) {
            match word.split_once('=') {
                Some((part, level)) => {
                    let level = parse_level(level.trim())?;
                    if filter.parts.insert(check_part(part.trim())?, level).is_some() {
                        return Err(format!("`{}` has two levels.", part.trim()));
                    }
                }
                None => {
                    filter.level = parse_level(word)?;
                    if std::mem::replace(&mut has_level, true) {
                        return Err("There are two levels for all; write one.".to_owned());
                    }
                }
            }
        }
        match filter.parts.len() {
            0..=MAX_PARTS => Ok(filter),
            _ => Err(format!("At most {MAX_PARTS} parts have levels of their own.")),
        }
    }

    /// The SDK of MCP prints whole messages into its lines: arguments, results, and what a server elsewhere wrote. Only
    /// its errors are logged, at every level.
    pub(super) fn targets(&self) -> Targets {
        let parts = self.parts.iter().map(|(part, level)| (part.clone(), *level));
        Targets::new()
            .with_default(self.level)
            .with_target("rmcp", LevelFilter::ERROR.min(self.level))
            .with_targets(parts)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.level)?;
        self.parts.iter().try_for_each(|(part, level)| write!(f, ",{part}={level}"))
    }
}

fn parse_level(word: &str) -> Result<LevelFilter, String> {
    // Numbers are levels too, which is not worth explaining.
    let level = word.parse().ok().filter(|_| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
    level.filter(|_| !word.is_empty()).ok_or_else(|| {
        let near = nearest(word, LEVELS.split(", ")).map(|near| format!(" Did you mean `{near}`?"));
        format!(
            "`{}` is no level: write one of {LEVELS}, or a list such as `info,quarterdeck_server=debug`.{}",
            shown(word),
            near.unwrap_or_default()
        )
    })
}

/// A crate of ours, or a module of one.
fn check_part(part: &str) -> Result<String, String> {
    let name = part.split("::").next().unwrap_or_default();
    let is_path = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
    if is_path && CRATES.contains(&name) {
        return Ok(part.to_owned());
    }
    let near = nearest(name, CRATES).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    Err(format!("`{}` is no part of the program: write one of {}.{near}", shown(part), CRATES.join(", ")))
}

fn shown(word: &str) -> String {
    quarterdeck_contracts::visible_line(word).chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tracing::Level;

    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        Filter::parse(text, LevelFilter::INFO).map(|filter| filter.to_string())
    }

    #[test]
    fn messages_of_mcp_are_not_logged_at_any_level() {
        for level in [LevelFilter::INFO, LevelFilter::TRACE] {
            let targets = Filter::new(level).targets();
            assert!(targets.would_enable("quarterdeck_host_mcp::upstream", &Level::INFO));
            assert!(targets.would_enable("rmcp::service", &Level::ERROR));
            assert!(!targets.would_enable("rmcp::service", &Level::WARN));
            assert!(!targets.would_enable("rmcp::transport::streamable_http_client", &Level::INFO));
        }
        assert!(!Filter::new(LevelFilter::OFF).targets().would_enable("rmcp::service", &Level::ERROR));
        assert!(parse("info,rmcp=trace").is_err() && parse("rmcp::service=debug").is_err());
    }

    #[test]
    fn a_filter_is_a_level_for_all_and_levels_for_parts() {
        assert_eq!(parse("debug"), Ok("debug".into()));
        assert_eq!(parse("WARN"), Ok("warn".into()));
        assert_eq!(
            parse(" quarterdeck_server::guard = trace , off"),
            Ok("off,quarterdeck_server::guard=trace".into())
        );
        let parts = "quarterdeck_server=debug";
        assert_eq!(parse(parts), Ok("info,quarterdeck_server=debug".into()), "the rest stays as configured");
        let targets = Filter::parse(parts, LevelFilter::WARN).unwrap().targets();
        assert!(targets.would_enable("quarterdeck_server::guard", &Level::DEBUG));
        assert!(!targets.would_enable("quarterdeck_runtime", &Level::INFO));
    }

    #[test]
    fn a_wrong_filter_is_refused_with_what_is_allowed() {
        for (text, words) in [
            ("debgu", "Did you mean `debug`?"),
            ("", "write one of off, error, warn, info, debug, trace"),
            ("info,", "write one of off"),
            ("3", "`3` is no level"),
            ("info,debug", "two levels for all"),
            ("quarterdeck_server", "`quarterdeck_server` is no level"),
            ("quarterdeck_server=", "`` is no level"),
            ("quarterdeck_sever=debug", "Did you mean `quarterdeck_server`?"),
            ("hyper=trace", "`hyper` is no part of the program"),
            ("quarterdeck_server=info,quarterdeck_server=debug", "has two levels"),
            ("quarterdeck_server[span]=debug", "is no part of the program"),
        ] {
            let refused = parse(text).expect_err(text);
            assert!(refused.contains(words), "{text}: {refused}");
        }
        let many: Vec<_> = (0..30).map(|number| format!("quarterdeck::m{number}=debug")).collect();
        assert_eq!(parse(&many.join(",")), Err("At most 20 parts have levels of their own.".into()));
    }

    #[test]
    fn the_parts_are_the_crates_that_write_to_the_log() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(crates).unwrap() {
            let manifest = entry.unwrap().path().join("Cargo.toml");
            let Ok(manifest) = std::fs::read_to_string(manifest) else { continue };
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
            if manifest.lines().any(|line| line.starts_with("tracing.") || line.starts_with("tracing ")) {
                found.push(name.trim_matches('"').replace('-', "_"));
            }
        }
        found.sort();
        let known = CRATES.map(str::to_owned);
        assert_eq!(found, known);
    }
}
