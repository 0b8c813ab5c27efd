//! Hides a tool's secrets in what a server answers. Many servers repeat a request in their errors, and some keep an
//! endpoint that does nothing else.

use std::borrow::Cow;

use ::url::form_urlencoded;
use aho_corasick::{AhoCorasick, MatchKind};

/// Stands for a secret.
const HIDDEN: &str = "[hidden]";

/// What is shorter would be found in texts that have nothing to do with a secret.
const MIN_PATTERN_BYTES: usize = 6;

/// Finds secrets in the forms that servers write them: plain, escaped for JSON, HTML and URLs, in hexadecimal digits and
/// in base64, also within longer base64.
#[derive(Debug)]
pub(crate) struct Redactor(AhoCorasick);

impl Redactor {
    /// `None` when there is nothing to hide.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Option<Self>, String> {
        let mut patterns: Vec<Vec<u8>> = secrets.into_iter().flat_map(forms).collect();
        patterns.retain(|pattern| pattern.len() >= MIN_PATTERN_BYTES);
        patterns.sort();
        patterns.dedup();
        if patterns.is_empty() {
            return Ok(None);
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // Hosts and header names come back in lower case, percent-encodings in either.
            .ascii_case_insensitive(true)
            .build(&patterns);
        automaton
            .map(|automaton| Some(Self(automaton)))
            .map_err(|error| format!("a secret is too long: {error}"))
    }

    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    pub(crate) fn hide_in_text(&self, text: &str) -> String {
        match self.is_in(text) {
            true => String::from_utf8_lossy(&self.hide_in(text.as_bytes().to_vec())).into_owned(),
            false => text.to_owned(),
        }
    }

    pub(crate) fn hide_in(&self, bytes: Vec<u8>) -> Vec<u8> {
        if !self.0.is_match(&bytes) {
            return bytes;
        }
        let mut clean = Vec::with_capacity(bytes.len());
        let mut rest = 0;
        for found in self.0.find_iter(&bytes) {
            clean.extend_from_slice(&bytes[rest..found.start()]);
            clean.extend_from_slice(HIDDEN.as_bytes());
            rest = found.end();
        }
        clean.extend_from_slice(&bytes[rest..]);
        clean
    }
}

/// All ways in which a secret may be written.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = written(secret);
    // `Basic` credentials are base64 already; a server shows what is in it.
    if let Some(inner) = decoded(secret) {
        forms.extend(written(&inner));
        if let Some((_, password)) = inner.split_once(':') {
            forms.extend(written(password));
        }
    }
    forms
}

fn written(text: &str) -> Vec<Vec<u8>> {
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json.trim_matches('"').to_owned();
    let form: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    let mut forms =
        vec![text.to_owned(), json.replace('/', "\\/"), json, percent_encoded(text), html_escaped(text)];
    forms.push(form.replace('+', "%20"));
    forms.push(form);
    forms.push(text.bytes().map(|byte| format!("{byte:02x}")).collect());
    let mut forms: Vec<Vec<u8>> = forms.into_iter().map(String::into_bytes).collect();
    forms.extend((0..3).flat_map(|offset| base64_at(text.as_bytes(), offset)));
    forms
}

/// As `encodeURIComponent` writes it.
fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    let each = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(each).collect()
}

fn html_escaped(text: &str) -> String {
    let each = |c: char| match c {
        '&' => Cow::Borrowed("&amp;"),
        '<' => Cow::Borrowed("&lt;"),
        '>' => Cow::Borrowed("&gt;"),
        '"' => Cow::Borrowed("&quot;"),
        '\'' => Cow::Borrowed("&#39;"),
        other => Cow::Owned(other.to_string()),
    };
    text.chars().map(each).collect()
}

/// The letters that base64 has for a text in the middle of a longer one, whatever stands before and after it: both
/// alphabets. `offset` is the number of bytes before it, modulo three.
fn base64_at(text: &[u8], offset: usize) -> [Vec<u8>; 2] {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(text.iter().copied()).collect();
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    [base64_simd::STANDARD, base64_simd::URL_SAFE].map(|alphabet| {
        let encoded = alphabet.encode_to_string(&padded);
        encoded.as_bytes().get(first..last).unwrap_or_default().to_vec()
    })
}

/// The text that a secret is the base64 of, if it is one.
fn decoded(secret: &str) -> Option<String> {
    let text = secret.trim_end_matches('=');
    let bytes = base64_simd::STANDARD_NO_PAD.decode_to_vec(text).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains(|c: char| c.is_control())).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hidden(secret: &str, text: &str) -> String {
        Redactor::new([secret]).unwrap().unwrap().hide_in_text(text)
    }

    #[test]
    fn the_usual_ways_to_repeat_a_secret_are_found() {
        let secret = "s3cr/t+\"k€y&<9";
        for echo in [
            secret.to_owned(),
            serde_json::to_string(secret).unwrap(),
            serde_json::to_string(secret).unwrap().replace('/', "\\/"),
            percent_encoded(secret),
            percent_encoded(secret).to_lowercase(),
            html_escaped(secret),
            form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
            base64_simd::STANDARD.encode_to_string(secret),
            base64_simd::URL_SAFE_NO_PAD.encode_to_string(secret),
            base64_simd::STANDARD.encode_to_string(format!("user:{secret}")),
        ] {
            let text = hidden(secret, &format!("<p>Your key {echo} is wrong</p>"));
            assert!(text.contains(HIDDEN), "{echo}: {text}");
            assert!(!text.contains("s3cr"), "{echo}: {text}");
        }
        assert_eq!(hidden(secret, "nothing to see"), "nothing to see");
    }

    #[test]
    fn credentials_in_base64_are_hidden_as_what_they_stand_for() {
        let basic = base64_simd::STANDARD.encode_to_string("user:correct horse");
        assert_eq!(
            hidden(&basic, "no user with the password correct horse"),
            format!("no user with the password {HIDDEN}")
        );
        assert_eq!(hidden(&basic, "USER:CORRECT HORSE"), HIDDEN);
    }

    proptest! {
        /// Whatever stands around it, nothing of base64 remains that could be decoded to the secret.
        #[test]
        fn a_secret_is_found_within_longer_base64(
            secret in "[!-~]{8,40}", before in proptest::collection::vec(any::<u8>(), 0..20),
            after in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let whole = [before.as_slice(), secret.as_bytes(), after.as_slice()].concat();
            for text in [base64_simd::STANDARD.encode_to_string(&whole), base64_simd::URL_SAFE.encode_to_string(&whole)] {
                prop_assert!(hidden(&secret, &text).contains(HIDDEN), "{} in {}", secret, text);
            }
        }

        #[test]
        fn a_secret_is_gone_and_the_rest_is_as_it_was(secret in "[A-Z]{8,40}", before in "[a-z ]{0,40}", after in "[0-9 ]{0,40}") {
            prop_assert_eq!(hidden(&secret, &format!("{before}{secret}{after}")), format!("{before}{HIDDEN}{after}"));
        }
    }
}
