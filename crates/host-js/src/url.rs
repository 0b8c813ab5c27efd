//! `URL`, forms and UTF-8 for `web.js`: parsing and writing, on texts.

use serde_json::json;
use url::{Position, Url, form_urlencoded, quirks};

/// The parts of a URL as JSON, or nothing when it is none.
pub(crate) fn parse_url(text: &str, base: &str) -> String {
    let url = match base {
        "" => Url::parse(text),
        base => Url::parse(base).and_then(|base| base.join(text)),
    };
    url.map_or_else(|_| String::new(), |url| parts(&url))
}

/// The parts of a URL after one of them was set, or nothing when it cannot be.
pub(crate) fn set_url(href: &str, part: &str, value: &str) -> String {
    let Ok(mut url) = Url::parse(href) else { return String::new() };
    let done = match part {
        "protocol" => quirks::set_protocol(&mut url, value).is_ok(),
        "username" => quirks::set_username(&mut url, value).is_ok(),
        "password" => quirks::set_password(&mut url, value).is_ok(),
        "host" => quirks::set_host(&mut url, value).is_ok(),
        "hostname" => quirks::set_hostname(&mut url, value).is_ok(),
        "port" => quirks::set_port(&mut url, value).is_ok(),
        "pathname" => {
            quirks::set_pathname(&mut url, value);
            true
        }
        "search" => {
            quirks::set_search(&mut url, value);
            true
        }
        "hash" => {
            quirks::set_hash(&mut url, value);
            true
        }
        _ => false,
    };
    if done { parts(&url) } else { String::new() }
}

fn parts(url: &Url) -> String {
    json!({
        "href": quirks::href(url),
        "origin": quirks::origin(url),
        "protocol": quirks::protocol(url),
        "username": quirks::username(url),
        "password": quirks::password(url),
        "host": &url[Position::BeforeHost..Position::AfterPort],
        "hostname": quirks::hostname(url),
        "port": quirks::port(url),
        "pathname": quirks::pathname(url),
        "search": quirks::search(url),
        "hash": quirks::hash(url),
    })
    .to_string()
}

/// The pairs of a form, as JSON.
pub(crate) fn parse_form(text: &str) -> String {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
    json!(pairs).to_string()
}

/// The form of pairs that are given as JSON.
pub(crate) fn write_form(pairs: &str) -> String {
    let pairs: Vec<(String, String)> =
        crate::question::read(pairs).and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
