//! Many strings in one piece of memory: a string of its own costs three times what a word is long.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Strings {
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Strings {
    /// Room for so many strings of so many bytes in all.
    pub(crate) fn with_capacity(strings: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::with_capacity(strings) }
    }

    /// From the text of all and where each ends; `None` if those places do not divide it.
    pub(crate) fn from_parts(text: String, ends: Vec<usize>) -> Option<Self> {
        let divides = ends.is_sorted()
            && ends.last().copied().unwrap_or(0) == text.len()
            && ends.iter().all(|end| text.is_char_boundary(*end));
        divides.then_some(Self { text, ends })
    }

    /// The text of all, and where each ends.
    pub(crate) fn parts(&self) -> (&str, &[usize]) {
        (&self.text, &self.ends)
    }

    pub(crate) fn push(&mut self, string: &str) {
        self.text.push_str(string);
        self.ends.push(self.text.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> &str {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[begin..self.ends[at]]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.get(at))
    }

    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Strings that are found by what they are.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    strings: Strings,
    /// One more than the number of the string whose hash leads here, or nothing. Never more than half full.
    table: Vec<u32>,
}

impl Lexicon {
    /// From strings that are all different.
    pub(crate) fn from_strings(strings: Strings) -> Self {
        let mut lexicon = Self { strings, table: Vec::new() };
        lexicon.spread(lexicon.strings.len());
        lexicon
    }

    pub(crate) fn strings(&self) -> &Strings {
        &self.strings
    }

    pub(crate) fn find(&self, string: &str) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        self.table[self.place(string)].checked_sub(1)
    }

    /// The number of a string, which is taken in if it is new.
    pub(crate) fn insert(&mut self, string: &str) -> u32 {
        if (self.strings.len() + 1) * 2 > self.table.len() {
            self.spread((self.strings.len() + 1) * 2);
        }
        let place = self.place(string);
        match self.table[place].checked_sub(1) {
            Some(number) => number,
            None => {
                self.strings.push(string);
                self.table[place] = self.strings.len() as u32;
                self.table[place] - 1
            }
        }
    }

    /// Where a string stands, or would.
    fn place(&self, string: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = FixedState::default().hash_one(string) as usize & mask;
        loop {
            match self.table[place].checked_sub(1) {
                Some(number) if self.strings.get(number as usize) != string => place = (place + 1) & mask,
                _ => return place,
            }
        }
    }

    /// Makes room for so many.
    fn spread(&mut self, strings: usize) {
        self.table = vec![0; (strings * 2).next_power_of_two().max(16)];
        for number in 0..self.strings.len() {
            let place = self.place(self.strings.get(number));
            self.table[place] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_numbers_they_were_given() {
        let mut lexicon = Lexicon::default();
        assert_eq!(lexicon.find("0"), None);
        let word = |at: u32| format!("{:x}", at * 7_919);
        assert!((0..5_000).all(|at| lexicon.insert(&word(at)) == at));
        assert!((0..5_000).all(|at| lexicon.insert(&word(at)) == at));
        let (text, ends) = lexicon.strings().parts();
        let again = Lexicon::from_strings(Strings::from_parts(text.to_owned(), ends.to_vec()).unwrap());
        assert!((0..5_000).all(|at| again.find(&word(at)) == Some(at)));
        assert_eq!((again.find("nowhere"), again.find("")), (None, None));
    }

    #[test]
    fn places_that_do_not_divide_a_text_are_refused() {
        for ends in [vec![], vec![1], vec![2, 1, 3], vec![1, 3], vec![4]] {
            assert_eq!(Strings::from_parts("æb".to_owned(), ends.clone()), None, "{ends:?}");
        }
        assert_eq!(Strings::from_parts("æb".to_owned(), vec![2, 2, 3]).unwrap().get(1), "");
    }
}
