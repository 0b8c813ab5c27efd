//! The configuration file. What the page shows is live at once; the rest needs a restart, and that is said.

use std::path::PathBuf;

use quarterdeck_server::{PageSettings, PageSettingsHandle};
use serde_json::Value;

use super::{NotLive, Source};
use crate::arguments::serve::ServeOptions;
use crate::config::{Config, LoadedConfig};
use crate::registry::file_line;

pub(crate) struct ConfigurationSource {
    pub(crate) file: PathBuf,
    pub(crate) options: ServeOptions,
    /// Every key with its value, as it was at the start.
    pub(crate) started_with: Value,
    /// What the page shows.
    pub(crate) page: PageSettingsHandle,
}

impl Source for ConfigurationSource {
    fn name(&self) -> &'static str {
        "configuration"
    }

    fn fingerprint(&self) -> String {
        file_line(&self.file)
    }

    fn reload(&mut self) -> Result<Vec<String>, NotLive> {
        let before = self.fingerprint();
        let LoadedConfig { config, listing, .. } =
            Config::load(&self.options).map_err(|problems| NotLive::because(problems.to_string()))?;
        if self.fingerprint() != before {
            return Err(NotLive::Changing);
        }
        let mut changes = Vec::new();
        let page = config.server.settings.page.load();
        if *page != *self.page.load() {
            self.page.replace(PageSettings::clone(&page));
            changes.push("~ page settings changed".to_owned());
        }
        let mut waiting = changed_keys(&self.started_with, &listing.to_json());
        waiting.retain(|key| !key.starts_with("page."));
        if !waiting.is_empty() {
            changes.push(format!("~ {} takes effect when the server is started again", waiting.join(", ")));
        }
        Ok(changes)
    }
}

/// The keys whose values are not the same.
fn changed_keys(before: &Value, now: &Value) -> Vec<String> {
    let keys = |listing: &Value| listing["settings"].as_object().cloned().unwrap_or_default();
    let (before, now) = (keys(before), keys(now));
    let names = now.keys().chain(before.keys().filter(|key| !now.contains_key(*key)));
    names.filter(|key| before.get(*key) != now.get(*key)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_that_changed_appeared_or_went_are_named() {
        let before = json!({ "settings": { "a": { "value": 1 }, "b": { "value": 2 }, "c": { "value": 3 } } });
        let now = json!({ "settings": { "a": { "value": 1 }, "b": { "value": 9 }, "d": { "value": 4 } } });
        assert_eq!(changed_keys(&before, &now), ["b", "d", "c"]);
        assert!(changed_keys(&now, &now).is_empty());
    }
}
