//! Limits how deeply code may be nested, before the parser sees it. The parser calls itself for what lies within something
//! else, and no one can catch a stack that overflows; on nested parentheses that might be parameters it also takes
//! quadratic time and memory.
//!
//! Brackets in texts, comments and regular expressions do not count. Whether a `/` begins a regular expression depends on
//! the grammar, so where both are possible, the text is read in both ways from there on. A reading ends where it can be
//! no program. That keeps the limit certain: whichever way the parser reads, one of ours has counted it.

/// Brackets within each other, those around the text within `${}` included.
const MAX_BRACKETS: usize = 64;
/// Signs `<` that no `>` has closed. Many are comparisons, so the limit is higher.
const MAX_ANGLES: usize = 256;
/// Words and signs in a row: `a + b + c`, `!!!a`, `a => b => c`. Each may lie within the one before.
const MAX_LINKS: usize = 20_000;
/// A chain of `else if` goes on after a `;`.
const MAX_ELSES: usize = 2_000;
/// More ways to read a text than a program has.
const MAX_READINGS: usize = 16;

/// Where a text is nested too deeply, as the offset of the character that is one too many.
pub(crate) fn check(source: &str) -> Result<(), u32> {
    let mut readings = vec![Reading::new(source)];
    let mut forks = Vec::new();
    let mut characters = source.char_indices().peekable();
    while let Some((offset, character)) = characters.next() {
        let step =
            Step { character, next: characters.peek().map(|(_, next)| *next), rest: &source[offset..] };
        readings.retain_mut(|reading| reading.take(&step, &mut forks));
        readings.append(&mut forks);
        if readings.len() > 1 {
            merge(&mut readings);
        }
        if readings.len() > MAX_READINGS || readings.iter().any(Reading::is_too_deep) {
            return Err(u32::try_from(offset).unwrap_or(u32::MAX));
        }
    }
    Ok(())
}

/// Drops readings that have come to the same as another.
fn merge(readings: &mut Vec<Reading>) {
    let mut at = 1;
    while at < readings.len() {
        let (before, rest) = readings.split_at(at);
        if before.contains(&rest[0]) {
            readings.remove(at);
        } else {
            at += 1;
        }
    }
}

/// A character and what follows it.
struct Step<'a> {
    character: char,
    next: Option<char>,
    /// From the character on.
    rest: &'a str,
}

/// One way to read the text up to a character.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reading {
    mode: Mode,
    /// Characters that belong to what was read before them.
    skipped: usize,
    slash: Slash,
    last: Token,
    /// The brackets that are open, with the file itself as the first.
    levels: Vec<Level>,
    total: Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Code,
    /// A text in quotes.
    Quoted(char),
    Template,
    LineComment,
    BlockComment,
    Regex,
    /// Brackets in a regular expression, in which a `/` does not end it.
    RegexClass,
}

/// What a `/` is that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slash {
    /// Nothing to divide stands before it.
    Regex,
    /// A value stands before it on the same line.
    Division,
    Either,
}

/// What was read last, comments and spaces aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// A word that has ended, so that another may begin.
    EndedWord(Word),
    Sign(char),
    /// The first of two signs that are one: `++`, `--`.
    Doubled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Parentheses after it may be followed by a statement.
    Condition,
    /// An expression may follow it.
    Operator,
    Else,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    closes_with: char,
    is_in_template: bool,
    is_condition: bool,
    counts: Counts,
}

/// What may lie within each other between two brackets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    angles: usize,
    links: usize,
    elses: usize,
}

impl Reading {
    fn new(source: &str) -> Self {
        Self {
            mode: if source.starts_with("#!") { Mode::LineComment } else { Mode::Code },
            skipped: 0,
            slash: Slash::Regex,
            last: Token::Sign(';'),
            levels: vec![Level {
                closes_with: '\0',
                is_in_template: false,
                is_condition: false,
                counts: Counts::default(),
            }],
            total: Counts::default(),
        }
    }

    fn is_too_deep(&self) -> bool {
        self.levels.len() > MAX_BRACKETS
            || self.total.angles > MAX_ANGLES
            || self.total.links > MAX_LINKS
            || self.total.elses > MAX_ELSES
    }

    /// Reads one character; false when no program reads like this. The other way to read it goes to `forks`.
    fn take(&mut self, step: &Step<'_>, forks: &mut Vec<Self>) -> bool {
        if self.skipped > 0 {
            self.skipped -= 1;
            return true;
        }
        let is_line_end = matches!(step.character, '\n' | '\r' | '\u{2028}' | '\u{2029}');
        match self.mode {
            Mode::Code if is_line_end => self.end_line(),
            Mode::Code => return self.take_code(step, forks),
            Mode::LineComment if is_line_end => {
                self.mode = Mode::Code;
                self.end_line();
            }
            Mode::BlockComment if is_line_end => self.end_line(),
            Mode::BlockComment if step.rest.starts_with("*/") => self.enter(Mode::Code, 1),
            Mode::LineComment | Mode::BlockComment => {}
            _ if step.character == '\\' => self.skipped = if step.rest.starts_with("\\\r\n") { 2 } else { 1 },
            Mode::Template if step.character == '`' => self.mode = Mode::Code,
            Mode::Template if step.rest.starts_with("${") => {
                self.open('}', true);
                self.enter(Mode::Code, 1);
            }
            Mode::Template => {}
            Mode::Quoted(quote) if step.character == quote => self.mode = Mode::Code,
            // U+2028 and U+2029 may stand in a text.
            Mode::Quoted(_) => return !matches!(step.character, '\n' | '\r'),
            _ if is_line_end => return false,
            Mode::Regex if step.character == '/' => self.mode = Mode::Code,
            Mode::Regex if step.character == '[' => self.mode = Mode::RegexClass,
            Mode::RegexClass if step.character == ']' => self.mode = Mode::Regex,
            Mode::Regex | Mode::RegexClass => {}
        }
        true
    }

    fn enter(&mut self, mode: Mode, skipped: usize) {
        (self.mode, self.skipped) = (mode, skipped);
    }

    /// A statement may have ended.
    fn end_line(&mut self) {
        self.end_word();
        if self.slash == Slash::Division {
            self.slash = Slash::Either;
        }
    }

    fn end_word(&mut self) {
        if let Token::Word(word) = self.last {
            self.last = Token::EndedWord(word);
        }
    }

    fn take_code(&mut self, step: &Step<'_>, forks: &mut Vec<Self>) -> bool {
        let character = step.character;
        match character {
            _ if character.is_whitespace() || character == '\u{feff}' => self.end_word(),
            '/' if step.next == Some('/') => {
                self.end_word();
                self.mode = Mode::LineComment;
            }
            '/' if step.next == Some('*') => {
                self.end_word();
                self.enter(Mode::BlockComment, 1);
            }
            '<' if step.rest.starts_with("<!--") => {
                // At the beginning of a line, the parser reports it and takes it for a comment.
                let mut comment = self.clone();
                comment.mode = Mode::LineComment;
                forks.push(comment);
                self.take_sign(step);
            }
            '/' => self.take_slash(forks),
            '\'' | '"' => self.begin_value(Mode::Quoted(character)),
            '`' => self.begin_value(Mode::Template),
            '(' => self.open(')', false),
            '[' => self.open(']', false),
            '{' => self.open('}', false),
            ')' | ']' | '}' => return self.close(character),
            _ if is_word(character) => self.take_word(step.rest),
            _ => self.take_sign(step),
        }
        true
    }

    /// A regular expression, a division, or perhaps either.
    fn take_slash(&mut self, forks: &mut Vec<Self>) {
        if self.slash != Slash::Division {
            let mut regex = self.clone();
            regex.begin_value(Mode::Regex);
            if self.slash == Slash::Regex {
                *self = regex;
                return;
            }
            forks.push(regex);
        }
        self.add_link();
        (self.slash, self.last) = (Slash::Regex, Token::Sign('/'));
    }

    fn begin_value(&mut self, mode: Mode) {
        self.add_link();
        self.mode = mode;
        (self.slash, self.last) = (Slash::Division, Token::Sign('"'));
    }

    fn take_word(&mut self, rest: &str) {
        if matches!(self.last, Token::Word(_)) {
            return;
        }
        self.add_link();
        let word = Word::of(rest);
        self.last = Token::Word(word);
        self.slash = if word == Word::Other { Slash::Division } else { Slash::Either };
        if word == Word::Else
            && let Some(level) = self.levels.last_mut()
        {
            level.counts.elses += 1;
            self.total.elses += 1;
        }
    }

    fn take_sign(&mut self, step: &Step<'_>) {
        self.add_link();
        let is_arrow = step.character == '>' && self.last == Token::Sign('=');
        self.count_sign(step, is_arrow);
        let before = std::mem::replace(&mut self.last, Token::Sign(step.character));
        self.slash = match step.character {
            // `a++` is a value, and `++a` is still to come.
            '+' | '-' if before == Token::Doubled => self.slash,
            '+' | '-' if step.next == Some(step.character) => {
                self.last = Token::Doubled;
                self.slash
            }
            // `a!` is a value, and `!a` is still to come.
            '!' => self.slash,
            // Types in angle brackets end with it as well.
            '>' if !is_arrow => Slash::Either,
            // `1.` is a number.
            '.' => Slash::Either,
            _ => Slash::Regex,
        };
    }

    fn count_sign(&mut self, step: &Step<'_>, is_arrow: bool) {
        let Some(level) = self.levels.last_mut() else { return };
        match step.character {
            ';' | ',' => {
                self.total.links -= std::mem::take(&mut level.counts.links);
                // Types in angle brackets have commas between them.
                if step.character == ';' {
                    self.total.angles -= std::mem::take(&mut level.counts.angles);
                }
            }
            '<' if step.next != Some('=') => {
                level.counts.angles += 1;
                self.total.angles += 1;
            }
            '>' if !is_arrow && level.counts.angles > 0 => {
                level.counts.angles -= 1;
                self.total.angles -= 1;
            }
            _ => {}
        }
    }

    fn add_link(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.counts.links += 1;
            self.total.links += 1;
        }
    }

    fn open(&mut self, closes_with: char, is_in_template: bool) {
        self.add_link();
        let is_condition =
            matches!(self.last, Token::Word(Word::Condition) | Token::EndedWord(Word::Condition));
        self.levels.push(Level { closes_with, is_in_template, is_condition, counts: Counts::default() });
        (self.slash, self.last) = (Slash::Regex, Token::Sign('('));
    }

    fn close(&mut self, character: char) -> bool {
        let Some(level) = self.levels.pop_if(|level| level.closes_with == character) else { return false };
        self.total.angles -= level.counts.angles;
        self.total.links -= level.counts.links;
        self.total.elses -= level.counts.elses;
        if level.is_in_template {
            self.mode = Mode::Template;
        }
        self.last = Token::Sign(character);
        self.slash = match character {
            // A block may end with it.
            '}' if !level.is_in_template => Slash::Either,
            ')' if level.is_condition => Slash::Either,
            _ => Slash::Division,
        };
        true
    }
}

impl Word {
    /// The word that a text begins with.
    fn of(text: &str) -> Self {
        match text.split(|character| !is_word(character)).next().unwrap_or_default() {
            "if" | "while" | "for" | "with" | "await" => Self::Condition,
            "else" => Self::Else,
            "return" | "typeof" | "case" | "in" | "of" | "void" | "delete" | "throw" | "new" | "do"
            | "instanceof" | "yield" | "extends" | "default" => Self::Operator,
            _ => Self::Other,
        }
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '#' | '@' | '\\') || !character.is_ascii()
}
