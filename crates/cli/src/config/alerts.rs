//! `[alerts]`: rules over the metrics, and who is told when one holds.

use std::path::PathBuf;

use quarterdeck_alerts::Rules;

use super::kinds::{base_url, file, short_list};
use super::reader::{Reader, settings};
use crate::alert_webhook::WebhookSettings;

/// A larger file is no file of rules.
const MAX_RULES_BYTES: u64 = 1 << 20;
const MAX_CERTIFICATES: usize = 50;
/// A shorter secret could be guessed.
const MIN_SECRET_CHARS: usize = 16;

#[derive(Clone)]
pub(crate) struct Alerts {
    pub(crate) rules: Rules,
    pub(crate) webhook: Option<WebhookSettings>,
    /// Files whose certificates are watched.
    pub(crate) certificates: Vec<PathBuf>,
}

impl std::fmt::Debug for Alerts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alerts").field("rules", &self.rules.rules.len()).finish_non_exhaustive()
    }
}

pub(super) fn alerts(from: &mut Reader, server: String) -> Alerts {
    from.table("alerts", "Rules over the metrics: alarms on the deck, in the audit trail and at a webhook.");
    let about = "A JSON file with rules of your own, as `quarterdeck alerts rules --format json` shows them; one with the id of a \
                 built-in rule takes its place";
    let rules =
        from.optional("rules_file", file(), about).and_then(|path| rules(from, path)).unwrap_or_default();
    let about = "Where alarms are sent as JSON, signed as the Standard Webhooks specification says";
    let url = from.optional("webhook_url", base_url(&["https", "http"]), about);
    let about = "A file that holds the secret that messages are signed with; the variable QUARTERDECK_ALERTS_SECRET wins over it";
    let way_out =
        "set QUARTERDECK_ALERTS_SECRET, or name a file that holds it in `alerts.webhook_secret_file`";
    let (secret, file) = from.secret("webhook_secret", &["QUARTERDECK_ALERTS_SECRET"], about, way_out);
    from.check_strength("alerts.webhook_secret", secret.as_ref(), MIN_SECRET_CHARS);
    if url.is_some() && secret.is_none() && file.is_none() {
        from.add_serve_problem(
            "alerts.webhook_url",
            "messages to a webhook are signed, and there is no secret for it".into(),
            Some(way_out.into()),
        );
    }
    let webhook = url.zip(secret).map(|(url, secret)| WebhookSettings {
        url,
        secret: secret.expose().to_owned(),
        server,
    });
    let mut certificates = Vec::new();
    settings! { from;
        "certificates": short_list(super::kinds::file(), MAX_CERTIFICATES) => certificates,
            "Files of certificates in PEM, such as the proxy's, that raise an alarm two weeks before they are over";
    }
    Alerts { rules, webhook, certificates }
}

fn rules(from: &mut Reader, path: PathBuf) -> Option<Rules> {
    let is_small = path.metadata().is_ok_and(|file| file.len() <= MAX_RULES_BYTES);
    let problem = match std::fs::read_to_string(&path) {
        Ok(text) if is_small => match Rules::extended(&text) {
            Ok(rules) => return Some(rules),
            Err(error) => error.to_string(),
        },
        Ok(_) => "it is too large".to_owned(),
        Err(error) => error.to_string(),
    };
    let way_out = "`quarterdeck alerts rules --format json` shows rules as they are written";
    from.add_serve_problem(
        "alerts.rules_file",
        format!("`alerts.rules_file` names {}, which cannot be used: {problem}", path.display()),
        Some(way_out.into()),
    );
    None
}
