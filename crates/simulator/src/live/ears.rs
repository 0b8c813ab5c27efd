//! When somebody speaks: loudness, on the time of the audio itself.

use std::time::Duration;

/// How long a piece is whose loudness is judged.
const WINDOW: Duration = Duration::from_millis(20);
/// How loud speech is at least: the root of the mean square, of 32,768.
const LOUD: u64 = 400;
/// How many loud pieces in a row are speech and not a click.
const ENOUGH: u32 = 3;
/// How long it must be quiet for speech to be over, where nobody says otherwise.
const SILENCE: Duration = Duration::from_millis(300);

/// What is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Somebody has begun to speak. When, in the audio that has come.
    Begins(Duration),
    /// They have stopped, having spoken for so long.
    Ends { at: Duration, length: Duration },
}

/// Listens to one person.
#[derive(Debug)]
pub(super) struct Ears {
    silence: Duration,
    /// How much audio has come.
    time: Duration,
    /// The energy of the piece that is not complete, and how many samples it has.
    energy: u64,
    samples: u64,
    loud_pieces: u32,
    speech: Option<Speech>,
}

#[derive(Debug, Clone, Copy)]
struct Speech {
    since: Duration,
    /// When it was last loud.
    loud_until: Duration,
}

impl Ears {
    pub(super) fn new(silence: Option<Duration>) -> Self {
        let silence = silence.unwrap_or(SILENCE);
        Self { silence, time: Duration::ZERO, energy: 0, samples: 0, loud_pieces: 0, speech: None }
    }

    /// More audio. What is in it, in order.
    pub(super) fn listen(&mut self, samples: &[i16], rate: u32) -> Vec<Sign> {
        let piece = u64::from(rate) * WINDOW.as_millis() as u64 / 1000;
        let mut signs = Vec::new();
        for sample in samples {
            self.energy += i64::from(*sample).pow(2) as u64;
            self.samples += 1;
            if self.samples >= piece {
                signs.extend(self.judge());
            }
        }
        signs
    }

    /// No more audio comes for now.
    pub(super) fn stop(&mut self) -> Option<Sign> {
        (self.energy, self.samples, self.loud_pieces) = (0, 0, 0);
        self.end()
    }

    /// Somebody says that speech begins.
    pub(super) fn begin(&mut self) -> Option<Sign> {
        if self.speech.is_some() {
            return None;
        }
        self.speech = Some(Speech { since: self.time, loud_until: self.time });
        Some(Sign::Begins(self.time))
    }

    /// Somebody says that it is over: audio that has come in the meantime was speech.
    pub(super) fn end_here(&mut self) -> Option<Sign> {
        let time = self.time;
        if let Some(speech) = &mut self.speech {
            speech.loud_until = time;
        }
        self.end()
    }

    /// Counts audio without judging it.
    pub(super) fn pass(&mut self, samples: usize, rate: u32) {
        self.time += Duration::from_secs_f64(samples as f64 / f64::from(rate.max(1)));
    }

    fn judge(&mut self) -> Option<Sign> {
        let is_loud = self.energy / self.samples >= LOUD * LOUD;
        (self.energy, self.samples) = (0, 0);
        self.time += WINDOW;
        self.loud_pieces = if is_loud { self.loud_pieces + 1 } else { 0 };
        match &mut self.speech {
            None if self.loud_pieces >= ENOUGH => {
                let since = self.time.saturating_sub(WINDOW * ENOUGH);
                self.speech = Some(Speech { since, loud_until: self.time });
                Some(Sign::Begins(since))
            }
            Some(speech) if is_loud => {
                speech.loud_until = self.time;
                None
            }
            Some(speech) if self.time - speech.loud_until >= self.silence => self.end(),
            _ => None,
        }
    }

    fn end(&mut self) -> Option<Sign> {
        let speech = self.speech.take()?;
        Some(Sign::Ends { at: speech.loud_until, length: speech.loud_until - speech.since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(millis: usize) -> Vec<i16> {
        (0..millis * 16).map(|nth| if nth / 20 % 2 == 0 { 3_000 } else { -3_000 }).collect()
    }

    fn quiet(millis: usize) -> Vec<i16> {
        (0..millis * 16).map(|nth| (nth % 7) as i16).collect()
    }

    #[test]
    fn speech_begins_when_it_is_loud_and_ends_when_it_has_been_quiet() {
        let mut ears = Ears::new(None);
        let millis = Duration::from_millis;
        assert_eq!(ears.listen(&quiet(500), 16_000), []);
        assert_eq!(ears.listen(&tone(1_000), 16_000), [Sign::Begins(millis(500))]);
        assert_eq!(ears.listen(&quiet(200), 16_000), [], "a short pause is within speech");
        assert_eq!(ears.listen(&tone(300), 16_000), []);
        assert_eq!(
            ears.listen(&quiet(400), 16_000),
            [Sign::Ends { at: millis(2_000), length: millis(1_500) }]
        );
    }

    #[test]
    fn a_click_is_no_speech_and_the_end_of_the_stream_ends_it() {
        let mut ears = Ears::new(Some(Duration::from_millis(100)));
        assert_eq!(ears.listen(&[tone(20), quiet(500)].concat(), 16_000), []);
        assert!(matches!(ears.listen(&tone(200), 16_000)[..], [Sign::Begins(_)]));
        assert!(matches!(ears.stop(), Some(Sign::Ends { .. })));
        assert_eq!(ears.stop(), None);
    }

    #[test]
    fn pieces_of_any_size_are_the_same_audio() {
        let audio = [quiet(100), tone(500), quiet(500)].concat();
        let whole = Ears::new(None).listen(&audio, 16_000);
        let mut ears = Ears::new(None);
        let pieces: Vec<_> = audio.chunks(37).flat_map(|piece| ears.listen(piece, 16_000)).collect();
        assert_eq!(pieces, whole);
        assert_eq!(whole.len(), 2);
    }
}
