//! Texts of a wanted length, format or pattern.

use serde_json::Value;

use super::view::View;

const MAX_TEXT_CHARS: usize = 2_000;

/// A text that should fit.
pub(super) fn sound(view: &View<'_>) -> String {
    if let Some(pattern) = view.get("pattern").and_then(Value::as_str) {
        return sized(matching(pattern), view);
    }
    match view.get("format").and_then(Value::as_str).and_then(formatted) {
        Some(text) => text.to_owned(),
        None => sized("x".to_owned(), view),
    }
}

/// `text`, filled up or cut to the wanted length.
pub(super) fn sized(mut text: String, view: &View<'_>) -> String {
    let fewest = (view.most("minLength").unwrap_or(0.0) as usize).min(MAX_TEXT_CHARS);
    let most = view.least("maxLength").map_or(MAX_TEXT_CHARS, |most| most as usize);
    let length = text.chars().count();
    if length < fewest {
        let filler = text.chars().last().filter(|c| c.is_alphanumeric()).unwrap_or('x');
        text.extend(std::iter::repeat_n(filler, fewest - length));
    }
    if length > most {
        text = text.chars().take(most).collect();
    }
    text
}

fn formatted(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2026-01-13",
        "time" | "iso-time" => "09:00:00Z",
        "date-time" | "iso-date-time" => "2026-01-13T09:00:00Z",
        "duration" => "PT1H",
        "email" | "idn-email" => "user@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "url" | "iri" | "uri-reference" | "iri-reference" | "uri-template" => "https://example.com/",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        "json-pointer" => "/a",
        "json-pointer-uri-fragment" => "#/a",
        "relative-json-pointer" => "0/a",
        "regex" => "a",
        "byte" => "eA==",
        _ => return None,
    })
}

/// A text that matches a pattern of the common kind: literals, classes, groups, repetitions. Lookaround and
/// back-references are passed over.
pub(super) fn matching(pattern: &str) -> String {
    let characters: Vec<char> = pattern.chars().collect();
    let mut reader = Reader { characters: &characters, next: 0 };
    let mut text = reader.alternatives(0);
    text.truncate(text.char_indices().nth(MAX_TEXT_CHARS).map_or(text.len(), |(end, _)| end));
    text
}

struct Reader<'a> {
    characters: &'a [char],
    next: usize,
}

impl Reader<'_> {
    /// Reads to the end of a group; only its first alternative counts.
    fn alternatives(&mut self, depth: usize) -> String {
        let first = self.sequence(depth);
        while self.take('|') {
            self.sequence(depth);
        }
        first
    }

    fn sequence(&mut self, depth: usize) -> String {
        let mut text = String::new();
        while let Some(character) = self.peek() {
            if matches!(character, '|' | ')') {
                break;
            }
            self.next += 1;
            let piece = match character {
                '^' | '$' => continue,
                '(' => self.group(depth),
                '[' => self.class().into(),
                '\\' => self.escape(),
                '.' => "x".to_owned(),
                literal => literal.into(),
            };
            let times = self.times();
            if text.len() + piece.len() * times <= 2 * MAX_TEXT_CHARS {
                text.push_str(&piece.repeat(times));
            }
        }
        text
    }

    fn group(&mut self, depth: usize) -> String {
        let mut counts = depth < 32;
        if self.take('?') {
            let lookahead = self.take('=') | self.take('!');
            if self.take('<') {
                counts &= !(self.take('=') | self.take('!'));
                while counts && self.peek().is_some_and(|c| c != '>') {
                    self.next += 1;
                }
                self.take('>');
            }
            counts &= !lookahead;
            self.take(':');
        }
        let inner = if depth < 32 { self.alternatives(depth + 1) } else { String::new() };
        self.take(')');
        if counts { inner } else { String::new() }
    }

    /// The first member of a class; for a negated one, the first of a few that it does not exclude.
    fn class(&mut self) -> char {
        let negated = self.take('^');
        let mut members: Vec<(char, char)> = Vec::new();
        while let Some(character) = self.peek() {
            self.next += 1;
            let low = match character {
                ']' => break,
                '\\' => self.escape().chars().next().unwrap_or('x'),
                literal => literal,
            };
            let is_range =
                self.peek() == Some('-') && self.characters.get(self.next + 1).is_some_and(|c| *c != ']');
            let high = if is_range {
                self.next += 2;
                self.characters.get(self.next - 1).copied().unwrap_or(low)
            } else {
                low
            };
            members.push((low, high));
        }
        let excluded = |c: &char| members.iter().any(|(low, high)| (low..=high).contains(&c));
        if negated {
            return ['x', '0', 'A', '_', '!'].into_iter().find(|c| !excluded(c)).unwrap_or('~');
        }
        members.first().map_or('x', |(low, _)| *low)
    }

    fn escape(&mut self) -> String {
        let Some(character) = self.peek() else { return String::new() };
        self.next += 1;
        match character {
            'd' => "0".to_owned(),
            'w' | 'S' | 'D' => "x".to_owned(),
            's' => " ".to_owned(),
            'W' => "-".to_owned(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            'b' | 'B' => String::new(),
            literal => literal.into(),
        }
    }

    /// How often the piece just read is repeated at least; an optional one is left out.
    fn times(&mut self) -> usize {
        let times = match self.peek() {
            Some('*' | '?') => 0,
            Some('+') => 1,
            Some('{') => match self.counted() {
                Some(times) => times,
                None => return 1,
            },
            _ => return 1,
        };
        self.next += 1;
        self.take('?');
        times
    }

    /// Reads `{2,5}` up to its closing brace, or nothing when the brace is a literal.
    fn counted(&mut self) -> Option<usize> {
        let inside: String =
            self.characters.get(self.next + 1..)?.iter().take_while(|c| **c != '}').collect();
        let fewest: usize = inside.split(',').next()?.parse().ok()?;
        self.next += inside.chars().count() + 1;
        Some(fewest.min(MAX_TEXT_CHARS))
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.next).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.next += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_patterns_get_a_matching_text() {
        for (pattern, text) in [
            ("^[a-zA-Z]{2}$", "aa"),
            (r"^\d{4}-\d{2}-\d{2}$", "0000-00-00"),
            ("^(GET|POST)$", "GET"),
            ("^(?:a|b)+c?$", "a"),
            (r"^[^\s@]+@[^\s@]+\.[a-z]{2,}$", "x@x.aa"),
            ("^(?<name>x{3})$", "xxx"),
            ("(?=a)b", "b"),
            ("a{", "a{"),
            ("", ""),
        ] {
            assert_eq!(matching(pattern), text, "{pattern}");
        }
    }

    #[test]
    fn odd_patterns_do_no_harm() {
        for pattern in ["(", "[", "\\", "((((", "a{99999999999}", "(a{999}){999}", "[^", "(?<", "x{1,", ")a"]
        {
            assert!(matching(pattern).len() <= 3 * MAX_TEXT_CHARS, "{pattern}");
        }
    }
}
