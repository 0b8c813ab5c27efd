//! Links from one record to another: `[text](type:slug)`.

use super::fields::find_kind;

/// The ids that a text links to, with their lines counted from 1.
pub(super) fn internal_links(text: &str) -> Vec<(&str, usize)> {
    let mut links = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices("](") {
            let Some((target, _)) = line[at + 2..].split_once(')') else { continue };
            if target
                .split_once(':')
                .is_some_and(|(kind, slug)| find_kind(kind).is_some() && !slug.is_empty())
            {
                links.push((target, number + 1));
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_records_are_internal() {
        let text = "[A](doc:a) and [web](https://example.org)\n[B](person:b-c), [x](mailto:a@b)";
        assert_eq!(internal_links(text), [("doc:a", 1), ("person:b-c", 2)]);
    }
}
