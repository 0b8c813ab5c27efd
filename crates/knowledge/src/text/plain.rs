//! Markdown as it is read aloud: without the targets of links and the marks of headings.

/// The text without link targets, heading marks and emphasis. It is what is indexed and quoted; the record keeps its
/// text.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let unmarked = line.trim_start_matches('#');
        let line = if unmarked.len() < line.len() && unmarked.starts_with(' ') {
            unmarked.trim_start()
        } else {
            line
        };
        without_targets(line, &mut plain);
    }
    plain
}

fn without_targets(line: &str, plain: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let Some(end) = rest[at..].find(')') else { break };
        let Some(open) = rest[..at].rfind('[') else {
            plain.push_str(&rest[..at + 2]);
            rest = &rest[at + 2..];
            continue;
        };
        push(&rest[..open], plain);
        push(&rest[open + 1..at], plain);
        rest = &rest[at + end + 1..];
    }
    push(rest, plain);
}

fn push(text: &str, plain: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find("**") {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 2..];
    }
    plain.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_words() {
        let text =
            "# Title\nSee [the **spiral**](doc:ekman-spiral) and [x](https://e.org/a) [y].\n#tag a](b) [z](";
        assert_eq!(plain(text), "Title\nSee the spiral and x [y].\n#tag a](b) [z](");
    }
}
