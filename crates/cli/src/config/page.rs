//! `[page]`: the words, colours and links of the page and the widget, and what visitors are shown of the tools.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use quarterdeck_server::{Logo, MAX_LOGO_BYTES, PageSettings};

use super::kinds::{boolean, colour, line, page_link, short_line, short_list};
use super::reader::{Reader, settings};

const MAX_TITLE_CHARS: usize = 80;
const MAX_WELCOME_CHARS: usize = 500;
const MAX_SUGGESTIONS: usize = 8;
const MAX_SUGGESTION_CHARS: usize = 200;
const MAX_LINKS: usize = 8;

pub(super) fn page(from: &mut Reader) -> PageSettings {
    let mut page = PageSettings::default();
    from.table("page", "What visitors see: the page, and the widget on other sites.");
    page.title = from.optional("title", short_line(MAX_TITLE_CHARS), "The name in its head and its tab");
    page.logo = logo(from);
    page.welcome =
        from.optional("welcome", short_line(MAX_WELCOME_CHARS), "The words above an empty conversation");
    settings! { from;
        "suggestions": short_list(short_line(MAX_SUGGESTION_CHARS), MAX_SUGGESTIONS) => page.suggestions,
            "Messages that an empty conversation offers; the built-in ones when there are none";
        "links": short_list(page_link(), MAX_LINKS) => page.links,
            "Links in its head, in place of those to the API and the deck";
    }
    from.table(
        "page.colours",
        "Its colours, for light and dark alike; those that are not set stay as they are.",
    );
    let colours = &mut page.colours;
    for (name, target, about) in [
        ("accent", &mut colours.accent, "Buttons and links"),
        ("accent_text", &mut colours.accent_text, "Text on the accent"),
        ("background", &mut colours.background, "Behind everything"),
        ("surface", &mut colours.surface, "Behind cards and fields"),
        ("text", &mut colours.text, "Text"),
    ] {
        *target = from.optional(name, colour(), about);
    }
    from.table(
        "page.show",
        "What visitors are shown of tool calls. What is hidden is not sent to them; what they must approve always is.",
    );
    settings! { from;
        "tool_cards": boolean() => page.show.tool_cards, "Calls, with their state";
        "gates": boolean() => page.show.gates, "What each gate said";
        "json": boolean() => page.show.json, "Arguments and results; without them, sources keep id, title and URL";
    }
    page
}

/// A file is read here: a picture that cannot be used is a fault of the configuration.
fn logo(from: &mut Reader) -> Option<Logo> {
    let about = "A picture beside the title: a URL over https, or the path of a PNG, JPEG, WebP or SVG file";
    let given = from.optional("logo", line(), about)?;
    let read = match given.contains("://") {
        true => Logo::from_url(&given).map_err(|error| error.to_string()),
        false => read_file(Path::new(&given))
            .and_then(|bytes| Logo::from_bytes(bytes).map_err(|error| error.to_string())),
    };
    read.inspect_err(|problem| {
        let message = format!("`page.logo` is {given:?}, which cannot be used: {problem}");
        from.add_serve_problem(
            "page.logo",
            message,
            Some("leave the key out to use the built-in mark".into()),
        );
    })
    .ok()
}

/// At most one byte more than is allowed.
fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let limit = MAX_LOGO_BYTES as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
