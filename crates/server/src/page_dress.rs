//! Writes the operator's settings into the page: its words before the first frame, its colours as a style of their own whose
//! hash the policy names. What scripts need is in the document too, as data, so that the page asks for nothing more.

use std::fmt::Write;

use serde_json::json;
use url::Url;

use crate::page_settings::{Logo, PageSettings};
use crate::web::{Document, Policy, style_hash};

/// What the page says by itself, and where.
const TITLE: &str = "<title>Quarterdeck</title>";
const HEADING: &str = "> Quarterdeck</h1>";
const WELCOME: &str = "<h2>An agent you can watch at work</h2>";
const WELCOME_MORE: &str =
    "<p>Ask by text or by voice. Every tool call, gate and approval is shown as it happens.</p>";
const LINKS: &str =
    "<a class=\"plain api\" href=\"/docs\">API</a>\n    <a class=\"plain\" href=\"/deck\">Deck</a>";
const END_OF_HEAD: &str = "</head>";

impl Document {
    /// The page with the operator's words, colours and links, and the sites that may frame it.
    pub(crate) fn dress(&self, page: &PageSettings, frame_ancestors: &[String]) -> Self {
        let mut policy = Policy { frame_ancestors: frame_ancestors.to_vec(), ..self.policy.clone() };
        let mut html = self.html.clone();
        let mut put = |place: &str, text: String| html = html.replacen(place, &text, 1);
        if let Some(title) = &page.title {
            put(TITLE, format!("<title>{}</title>", escape(title)));
            put(HEADING, format!("> {}</h1>", escape(title)));
        }
        if let Some(welcome) = &page.welcome {
            put(WELCOME, format!("<h2>{}</h2>", escape(welcome)));
            put(WELCOME_MORE, String::new());
        }
        if !page.links.is_empty() {
            put(LINKS, links(page));
        }
        if let Some(logo) = &page.logo {
            put("<h1><img src=\"", format!("<h1><img src=\"{}\" data-own=\"", escape(&logo.src())));
            policy.images.extend(image_origin(logo));
        }
        let mut head = String::new();
        if let Some(style) = colours(page) {
            policy.styles.push(style_hash(&style));
            // Writing to a string cannot fail.
            let _ = writeln!(head, "<style>{style}</style>");
        }
        let _ = writeln!(
            head,
            "<script type=\"application/json\" id=\"quarterdeck-page-settings\">{}</script>",
            data(page)
        );
        put(END_OF_HEAD, format!("{head}{END_OF_HEAD}"));
        Self { html, policy }
    }
}

fn links(page: &PageSettings) -> String {
    let link = |link: &crate::PageLink| {
        format!("<a class=\"plain\" href=\"{}\">{}</a>", escape(&link.url), escape(&link.label))
    };
    page.links.iter().map(link).collect::<Vec<_>>().join("\n    ")
}

/// For both schemes: an operator sets the colours of a brand, not of a time of day. A ground that is set brings the whole
/// scheme that it belongs to, and tints follow the colours they stand on.
fn colours(page: &PageSettings) -> Option<String> {
    let set: Vec<_> = page.colours.variables().collect();
    if set.is_empty() {
        return None;
    }
    let mut rules = page.colours.is_light().map_or_else(String::new, scheme);
    rules.extend(set.iter().map(|(name, colour)| format!("{name}:{colour};")));
    let has = |name: &str| set.iter().any(|(set, _)| *set == name);
    let mut follow = |name: &str, of: &str, share: u32, on: &str| {
        if has(of) || has(on) {
            let _ = write!(rules, "{name}:color-mix(in srgb,var({of}) {share}%,var({on}));");
        }
    };
    follow("--tint", "--accent", 12, "--ground");
    follow("--sunk", "--ink", 5, "--ground");
    follow("--line", "--ink", 14, "--ground");
    follow("--quiet", "--ink", 72, "--ground");
    Some(format!(":root:root{{{rules}}}"))
}

/// Every colour of the page's own style is a `light-dark()`, which follows the scheme.
fn scheme(is_light: bool) -> String {
    format!("color-scheme:{};", if is_light { "light" } else { "dark" })
}

/// What the page's modules read. No `<` is in it, so that nothing ends the element but its own end.
fn data(page: &PageSettings) -> String {
    json!({ "suggestions": page.suggestions, "show": page.show }).to_string().replace('<', "\\u003c")
}

fn image_origin(logo: &Logo) -> Option<String> {
    let Logo::Url(url) = logo else { return None };
    Some(Url::parse(url).ok()?.origin().ascii_serialization())
}

pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::page_settings::{Colours, Shown};
    use crate::web::PAGE;

    use super::*;

    /// Another text in the page would leave a setting without effect.
    #[test]
    fn every_place_for_a_setting_is_in_the_page_once() {
        for place in [TITLE, HEADING, WELCOME, WELCOME_MORE, LINKS, "<h1><img src=\"", END_OF_HEAD] {
            assert_eq!(PAGE.html.matches(place).count(), 1, "{place}");
        }
    }

    #[test]
    fn settings_are_text_in_the_page_whatever_they_say() {
        let evil = "</title><script>alert(1)</script>\"'&";
        let page = PageSettings {
            title: Some(evil.into()),
            welcome: Some(evil.into()),
            suggestions: vec![evil.into()],
            links: vec!["<b>Imprint</b> https://example.com/?a=1&b=2".parse().unwrap()],
            logo: Some(Logo::from_url("https://cdn.example/logo.png").unwrap()),
            show: Shown { json: false, ..Shown::default() },
            ..PageSettings::default()
        };
        let dressed = PAGE.dress(&page, &[]);
        assert!(!dressed.html.contains("<script>") && !dressed.html.contains("<b>"));
        assert!(dressed.html.contains("<title>&lt;/title&gt;&lt;script&gt;alert(1)"));
        assert!(dressed.html.contains("href=\"https://example.com/?a=1&amp;b=2\">&lt;b&gt;Imprint"));
        assert!(!dressed.html.contains("href=\"/deck\""), "the operator's links stand in its place");
        assert!(dressed.html.contains(r#""show":{"toolCards":true,"gates":true,"json":false}"#));
        assert!(dressed.policy.header().contains("img-src 'self' data: https://cdn.example;"));
    }

    #[test]
    fn colours_are_a_style_that_the_policy_names() {
        let accent = Some("#a03".parse().unwrap());
        let page =
            PageSettings { colours: Colours { accent, ..Colours::default() }, ..PageSettings::default() };
        let dressed = PAGE.dress(&page, &[]);
        let style = dressed.html.split("<style>").nth(2).unwrap().split("</style>").next().unwrap();
        assert!(style.starts_with(":root:root{--accent:#aa0033;--accent-ink:#ffffff;--tint:"), "{style}");
        assert!(dressed.policy.header().contains(&format!("'sha256-{}'", style_hash(style))));
        assert_eq!(PAGE.dress(&PageSettings::default(), &[]).policy, PAGE.policy);
    }

    #[test]
    fn a_ground_brings_the_scheme_it_belongs_to() {
        let style = |background: &str| {
            let background = Some(background.parse().unwrap());
            let colours = Colours { background, ..Colours::default() };
            colours_of(colours)
        };
        let (light, dark) = (style("#fff8f0"), style("#101010"));
        assert!(light.contains("color-scheme:light;--ground:#fff8f0"), "{light}");
        assert!(dark.contains("color-scheme:dark;--ground:#101010"), "{dark}");
        assert!(light.contains("--ink:#000000") && dark.contains("--ink:#ffffff"));
    }

    fn colours_of(colours: Colours) -> String {
        super::colours(&PageSettings { colours, ..PageSettings::default() }).unwrap()
    }

    #[test]
    fn the_page_is_framed_by_the_listed_sites_alone() {
        let ancestors = |sites: &[&str]| {
            let sites: Vec<String> = sites.iter().map(|site| (*site).to_owned()).collect();
            let header = PAGE.dress(&PageSettings::default(), &sites).policy.header();
            header.split("; ").find(|part| part.starts_with("frame-ancestors")).unwrap().to_owned()
        };
        assert_eq!(ancestors(&[]), "frame-ancestors 'none'");
        assert_eq!(
            ancestors(&["https://shop.example", "https://*.example.org"]),
            "frame-ancestors 'self' https://shop.example https://*.example.org"
        );
    }
}
