//! Detects speech by loudness, on the time of the audio itself. Both servers use it.

use std::time::Duration;

const WINDOW: Duration = Duration::from_millis(20);
/// Root mean square, of 32,768.
const MIN_SPEECH_RMS: u64 = 400;
/// Fewer loud windows in a row are a click.
const MIN_LOUD_WINDOWS: u32 = 3;
/// How long it must be quiet for speech to end, unless the setup says otherwise.
const DEFAULT_SILENCE: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpeechEvent {
    /// At this time of the audio.
    Started(Duration),
    Ended {
        at: Duration,
        length: Duration,
    },
}

#[derive(Debug)]
pub(crate) struct SpeechDetector {
    silence: Duration,
    /// Audio received so far.
    time: Duration,
    /// Energy and samples of the incomplete window.
    energy: u64,
    samples: u64,
    loud_windows: u32,
    speech: Option<Speech>,
}

#[derive(Debug, Clone, Copy)]
struct Speech {
    since: Duration,
    /// When it was last loud.
    loud_until: Duration,
}

impl SpeechDetector {
    pub(crate) fn new(silence: Option<Duration>) -> Self {
        let silence = silence.unwrap_or(DEFAULT_SILENCE);
        Self { silence, time: Duration::ZERO, energy: 0, samples: 0, loud_windows: 0, speech: None }
    }

    /// Returns the events in more audio, in order.
    pub(crate) fn process(&mut self, samples: &[i16], rate: u32) -> Vec<SpeechEvent> {
        let window = u64::from(rate) * WINDOW.as_millis() as u64 / 1000;
        let mut events = Vec::new();
        for sample in samples {
            self.energy += i64::from(*sample).pow(2) as u64;
            self.samples += 1;
            if self.samples >= window {
                events.extend(self.check_window());
            }
        }
        events
    }

    /// No more audio comes for now (`audioStreamEnd`).
    pub(crate) fn end_stream(&mut self) -> Option<SpeechEvent> {
        (self.energy, self.samples, self.loud_windows) = (0, 0, 0);
        self.end()
    }

    /// The client says that speech starts.
    pub(crate) fn start_activity(&mut self) -> Option<SpeechEvent> {
        if self.speech.is_some() {
            return None;
        }
        self.speech = Some(Speech { since: self.time, loud_until: self.time });
        Some(SpeechEvent::Started(self.time))
    }

    /// The client says that speech ends: all audio since its start was speech.
    pub(crate) fn end_activity(&mut self) -> Option<SpeechEvent> {
        let time = self.time;
        if let Some(speech) = &mut self.speech {
            speech.loud_until = time;
        }
        self.end()
    }

    /// Counts audio without looking at it.
    pub(crate) fn skip(&mut self, samples: usize, rate: u32) {
        self.time += Duration::from_secs_f64(samples as f64 / f64::from(rate.max(1)));
    }

    fn check_window(&mut self) -> Option<SpeechEvent> {
        let is_loud = self.energy / self.samples >= MIN_SPEECH_RMS * MIN_SPEECH_RMS;
        (self.energy, self.samples) = (0, 0);
        self.time += WINDOW;
        self.loud_windows = if is_loud { self.loud_windows + 1 } else { 0 };
        match &mut self.speech {
            None if self.loud_windows >= MIN_LOUD_WINDOWS => {
                let since = self.time.saturating_sub(WINDOW * MIN_LOUD_WINDOWS);
                self.speech = Some(Speech { since, loud_until: self.time });
                Some(SpeechEvent::Started(since))
            }
            Some(speech) if is_loud => {
                speech.loud_until = self.time;
                None
            }
            Some(speech) if self.time - speech.loud_until >= self.silence => self.end(),
            _ => None,
        }
    }

    fn end(&mut self) -> Option<SpeechEvent> {
        let speech = self.speech.take()?;
        Some(SpeechEvent::Ended { at: speech.loud_until, length: speech.loud_until - speech.since })
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
    fn speech_starts_when_it_is_loud_and_ends_after_silence() {
        let mut speech_detector = SpeechDetector::new(None);
        let millis = Duration::from_millis;
        assert_eq!(speech_detector.process(&quiet(500), 16_000), []);
        assert_eq!(speech_detector.process(&tone(1_000), 16_000), [SpeechEvent::Started(millis(500))]);
        assert_eq!(speech_detector.process(&quiet(200), 16_000), [], "a short pause is within speech");
        assert_eq!(speech_detector.process(&tone(300), 16_000), []);
        assert_eq!(
            speech_detector.process(&quiet(400), 16_000),
            [SpeechEvent::Ended { at: millis(2_000), length: millis(1_500) }]
        );
    }

    #[test]
    fn a_click_is_no_speech_and_the_end_of_the_stream_ends_it() {
        let mut speech_detector = SpeechDetector::new(Some(Duration::from_millis(100)));
        assert_eq!(speech_detector.process(&[tone(20), quiet(500)].concat(), 16_000), []);
        assert!(matches!(speech_detector.process(&tone(200), 16_000)[..], [SpeechEvent::Started(_)]));
        assert!(matches!(speech_detector.end_stream(), Some(SpeechEvent::Ended { .. })));
        assert_eq!(speech_detector.end_stream(), None);
    }

    #[test]
    fn chunks_of_any_size_give_the_same_events() {
        let audio = [quiet(100), tone(500), quiet(500)].concat();
        let whole = SpeechDetector::new(None).process(&audio, 16_000);
        let mut speech_detector = SpeechDetector::new(None);
        let pieces: Vec<_> =
            audio.chunks(37).flat_map(|piece| speech_detector.process(piece, 16_000)).collect();
        assert_eq!(pieces, whole);
        assert_eq!(whole.len(), 2);
    }
}
