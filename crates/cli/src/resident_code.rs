//! Gives back what only the start has used of the program itself.
//!
//! Code is mapped from the program's file, and what ran once to read configuration, tools and records would stay mapped for good:
//! more than everything that a server at rest holds besides. What is needed again comes back from the file's pages, which the
//! system keeps where it has room.

use std::time::Duration;

/// By then everything that a start does in the background is done.
const AFTER_START: Duration = Duration::from_millis(500);

/// Gives it back a moment after the start.
pub(crate) async fn release_after_start() {
    tokio::time::sleep(AFTER_START).await;
    #[cfg(target_os = "linux")]
    let _ = tokio::task::spawn_blocking(linux::release).await;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::ops::Range;

    /// Without the list of mappings nothing is given back, which costs memory and nothing else.
    pub(super) fn release() {
        let Ok(mappings) = fs::read_to_string("/proc/self/smaps") else { return };
        code_mappings(&mappings).into_iter().for_each(discard);
    }

    /// The mappings of files that are executable, as the list tells them, and of which no page was changed in memory.
    pub(super) fn code_mappings(smaps: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut current = None;
        for line in smaps.lines() {
            if let Some(range) = head_of_mapping(line) {
                current = line.split_whitespace().nth(1).filter(|access| *access == "r-xp").and(range);
            } else if let Some(kb) = line.strip_prefix("Anonymous:")
                && let Some(range) = current.take()
                && kb.trim() == "0 kB"
            {
                found.push(range);
            }
        }
        found
    }

    /// `55d0c8a00000-55d0c8c00000 r-xp 00200000 08:01 1234  /usr/bin/quarterdeck`: a line of a mapping, and its range if it is of
    /// a file.
    fn head_of_mapping(line: &str) -> Option<Option<Range<usize>>> {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let range = number(start)?..number(end)?;
        let is_of_file = line.split_whitespace().nth(5).is_some_and(|path| path.starts_with('/'));
        Some(is_of_file.then_some(range))
    }

    #[expect(
        unsafe_code,
        reason = "the pages are those of a file, mapped read-only and never changed, so that they read the same afterwards"
    )]
    fn discard(range: Range<usize>) {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is a private mapping of a file of which no page was ever written to (`Anonymous: 0 kB`), and which
        // cannot be written to (`r-xp`). After the advice an access reads the same bytes from the file.
        let _ = unsafe {
            madvise(std::ptr::without_provenance_mut(range.start), range.len(), Advice::LinuxDontNeed)
        };
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_unchanged_code_of_files_is_given_back() {
            let smaps = "\
                1000-3000 r-xp 00000000 08:01 7  /usr/bin/quarterdeck\nRss: 8 kB\nAnonymous: 0 kB\n\
                3000-4000 rw-p 00002000 08:01 7  /usr/bin/quarterdeck\nAnonymous: 0 kB\n\
                5000-6000 r-xp 00000000 08:01 8  /usr/lib/patched.so\nAnonymous: 4 kB\n\
                7000-8000 r-xp 00000000 00:00 0\nAnonymous: 0 kB\n\
                9000-a000 r-xp 00000000 00:00 0  [vdso]\nAnonymous: 0 kB\n";
            let found = code_mappings(smaps);
            assert!(matches!(&found[..], [range] if *range == (0x1000..0x3000)), "{found:?}");
        }

        #[test]
        fn program_goes_on_after_its_code_was_given_back() {
            let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
            assert!(!code_mappings(&smaps).is_empty());
            release();
            assert_eq!("goes on".to_uppercase(), "GOES ON");
        }
    }
}
