//! How a provider is reached: address, model and key, from the configuration and the provider's defaults.

use std::path::Path;

use quarterdeck_transports::Secret;

use super::origin::{Origin, variable_of};
use super::reader::Reader;

/// How to reach a provider.
pub(super) struct Endpoint {
    /// Without a slash at the end.
    pub(super) base_url: String,
    pub(super) model: String,
    /// Always set for the provider itself; other servers of its protocol may need none.
    pub(super) api_key: Option<Secret>,
}

/// What is known of a provider without any configuration.
pub(super) struct Defaults {
    pub(super) name: &'static str,
    /// Variables that may hold its key.
    pub(super) keys: &'static [&'static str],
    /// `None` for those that are built in.
    pub(super) base_url: Option<String>,
    /// A variable that may hold another address, by the provider's own convention.
    pub(super) base_url_variable: Option<&'static str>,
    pub(super) model: Option<String>,
}

/// Variables that may hold the key of a provider of both agents.
pub(super) const GEMINI_KEYS: [&str; 2] = ["GEMINI_API_KEY", "GOOGLE_API_KEY"];
pub(super) const OPENAI_KEYS: [&str; 1] = ["OPENAI_API_KEY"];
/// Names the address of a server that speaks OpenAI's chat protocol.
pub(super) const OPENAI_URL: &str = "OPENAI_BASE_URL";

/// What an agent's keys mean with the defaults of its provider. `table` is `text`, `voice` or `images`.
pub(super) fn endpoint(
    from: &mut Reader,
    table: &str,
    defaults: &Defaults,
    model: Option<String>,
    base_url: Option<String>,
    key_file: Option<&Path>,
) -> Endpoint {
    let key_of = |name: &str| format!("{table}.{name}");
    let model = model.or_else(|| defaults.model.clone()).unwrap_or_else(|| {
        let key = key_of("model");
        from.add_serve_problem(
            &key_of("provider"),
            format!(
                "`{key}` is needed: which models this server of {}'s protocol has is not known",
                defaults.name
            ),
            Some(format!("set {} to one of its models, or `{key}`", variable_of(&key))),
        );
        String::new()
    });
    from.set_effective(&key_of("model"), model.clone(), None);

    let variable = defaults.base_url_variable.and_then(|name| Some((name, from.variables.get(name)?)));
    let (base_url, origin) = match (base_url, variable) {
        (Some(url), _) => (url, None),
        (None, Some((name, url))) => {
            (url.trim_end_matches('/').to_owned(), Some(Origin::Variable(name.into())))
        }
        (None, None) => (defaults.base_url.clone().unwrap_or_default(), None),
    };
    let shown = Some(base_url.clone()).filter(|url| !url.is_empty());
    from.set_effective(&key_of("base_url"), shown, origin.clone());
    if let Some(origin) = origin {
        from.check_url(&base_url, origin);
    }

    let file_key = key_of("api_key_file");
    let way_out = |variables: &str| format!("set {variables}, or name a file that holds it in `{file_key}`");
    let about = way_out("the provider's variable, such as GEMINI_API_KEY");
    // A built-in provider needs no key, and the file of another one may be missing.
    if let (None, Some(path)) = (&defaults.base_url, key_file) {
        from.skip_secret_file(&file_key, path);
    }
    let file = key_file.filter(|_| defaults.base_url.is_some());
    let api_key = from.take_secret(&key_of("api_key"), defaults.keys, (&file_key, file), &about);
    from.check_strength(&key_of("api_key"), api_key.as_ref(), 1);
    if api_key.is_none() && key_file.is_none() && defaults.base_url.as_ref() == Some(&base_url) {
        let help = way_out(&defaults.keys.join(" or "));
        from.add_serve_problem(&key_of("provider"), format!("{} needs a key", defaults.name), Some(help));
    }
    Endpoint { base_url, model, api_key }
}
