//! `quarterdeck alerts`. Alarms live in the server's memory, so the running server is asked; the rules are the
//! configuration's.

use jiff::Timestamp;
use quarterdeck_alerts::{Rule, grafana_dashboard, metric_families, prometheus_rules};
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::admin_client::AdminClient;
use crate::arguments::Format;
use crate::arguments::alerts::{
    AlertsCommand, AlertsLiftOptions, AlertsListOptions, AlertsOptions, AlertsRulesOptions,
};
use crate::config::LocalConfig;
use crate::terminal::{info, plain, print, titled_table};

const COLUMNS: [&str; 5] = ["alarm", "severity", "state", "since", "what"];
const RULE_COLUMNS: [&str; 4] = ["rule", "severity", "for", "what"];
/// Declares every series; a test holds it against what the server sends.
const METRICS_PAGE: &str = include_str!("../../../../docs/METRICS.md");

pub(crate) fn run(options: &AlertsOptions) -> anyhow::Result<ExitStatus> {
    match &options.command {
        None => list(&options.list),
        Some(AlertsCommand::List(options)) => list(options),
        Some(AlertsCommand::Lift(options)) => lift(options),
        Some(AlertsCommand::Rules(options)) => rules(options),
        Some(AlertsCommand::Prometheus) => {
            print(&prometheus_rules(&LocalConfig::load()?.alerts.rules.rules))?;
            Ok(ExitStatus::Success)
        }
        Some(AlertsCommand::Grafana) => {
            print(&format!("{:#}\n", grafana_dashboard(&metric_families(METRICS_PAGE))))?;
            Ok(ExitStatus::Success)
        }
    }
}

/// Fails while an alarm fires, for scripts.
fn list(options: &AlertsListOptions) -> anyhow::Result<ExitStatus> {
    let response =
        AdminClient::new(&LocalConfig::load()?, &options.server).request("GET", "/api/deck/alarms")?;
    let found = response.success()?;
    let alarms = found["alarms"].as_array().cloned().unwrap_or_default();
    match options.format {
        Format::Json => print(&format!("{found:#}\n"))?,
        Format::Human if alarms.is_empty() => {
            info(&format!("no alarm; {} rules are evaluated", found["rules"]))
        }
        Format::Human => {
            print(&titled_table(&COLUMNS, alarms.iter().map(row)))?;
            for alarm in alarms.iter().filter(|alarm| alarm["state"] == "firing") {
                info(&format!("{}: {}", text(alarm, "id"), text(alarm, "remedy")));
            }
        }
    }
    let is_firing = alarms.iter().any(|alarm| alarm["state"] == "firing");
    Ok(if is_firing { ExitStatus::Problems } else { ExitStatus::Success })
}

fn text(alarm: &Value, name: &str) -> String {
    plain(alarm[name].as_str().unwrap_or_default())
}

fn row(alarm: &Value) -> Vec<String> {
    let since = alarm["sinceMs"].as_i64().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let since = since.map(|since| format!("{since:.0}")).unwrap_or_default();
    vec![text(alarm, "id"), text(alarm, "severity"), text(alarm, "state"), since, text(alarm, "summary")]
}

fn lift(options: &AlertsLiftOptions) -> anyhow::Result<ExitStatus> {
    let alarm = &options.alarm;
    let client = AdminClient::new(&LocalConfig::load()?, &options.server);
    let response = client.send("POST", "/api/deck/alarms/lift", &json!({ "id": alarm }))?;
    if response.status == 404 {
        info(&format!("{} does not fire; `quarterdeck alerts` lists what does", plain(alarm)));
        return Ok(ExitStatus::Problems);
    }
    response.success()?;
    info(&format!("{} is lifted until it has ended and begins again", plain(alarm)));
    Ok(ExitStatus::Success)
}

fn rules(options: &AlertsRulesOptions) -> anyhow::Result<ExitStatus> {
    let rules = LocalConfig::load()?.alerts.rules;
    match options.format {
        Format::Json => print(&format!("{}\n", serde_json::to_string_pretty(&rules)?))?,
        Format::Human => print(&titled_table(&RULE_COLUMNS, rules.rules.iter().map(rule_row)))?,
    }
    Ok(ExitStatus::Success)
}

fn rule_row(rule: &Rule) -> Vec<String> {
    let held = if rule.for_seconds == 0 { "-".to_owned() } else { format!("{} s", rule.for_seconds) };
    vec![plain(&rule.id), rule.severity.as_str().to_owned(), held, plain(&rule.summary)]
}
