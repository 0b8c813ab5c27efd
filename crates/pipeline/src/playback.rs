//! The audio of the present answer: how much of it can have been played, and which words were heard.

use std::time::Duration;

use quarterdeck_contracts::SPOKEN_RATE;
use tokio::time::Instant;

/// About how long a voice takes for one character, as long as it has not said much.
const SAMPLES_PER_CHAR: u64 = SPOKEN_RATE as u64 / 15;
/// From how many characters on a voice's own pace is known, and how many of the last ones it is taken from.
const MIN_PACE_CHARS: u64 = 20;
const MAX_PACE_CHARS: u64 = 2_000;
/// What may be missing of a sentence that counts as heard: clients round.
const HEARD_TOLERANCE_SAMPLES: u64 = SPOKEN_RATE as u64 / 50;

/// How fast a voice speaks, learnt from the sentences that it has ended. It tells how much is missing of one that it has not.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    samples: u64,
    chars: u64,
}

impl Pace {
    fn learn(&mut self, samples: u64, chars: u64) {
        self.samples += samples;
        self.chars += chars;
        if self.chars > MAX_PACE_CHARS {
            (self.samples, self.chars) = (self.samples / 2, self.chars / 2);
        }
    }

    /// About how long so many characters take.
    fn samples_for(&self, chars: usize) -> u64 {
        let chars = chars as u64;
        if self.chars < MIN_PACE_CHARS { chars * SAMPLES_PER_CHAR } else { chars * self.samples / self.chars }
    }
}

/// What was sent of an answer. It is given the time.
#[derive(Debug, Default)]
pub(crate) struct Playback {
    sentences: Vec<SpokenSentence>,
    samples: u64,
    /// When the last of it will have been played, if it is played as it is sent.
    ends: Option<Instant>,
}

#[derive(Debug)]
struct SpokenSentence {
    /// The reply that it is of. None: our own words.
    reply: Option<u64>,
    /// As it was written.
    text: String,
    /// How many characters are spoken.
    chars: usize,
    /// The samples before it, and its own.
    start: u64,
    samples: u64,
    /// How many it will have, once that is known.
    whole: Option<u64>,
    has_ended: bool,
}

impl Playback {
    /// A sentence begins: it is shown now, and its audio follows.
    pub(crate) fn begin_sentence(&mut self, reply: Option<u64>, text: &str, chars: usize) {
        let (text, start) = (text.to_owned(), self.samples);
        let sentence =
            SpokenSentence { reply, text, chars, start, samples: 0, whole: None, has_ended: false };
        self.sentences.push(sentence);
    }

    /// The voice has made all of the last sentence, of which not everything is sent.
    pub(crate) fn set_whole(&mut self, samples: usize) {
        if let Some(sentence) = self.sentences.last_mut() {
            sentence.whole = Some(samples as u64);
        }
    }

    /// More audio of the last sentence is sent.
    pub(crate) fn add(&mut self, samples: usize, now: Instant) {
        let samples = samples as u64;
        if let Some(sentence) = self.sentences.last_mut() {
            sentence.samples += samples;
        }
        self.samples += samples;
        self.ends = Some(self.ends.map_or(now, |ends| ends.max(now)) + duration(samples));
    }

    /// The last sentence is complete.
    pub(crate) fn end_sentence(&mut self, pace: &mut Pace) {
        let Some(sentence) = self.sentences.last_mut() else { return };
        sentence.has_ended = true;
        if sentence.samples > 0 {
            pace.learn(sentence.samples, sentence.chars as u64);
        }
    }

    /// The voice has failed within the last sentence. It ends after the last word that was spoken; the rest is returned.
    pub(crate) fn break_sentence(&mut self, pace: &Pace) -> String {
        let Some(sentence) = self.sentences.last_mut() else { return String::new() };
        let whole = pace.samples_for(sentence.chars).max(1);
        let spoken = cut_at_word(&sentence.text, sentence.samples, whole).len();
        sentence.has_ended = true;
        sentence.text.split_off(spoken)
    }

    /// Whether something of a reply was sent.
    pub(crate) fn has_said(&self, reply: u64) -> bool {
        self.sentences.iter().any(|sentence| sentence.reply == Some(reply))
    }

    pub(crate) fn has_audio(&self) -> bool {
        self.samples > 0
    }

    /// How much was sent that can not have been played yet.
    pub(crate) fn lead(&self, now: Instant) -> Duration {
        self.ends.map_or(Duration::ZERO, |ends| ends.saturating_duration_since(now))
    }

    pub(crate) fn is_played(&self, now: Instant) -> bool {
        self.lead(now).is_zero()
    }

    /// When everything that was sent will have been played.
    pub(crate) fn ends(&self) -> Option<Instant> {
        self.ends
    }

    /// How long all of it is.
    pub(crate) fn length(&self) -> Duration {
        duration(self.samples)
    }

    /// How much can have been played by now.
    pub(crate) fn played(&self, now: Instant) -> Duration {
        self.length().saturating_sub(self.lead(now))
    }

    /// The words of a reply that were heard, when so much of the audio was.
    pub(crate) fn heard_of(&self, reply: u64, heard: Duration, pace: &Pace) -> String {
        let heard = samples(heard);
        let of_reply = self.sentences.iter().filter(|sentence| sentence.reply == Some(reply));
        of_reply.map(|sentence| sentence.heard(heard, pace)).collect()
    }

    /// All words that were heard, our own among them.
    pub(crate) fn heard_words(&self, heard: Duration, pace: &Pace) -> String {
        let heard = samples(heard);
        let mut words = String::new();
        for sentence in &self.sentences {
            let sentence = sentence.heard(heard, pace);
            words.push_str(separator(&words, sentence));
            words.push_str(sentence);
        }
        words
    }

    /// What stands between what was said so far and these words.
    pub(crate) fn separator(&self, words: &str) -> &'static str {
        self.sentences.last().map_or("", |last| separator(&last.text, words))
    }
}

impl SpokenSentence {
    fn heard(&self, heard: u64, pace: &Pace) -> &str {
        let is_reached = heard + HEARD_TOLERANCE_SAMPLES >= self.start;
        // One without a voice was shown, and what came before it was heard.
        if self.has_ended && self.samples == 0 && is_reached {
            return &self.text;
        }
        if heard <= self.start {
            return "";
        }
        let whole = match self.has_ended {
            true => self.samples,
            false => self.whole.unwrap_or_else(|| self.samples.max(pace.samples_for(self.chars))),
        };
        let heard = heard - self.start;
        if heard + HEARD_TOLERANCE_SAMPLES >= whole {
            return &self.text;
        }
        cut_at_word(&self.text, heard, whole)
    }
}

/// What stands between words: a reply, or words of our own, may follow another reply without a space of its own.
fn separator(before: &str, words: &str) -> &'static str {
    let is_apart = before.ends_with(char::is_whitespace) || words.starts_with(char::is_whitespace);
    if before.is_empty() || words.is_empty() || is_apart { "" } else { " " }
}

/// The beginning of a text, up to the last word that ends within `heard` of its `whole` samples. Whole numbers, because a word
/// that was heard exactly to its end would be lost by the rounding of a fraction.
fn cut_at_word(text: &str, heard: u64, whole: u64) -> &str {
    let start = text.len() - text.trim_start().len();
    let words = text[start..].trim_end();
    let limit = (words.chars().count() as u64).saturating_mul(heard) / whole.max(1);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let at = words.char_indices().nth(limit).map_or(words.len(), |(at, _)| at);
    let cut = if words[at..].starts_with(char::is_whitespace) || at == words.len() || has_no_spaces(words) {
        at
    } else {
        words[..at].rfind(char::is_whitespace).unwrap_or(0)
    };
    let end = start + words[..cut].trim_end().len();
    if end == start { "" } else { &text[..end] }
}

/// Whether words are not separated by spaces, as in Chinese or Thai: then every character may be the last.
fn has_no_spaces(text: &str) -> bool {
    !text.contains(char::is_whitespace) && text.chars().any(|letter| letter as u32 >= 0x0e00)
}

fn duration(samples: u64) -> Duration {
    Duration::from_micros(samples * 1_000_000 / u64::from(SPOKEN_RATE))
}

fn samples(duration: Duration) -> u64 {
    let samples = duration.as_micros() * u128::from(SPOKEN_RATE) / 1_000_000;
    u64::try_from(samples).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: usize = SPOKEN_RATE as usize;

    fn two_sentences(now: Instant) -> Playback {
        let mut playback = Playback::default();
        playback.begin_sentence(Some(1), "She was built in Larvik.", 24);
        playback.add(2 * SECOND, now);
        playback.end_sentence(&mut Pace::default());
        playback.begin_sentence(Some(1), " Colin Archer designed her.", 26);
        playback.add(2 * SECOND, now);
        playback.end_sentence(&mut Pace::default());
        playback
    }

    #[test]
    fn what_was_heard_is_cut_at_a_word() {
        let playback = two_sentences(Instant::now());
        let heard =
            |milliseconds| playback.heard_of(1, Duration::from_millis(milliseconds), &Pace::default());
        assert_eq!(heard(0), "");
        assert_eq!(heard(300), "She");
        assert_eq!(heard(1_500), "She was built in");
        assert_eq!(heard(1_990), "She was built in Larvik.");
        assert_eq!(heard(2_000), "She was built in Larvik.");
        assert_eq!(heard(3_000), "She was built in Larvik. Colin Archer");
        assert_eq!(heard(4_000), "She was built in Larvik. Colin Archer designed her.");
        assert_eq!(playback.heard_of(2, Duration::from_secs(9), &Pace::default()), "");
    }

    #[test]
    fn the_clock_knows_what_can_have_been_played() {
        let now = Instant::now();
        let playback = two_sentences(now);
        assert_eq!(playback.played(now + Duration::from_millis(1_500)), Duration::from_millis(1_500));
        assert!(!playback.is_played(now + Duration::from_millis(3_999)));
        assert_eq!(playback.played(now + Duration::from_secs(9)), Duration::from_secs(4));
    }

    #[test]
    fn a_sentence_that_is_still_being_made_is_taken_for_longer_than_its_audio() {
        let mut playback = Playback::default();
        playback.begin_sentence(Some(1), "One two three four five six seven eight nine ten.", 49);
        playback.add(SECOND, Instant::now());
        let heard = |playback: &Playback, pace: &Pace| playback.heard_of(1, Duration::from_secs(1), pace);
        assert_eq!(heard(&playback, &Pace::default()), "One two three");
        // A voice that was heard before is known to be quicker.
        let quick = Pace { samples: 100 * SECOND as u64 / 25, chars: 100 };
        assert_eq!(heard(&playback, &quick), "One two three four five");
        playback.set_whole(2 * SECOND);
        assert_eq!(heard(&playback, &Pace::default()), "One two three four five");
    }

    #[test]
    fn a_sentence_without_a_voice_counts_once_everything_before_it_was_heard() {
        let mut playback = two_sentences(Instant::now());
        playback.begin_sentence(Some(1), " Silent.", 7);
        playback.end_sentence(&mut Pace::default());
        assert!(!playback.heard_of(1, Duration::from_millis(3_900), &Pace::default()).contains("Silent"));
        assert!(playback.heard_of(1, Duration::from_secs(4), &Pace::default()).ends_with("Silent."));
    }

    #[test]
    fn a_sentence_that_breaks_off_ends_after_the_word_that_was_spoken() {
        let mut playback = Playback::default();
        playback.begin_sentence(Some(1), " One two three four five six.", 28);
        playback.add(SECOND, Instant::now());
        assert_eq!(playback.break_sentence(&Pace::default()), " four five six.");
        assert_eq!(playback.heard_of(1, Duration::from_secs(1), &Pace::default()), " One two three");
    }

    #[test]
    fn a_word_that_was_heard_exactly_to_its_end_is_kept() {
        for words in 2..40_u64 {
            let text = vec!["fram"; words as usize].join(" ");
            let chars = 5 * words - 1;
            for heard in 1..=words {
                let cut = cut_at_word(&text, (5 * heard - 1) * 1_200, chars * 1_200);
                assert_eq!(cut.len() as u64, 5 * heard - 1, "{heard} of {words} words");
            }
        }
    }

    #[test]
    fn scripts_without_spaces_are_cut_at_a_character() {
        assert_eq!(cut_at_word("船は木造です", 1, 2), "船は木");
        assert_eq!(cut_at_word("Norwegian", 1, 2), "");
    }
}
