//! `quarterdeck log-level`. The log is the running server's, so it is asked.

use serde_json::{Value, json};

use crate::ExitStatus;
use crate::admin_client::AdminClient;
use crate::arguments::Format;
use crate::arguments::log_level::LogLevelOptions;
use crate::config::LocalConfig;
use crate::terminal::{info, plain, print};
use crate::times::show_ms;

const PATH: &str = "/api/deck/log-level";

pub(crate) fn run(options: &LogLevelOptions) -> anyhow::Result<ExitStatus> {
    let client = AdminClient::new(&LocalConfig::load()?, &options.server);
    let response = match (&options.filter, options.reset) {
        (None, false) => client.request("GET", PATH)?,
        (filter, _) => {
            let seconds = options.lifetime.map(|lifetime| lifetime.as_secs());
            client.send("POST", PATH, &json!({ "filter": filter, "forSeconds": seconds }))?
        }
    };
    let level = response.success()?;
    match options.format {
        Format::Json => print(&format!("{level:#}\n"))?,
        Format::Human => {
            print(&format!("{}\n", text(&level, "filter")))?;
            report(&level);
        }
    }
    Ok(ExitStatus::Success)
}

/// What the filter alone does not say.
fn report(level: &Value) {
    let (filter, lasting, configured) =
        (text(level, "filter"), text(level, "lasting"), text(level, "configured"));
    if let Some(until_ms) = level["untilMs"].as_u64() {
        info(&format!("goes back to {lasting} at {}", show_ms(until_ms)));
    } else if filter != configured {
        info(&format!("until it is changed or the server ends; configured: {configured}"));
    }
}

fn text(level: &Value, name: &str) -> String {
    plain(level[name].as_str().unwrap_or_default())
}
