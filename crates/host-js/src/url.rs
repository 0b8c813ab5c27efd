//! `URL`, forms and UTF-8 for `web.js`: parsing and writing, on texts.

use rquickjs::{Ctx, Function, Object, Result, TypedArray};
use serde_json::json;
use url::{Position, Url, form_urlencoded, quirks};

/// Adds the functions to the object `host`.
pub(crate) fn add_functions<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("parseUrl", Function::new(ctx.clone(), parse_url)?)?;
    host.set("setUrl", Function::new(ctx.clone(), set_url)?)?;
    host.set("parseForm", Function::new(ctx.clone(), parse_form)?)?;
    host.set("writeForm", Function::new(ctx.clone(), write_form)?)?;
    host.set("encode", Function::new(ctx.clone(), encode)?)
}

/// The parts of a URL as JSON, or nothing when it is none.
fn parse_url(text: String, base: String) -> String {
    let url = match base.as_str() {
        "" => Url::parse(&text),
        base => Url::parse(base).and_then(|base| base.join(&text)),
    };
    url.map_or_else(|_| String::new(), |url| parts(&url))
}

/// The parts of a URL after one of them was set, or nothing when it cannot be.
fn set_url(href: String, part: String, value: String) -> String {
    let Ok(mut url) = Url::parse(&href) else { return String::new() };
    let done = match part.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value).is_ok(),
        "username" => quirks::set_username(&mut url, &value).is_ok(),
        "password" => quirks::set_password(&mut url, &value).is_ok(),
        "host" => quirks::set_host(&mut url, &value).is_ok(),
        "hostname" => quirks::set_hostname(&mut url, &value).is_ok(),
        "port" => quirks::set_port(&mut url, &value).is_ok(),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            true
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            true
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
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

fn parse_form(text: String) -> String {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
    json!(pairs).to_string()
}

fn write_form(pairs: String) -> String {
    let pairs: Vec<(String, String)> = crate::answer::read(&pairs)
        .ok()
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default();
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn encode<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    TypedArray::new_copy(ctx, text.as_bytes())
}
