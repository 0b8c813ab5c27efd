//! Many strings in one piece of memory: a string of its own costs three times what a word is long.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Strings {
    pub(super) text: String,
    /// Where each ends.
    pub(super) ends: Vec<usize>,
}

impl Strings {
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
    pub(super) strings: Strings,
    /// One more than the number of the string whose hash leads here, or nothing. Never more than half full.
    pub(super) table: Vec<u32>,
}

impl Lexicon {
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
            self.rehash((self.strings.len() + 1) * 2);
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
    pub(super) fn rehash(&mut self, strings: usize) {
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
        assert_eq!((lexicon.find("nowhere"), lexicon.find("")), (None, None));
    }
}
