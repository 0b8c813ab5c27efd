//! Checks the origin of a page (CORS). Only browsers send one.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::app::Settings;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Not a browser, or our own page.
    Own,
    /// A page on a configured origin.
    Listed(HeaderValue),
    Foreign,
}

pub(crate) fn of(headers: &HeaderMap, settings: &Settings) -> Origin {
    let Some(origin) = headers.get(header::ORIGIN) else {
        // Browsers without `Origin` still send whether the page is another site's.
        let is_foreign = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site")
            && headers.get("sec-fetch-mode").is_none_or(|mode| mode != "navigate");
        return if is_foreign { Origin::Foreign } else { Origin::Own };
    };
    let Ok(text) = origin.to_str() else { return Origin::Foreign };
    if settings.origins.iter().any(|listed| listed.eq_ignore_ascii_case(text)) {
        return Origin::Listed(origin.clone());
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let own = text.split_once("://").map(|(_, authority)| authority);
    if host.is_some() && own == host { Origin::Own } else { Origin::Foreign }
}

/// Lets a listed page read the response.
pub(crate) fn allow(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

pub(crate) fn allow_preflight(headers: &mut HeaderMap, request: &HeaderMap) {
    headers
        .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let wanted = HeaderName::from_static("access-control-request-headers");
    // A listed page may send any header: none of them is trusted.
    if let Some(wanted) = request.get(wanted) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn an_origin_is_own_listed_or_foreign() {
        let settings = Settings { origins: vec!["https://shop.example".into()], ..Settings::default() };
        let says = |pairs: &[(&'static str, &'static str)]| of(&headers(pairs), &settings);
        assert_eq!(says(&[]), Origin::Own, "not a browser");
        assert_eq!(says(&[("origin", "http://127.0.0.1:8080"), ("host", "127.0.0.1:8080")]), Origin::Own);
        assert_eq!(
            says(&[("origin", "https://shop.example"), ("host", "api.example")]),
            Origin::Listed(HeaderValue::from_static("https://shop.example"))
        );
        for foreign in
            ["https://evil.example", "null", "http://127.0.0.1:8081", "https://shop.example.evil.net"]
        {
            assert_eq!(
                says(&[("origin", foreign), ("host", "127.0.0.1:8080")]),
                Origin::Foreign,
                "{foreign}"
            );
        }
        assert_eq!(says(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]), Origin::Foreign);
        assert_eq!(
            says(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]),
            Origin::Own,
            "navigation is allowed"
        );
    }
}
