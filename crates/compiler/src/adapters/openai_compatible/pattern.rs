//! Patterns as a grammar of JSON text can have them.
//!
//! llama.cpp wants a pattern from `^` to `$`, knows few of the signs, and copies classes into a grammar of the text
//! *between the quotes*: a `.` would match the quote that ends the string. So a pattern is written anew: anchored at both
//! ends, classes spelt out, and nothing in it that matches a quote, a backslash or a control character. It admits less
//! than the original, by exactly those, and never more. What cannot be written so is left out.

/// What may stand where the original says nothing.
const FREE: &str = r#"[^"\\\x00-\x1F]"#;
/// What a dot matches of it.
const DOT: &str = r#"[^"\\\x00-\x1F\u2028\u2029]"#;
/// The most that a grammar counts to.
const MAX_REPETITIONS: u32 = 1_999;

/// The same pattern from `^` to `$`, or `None` when it cannot be written for a grammar.
pub fn anchored(pattern: &str) -> Option<String> {
    let (body, is_start) = match pattern.strip_prefix('^') {
        Some(body) => (body, true),
        None => (pattern, false),
    };
    let (body, is_end) = match body.strip_suffix('$') {
        Some(before) if !ends_in_escape(before) => (before, true),
        _ => (body, false),
    };
    let mut writer =
        Writer { rest: body.chars().peekable(), out: String::new(), depth: 0, may_repeat: false };
    writer.write()?;
    let open = |is_fixed: bool| if is_fixed { String::new() } else { format!("{FREE}*") };
    Some(format!("^{}{}{}$", open(is_start), writer.out, open(is_end)))
}

/// Whether what follows this text is escaped by its last backslash.
fn ends_in_escape(text: &str) -> bool {
    text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

struct Writer<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    out: String,
    depth: usize,
    /// Whether something stands before that a count can follow.
    may_repeat: bool,
}

impl Writer<'_> {
    fn write(&mut self) -> Option<()> {
        let mut at_start = true;
        while let Some(c) = self.rest.next() {
            match c {
                '(' => {
                    self.group()?;
                    (at_start, self.may_repeat) = (true, false);
                    continue;
                }
                // Nothing between two bars is nothing that a grammar has a sign for.
                ')' | '|' if at_start => return None,
                ')' => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.put(")", true);
                }
                // Each side of `^a|b$` has only one anchor, whatever its first and last sign say.
                '|' if self.depth == 0 => return None,
                '|' => {
                    self.put("|", false);
                    at_start = true;
                    continue;
                }
                '*' | '+' | '?' => self.repeat(c.to_string())?,
                '{' => self.count()?,
                '[' => self.class()?,
                '.' => self.put(DOT, true),
                '\\' => self.escape()?,
                '^' | '$' | ']' | '}' | '"' => return None,
                c if c.is_control() => return None,
                c => self.put(&c.to_string(), true),
            }
            at_start = false;
        }
        (self.depth == 0).then_some(())
    }

    fn put(&mut self, text: &str, may_repeat: bool) {
        self.out.push_str(text);
        self.may_repeat = may_repeat;
    }

    /// A group; its name and whether it is captured make no difference to what it matches.
    fn group(&mut self) -> Option<()> {
        self.depth += 1;
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next()? {
                ':' => {}
                // A name, and not a look behind.
                '<' if self.rest.peek().is_some_and(|c| !matches!(c, '=' | '!')) => {
                    self.rest.find(|c| *c == '>')?;
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn repeat(&mut self, sign: String) -> Option<()> {
        if !self.may_repeat {
            return None;
        }
        // Which of several matches is preferred makes no difference to whether there is one.
        self.rest.next_if_eq(&'?');
        self.put(&sign, false);
        Some(())
    }

    fn count(&mut self) -> Option<()> {
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '}' => break,
                c @ ('0'..='9' | ',') if text.len() < 16 => text.push(c),
                _ => return None,
            }
        }
        let numbers = text.split(',').filter(|number| !number.is_empty());
        for number in numbers {
            number.parse().ok().filter(|times: &u32| *times <= MAX_REPETITIONS)?;
        }
        if text.is_empty() || text.starts_with(',') {
            return None;
        }
        self.repeat(format!("{{{text}}}"))
    }

    /// An escaped sign, outside a class.
    fn escape(&mut self) -> Option<()> {
        let text = match self.rest.next()? {
            'd' => "[0-9]".to_owned(),
            'w' => "[A-Za-z0-9_]".to_owned(),
            c @ ('[' | ']') => format!("[\\{c}]"),
            // As a class, because a count after it would otherwise be read as one of all letters before it.
            c @ ('.' | '(' | ')' | '|' | '{' | '}' | '*' | '+' | '?' | '$' | '/' | '-') => format!("[{c}]"),
            _ => return None,
        };
        self.put(&text, true);
        Some(())
    }

    fn class(&mut self) -> Option<()> {
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let (mut inside, mut has_dash) = (String::new(), false);
        loop {
            let c = self.rest.next()?;
            let low = match c {
                ']' => break,
                '\\' => match self.rest.next()? {
                    'd' => {
                        inside.push_str("0-9");
                        continue;
                    }
                    'w' => {
                        inside.push_str("A-Za-z0-9_");
                        continue;
                    }
                    c @ ('[' | ']' | '.' | '/' | '(' | ')' | '|' | '{' | '}' | '*' | '+' | '?' | '$'
                    | '-') => c,
                    _ => return None,
                },
                c => c,
            };
            if low == '-' {
                has_dash = true;
                continue;
            }
            let high = self.range_end()?;
            add_range(&mut inside, low, high, is_negated)?;
        }
        // A dash stands for itself only at the end.
        let dash = if has_dash { "-" } else { "" };
        let text = match is_negated {
            true => format!(r#"[^{inside}"\\\x00-\x1F{dash}]"#),
            false if inside.is_empty() && !has_dash => return None,
            false => format!("[{inside}{dash}]"),
        };
        self.put(&text, true);
        Some(())
    }

    /// The end of a range, when one begins here: `Some(None)` when none does, `None` when it cannot be written.
    fn range_end(&mut self) -> Option<Option<char>> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || ahead.peek() == Some(&']') {
            return Some(None);
        }
        self.rest.next();
        match self.rest.next()? {
            '\\' | '[' => None,
            high => Some(Some(high)),
        }
    }
}

/// Adds one sign or a range to a class. One that lists what is allowed must not allow what would end the string.
fn add_range(inside: &mut String, low: char, high: Option<char>, is_negated: bool) -> Option<()> {
    let end = high.unwrap_or(low);
    let ends_text = |c: char| (low..=end).contains(&c);
    if low > end || low.is_control() || (!is_negated && (ends_text('"') || ends_text('\\'))) {
        return None;
    }
    // `^` would negate at the beginning of a class, and has no escape in a grammar.
    if low == '^' || end == '^' {
        return None;
    }
    push_sign(inside, low);
    if let Some(high) = high {
        inside.push('-');
        push_sign(inside, high);
    }
    Some(())
}

fn push_sign(inside: &mut String, c: char) {
    if matches!(c, '[' | ']' | '\\') {
        inside.push('\\');
    }
    inside.push(c);
}
