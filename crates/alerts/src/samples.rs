//! The values of `/metrics` at one time, read from its text format.

use std::collections::{BTreeMap, BTreeSet};

/// Labels by name.
pub(crate) type Labels = BTreeMap<String, String>;

/// How many sets of labels of one series are looked at.
const MAX_SETS: usize = 2_000;

/// The values of some series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    series: BTreeMap<String, BTreeMap<Labels, f64>>,
}

impl Samples {
    /// Reads the series that are wanted and leaves out all others. What is no line of the format is left out too: the text
    /// is our own.
    pub(crate) fn parse(text: &str, wanted: &BTreeSet<String>) -> Self {
        let mut samples = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = &line[..line.find(['{', ' ']).unwrap_or(line.len())];
            if !wanted.contains(name) {
                continue;
            }
            if let Some((labels, value)) = parse_rest(&line[name.len()..]) {
                let sets = samples.series.entry(name.to_owned()).or_default();
                if sets.len() < MAX_SETS {
                    sets.insert(labels, value);
                }
            }
        }
        samples
    }

    pub(crate) fn of(&self, series: &str) -> impl Iterator<Item = (&Labels, f64)> {
        self.series.get(series).into_iter().flatten().map(|(labels, value)| (labels, *value))
    }

    pub(crate) fn get(&self, series: &str, labels: &Labels) -> Option<f64> {
        self.series.get(series)?.get(labels).copied()
    }
}

/// Labels, if there are any, and the value.
fn parse_rest(rest: &str) -> Option<(Labels, f64)> {
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => parse_labels(rest)?,
        None => (Labels::new(), rest),
    };
    Some((labels, value.split_whitespace().next()?.parse().ok()?))
}

/// The labels, and what follows the closing brace.
fn parse_labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, after) = parse_quoted(quoted)?;
        labels.insert(name.to_owned(), value);
        rest = after;
    }
}

fn parse_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Samples {
        Samples::parse(text, &["a".to_owned(), "b".to_owned()].into())
    }

    #[test]
    fn values_are_read_with_their_labels() {
        let samples =
            parse("# TYPE a counter\na 3\nb{x=\"1\",y=\"say \\\"no\\\"\\n, } \\\\\"} 0.5 17\nc 9\nab 1\n");
        let labels: Labels =
            [("x".to_owned(), "1".to_owned()), ("y".to_owned(), "say \"no\"\n, } \\".to_owned())].into();
        assert_eq!(samples.get("a", &Labels::new()), Some(3.0));
        assert_eq!(samples.get("b", &labels), Some(0.5));
        assert_eq!(samples.of("c").count() + samples.of("ab").count(), 0);
    }

    #[test]
    fn infinity_is_a_bound_of_buckets() {
        let samples = parse("b{le=\"+Inf\"} 4\nb{le=\"0.5\"} 2");
        assert_eq!(samples.of("b").count(), 2);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(a|b|\\{|\\}|=|\"|\\\\| |\n|,|1|é){0,200}") {
            parse(&text);
        }
    }
}
