//! What the operator sets for the page and the widget: their words, colours and links, and what visitors are shown.
//!
//! Values are checked where they are made, so that what is held here can go into a page as it is.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use quarterdeck_contracts::{ImageInfo, sha256};
use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

/// The largest logo that is served.
pub const MAX_LOGO_BYTES: usize = 256 << 10;
const MAX_LABEL_CHARS: usize = 60;
const MAX_URL_BYTES: usize = 500;

/// What the operator sets for the page and the widget. What is not set is left to their own words and colours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageSettings {
    /// The name of the page, in its head and its tab.
    pub title: Option<String>,
    /// Shown beside the title.
    pub logo: Option<Logo>,
    /// The words above an empty conversation.
    pub welcome: Option<String>,
    /// Messages that an empty conversation offers.
    pub suggestions: Vec<String>,
    /// Colours of both, in the light and the dark.
    pub colours: Colours,
    /// Links in the head of the page, in place of those to the API and the deck.
    pub links: Vec<PageLink>,
    /// What visitors are shown of the tools.
    pub show: Shown,
}

/// What visitors are shown of tool calls. What is hidden is not sent to them at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Shown {
    /// Calls. A call that needs approval is always shown.
    pub tool_cards: bool,
    /// What each gate said.
    pub gates: bool,
    /// Arguments and results. The arguments of a call that needs approval are always shown.
    pub json: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Self { tool_cards: true, gates: true, json: true }
    }
}

/// Colours by their use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Colours {
    /// Buttons and links.
    #[schemars(with = "Option<String>")]
    pub accent: Option<Colour>,
    /// Text on the accent.
    #[schemars(with = "Option<String>")]
    pub accent_text: Option<Colour>,
    /// Behind everything.
    #[schemars(with = "Option<String>")]
    pub background: Option<Colour>,
    /// Behind cards and fields.
    #[schemars(with = "Option<String>")]
    pub surface: Option<Colour>,
    #[schemars(with = "Option<String>")]
    pub text: Option<Colour>,
}

impl Colours {
    /// The names of the page's own variables, with the colours that are set or follow from one: text that no one has set must
    /// be readable on a ground that someone has.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, Colour)> {
        let all = [
            ("--accent", self.accent),
            ("--accent-ink", self.accent_text.or(self.accent.map(Colour::readable_text))),
            ("--ground", self.background),
            ("--raised", self.surface.or(self.background)),
            ("--ink", self.text.or(self.background.map(Colour::readable_text))),
        ];
        all.into_iter().filter_map(|(name, colour)| Some((name, colour?)))
    }

    /// Which of the two schemes the ground belongs to; `None` where the user's own choice stands.
    pub(crate) fn is_light(&self) -> Option<bool> {
        let by_text = self.text.map(|text| !text.is_light());
        self.background.map(Colour::is_light).or(by_text)
    }
}

/// A colour in sRGB, with its opacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour([u8; 4]);

impl Colour {
    /// The relative luminance of WCAG, from 0 to 1.
    fn luminance(self) -> f64 {
        let [r, g, b, _] = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    /// Whether black text on it has more contrast than white text.
    fn is_light(self) -> bool {
        let luminance = self.luminance();
        (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05)
    }

    fn readable_text(self) -> Self {
        if self.is_light() { Self([0, 0, 0, 255]) } else { Self([255; 4]) }
    }
}

/// Not a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a colour such as #0d5c6b, #fff or #0d5c6bcc")]
pub struct ColourError;

impl FromStr for Colour {
    type Err = ColourError;

    fn from_str(text: &str) -> Result<Self, ColourError> {
        let digits = text.strip_prefix('#').ok_or(ColourError)?;
        let digits: Option<Vec<u8>> =
            digits.chars().map(|letter| u8::try_from(letter.to_digit(16)?).ok()).collect();
        match digits.ok_or(ColourError)?.as_slice() {
            [r, g, b] => Ok(Self([r * 17, g * 17, b * 17, 255])),
            [r, g, b, a] => Ok(Self([r * 17, g * 17, b * 17, a * 17])),
            [r, s, g, h, b, c] => Ok(Self([r * 16 + s, g * 16 + h, b * 16 + c, 255])),
            [r, s, g, h, b, c, a, d] => Ok(Self([r * 16 + s, g * 16 + h, b * 16 + c, a * 16 + d])),
            _ => Err(ColourError),
        }
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [r, g, b, a] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")?;
        if a == 255 { Ok(()) } else { write!(f, "{a:02x}") }
    }
}

impl Serialize for Colour {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A link in the head of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PageLink {
    pub label: String,
    /// Over https, or a path of this server.
    pub url: String,
}

/// Not a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a label and a URL such as: Imprint https://example.com/imprint")]
pub struct PageLinkError;

impl FromStr for PageLink {
    type Err = PageLinkError;

    /// Reads a label, a space, and a URL.
    fn from_str(text: &str) -> Result<Self, PageLinkError> {
        let (label, url) = text.trim().rsplit_once(' ').ok_or(PageLinkError)?;
        let label = label.trim();
        let is_label =
            (1..=MAX_LABEL_CHARS).contains(&label.chars().count()) && !label.contains(char::is_control);
        let is_link = is_label && (is_own_path(url) || is_https(url));
        is_link.then(|| Self { label: label.to_owned(), url: url.to_owned() }).ok_or(PageLinkError)
    }
}

impl fmt::Display for PageLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.label, self.url)
    }
}

/// A picture beside the title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logo {
    /// Elsewhere, over https.
    Url(String),
    /// A file that this server serves.
    File(LogoFile),
}

/// The bytes of a logo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoFile {
    pub(crate) bytes: Bytes,
    pub(crate) media_type: &'static str,
    /// Of the bytes, so that a browser keeps them until they change.
    pub(crate) version: String,
}

/// Why a logo cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogoError {
    /// The URL is not over https.
    #[error("the URL of a logo begins with https:// and has at most {MAX_URL_BYTES} bytes")]
    Url,
    /// The file is too large.
    #[error("a logo has at most {} KB", MAX_LOGO_BYTES >> 10)]
    TooLarge,
    /// The file is no picture.
    #[error("a logo is a PNG, JPEG, WebP or SVG picture")]
    NotAPicture,
}

impl Logo {
    /// A logo elsewhere.
    pub fn from_url(url: &str) -> Result<Self, LogoError> {
        if is_https(url) { Ok(Self::Url(url.to_owned())) } else { Err(LogoError::Url) }
    }

    /// A logo of these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, LogoError> {
        if bytes.len() > MAX_LOGO_BYTES {
            return Err(LogoError::TooLarge);
        }
        let media_type = match ImageInfo::read(&bytes) {
            Some(info) => info.kind.media_type(),
            None if is_svg(&bytes) => "image/svg+xml",
            None => return Err(LogoError::NotAPicture),
        };
        let version = sha256(&bytes)[..12].to_owned();
        Ok(Self::File(LogoFile { bytes: bytes.into(), media_type, version }))
    }

    /// What an `img` shows.
    pub(crate) fn src(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::File(file) => format!("/api/page/logo?v={}", file.version),
        }
    }
}

fn is_svg(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default().trim_start_matches('\u{feff}').trim_start();
    (text.starts_with("<svg") || text.starts_with("<?xml") || text.starts_with("<!--"))
        && text.contains("<svg")
}

/// A path of this server. Two slashes would lead elsewhere, and browsers read a backslash as one.
fn is_own_path(url: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_graphic() && letter != b'\\';
    url.len() <= MAX_URL_BYTES && url.starts_with('/') && !url.starts_with("//") && url.bytes().all(is_plain)
}

fn is_https(url: &str) -> bool {
    let parsed = Url::parse(url).ok().filter(|_| url.len() <= MAX_URL_BYTES);
    parsed.is_some_and(|url| url.scheme() == "https" && url.username().is_empty() && url.password().is_none())
        && url.bytes().all(|letter| letter.is_ascii_graphic())
}

/// The settings of a running server, which can be replaced.
#[derive(Debug, Clone, Default)]
pub struct PageSettingsHandle(Arc<RwLock<Arc<PageSettings>>>);

impl PageSettingsHandle {
    /// A handle on these settings.
    pub fn new(settings: PageSettings) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(settings))))
    }

    /// The settings as they are now.
    pub fn load(&self) -> Arc<PageSettings> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces them for requests that come later.
    pub fn replace(&self, settings: PageSettings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_colour_is_written_as_a_colour_whatever_was_read(text in "#?[0-9a-fA-F]{0,9}|.{0,12}") {
            if let Ok(colour) = text.parse::<Colour>() {
                let written = colour.to_string();
                let is_plain = written.bytes().all(|letter| letter == b'#' || letter.is_ascii_hexdigit());
                prop_assert!(is_plain && matches!(written.len(), 7 | 9), "{}", written);
                prop_assert_eq!(written.parse::<Colour>(), Ok(colour));
            }
        }
    }

    #[test]
    fn colours_have_three_four_six_or_eight_digits() {
        let read = |text: &str| text.parse::<Colour>().map(|colour| colour.to_string());
        for (text, written) in
            [("#fff", "#ffffff"), ("#0D5C6B", "#0d5c6b"), ("#0d5c6b80", "#0d5c6b80"), ("#1238", "#11223388")]
        {
            assert_eq!(read(text).as_deref(), Ok(written));
        }
        for bad in ["", "#", "fff", "#ff", "#fffff", "red", "#ggg", "#fff;}", "url(x)", "#０００"] {
            assert_eq!(read(bad), Err(ColourError), "{bad}");
        }
    }

    #[test]
    fn text_that_is_not_set_has_contrast_on_a_ground_that_is() {
        let contrast = |one: Colour, other: Colour| {
            let (one, other) = (one.luminance() + 0.05, other.luminance() + 0.05);
            one.max(other) / one.min(other)
        };
        for ground in ["#7a1f3d", "#ffe680", "#777777", "#fff", "#000", "#0d5c6b", "#e33"] {
            let ground: Colour = ground.parse().unwrap();
            assert!(contrast(ground, ground.readable_text()) >= 4.5, "{ground}");
        }
    }

    #[test]
    fn links_are_over_https_or_to_this_server() {
        for good in ["Imprint https://example.com/imprint", "Our shop https://shop.example", "API /docs"] {
            assert_eq!(good.parse::<PageLink>().map(|link| link.to_string()).as_deref(), Ok(good));
        }
        for bad in [
            "https://example.com",
            "Plain http://example.com",
            "Script javascript:alert(1)",
            "Data data:text/html,x",
            "Elsewhere //evil.example",
            "Elsewhere /\\evil.example",
            "User https://ann:secret@example.com",
            "Two\nlines /a\n",
            "",
        ] {
            assert!(bad.parse::<PageLink>().is_err(), "{bad}");
        }
    }

    #[test]
    fn logos_are_pictures_within_a_limit() {
        let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec();
        let logo = Logo::from_bytes(svg).unwrap();
        assert!(logo.src().starts_with("/api/page/logo?v="));
        assert_eq!(Logo::from_bytes(b"<html><svg>".to_vec()), Err(LogoError::NotAPicture));
        assert_eq!(Logo::from_bytes(vec![0; MAX_LOGO_BYTES + 1]), Err(LogoError::TooLarge));
        assert_eq!(Logo::from_url("http://example.com/a.png"), Err(LogoError::Url));
        assert_eq!(Logo::from_url("https://example.com/a.png").unwrap().src(), "https://example.com/a.png");
    }
}
