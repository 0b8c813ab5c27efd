//! `quarterdeck health`. The probe of containers, whose image has no HTTP client.

use std::time::Duration;

use crate::ExitStatus;
use crate::admin_client::AdminClient;
use crate::arguments::health::HealthOptions;
use crate::config::LocalConfig;
use crate::terminal::{info, report_error};

/// Longer than `/readyz` waits for the store, shorter than container engines wait for a probe.
const TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) fn run(options: &HealthOptions) -> anyhow::Result<ExitStatus> {
    let client = AdminClient::new(&LocalConfig::load()?, &options.server).anonymous(TIMEOUT);
    let path = if options.ready { "/readyz" } else { "/healthz" };
    match client.status(path) {
        Ok(200) => Ok(ExitStatus::Success),
        Ok(status) => {
            info(&format!("the server answers {path} with status {status}"));
            Ok(ExitStatus::Problems)
        }
        // To a probe, a server that does not answer is a finding; container engines reserve exit code 2.
        Err(error) => {
            report_error(&error);
            Ok(ExitStatus::Problems)
        }
    }
}
