//! Cuts an utterance into pieces that the model can take, and cuts loops out of what it gives.

use std::ops::Range;

use quarterdeck_contracts::HEARD_RATE;

/// The model was trained on pieces under thirty seconds.
const MAX_SEGMENT_SAMPLES: usize = 28 * HEARD_RATE as usize;
/// A cut is looked for in the second half of what one piece can hold.
const MIN_CUT_SAMPLES: usize = MAX_SEGMENT_SAMPLES / 2;
/// Shorter audio is understood badly, so silence is added to it.
const MIN_SEGMENT_SAMPLES: usize = HEARD_RATE as usize;
/// How long a pause has to be to count, and how finely one is looked for.
const PAUSE_SAMPLES: usize = HEARD_RATE as usize / 5;
const PAUSE_STEP: usize = HEARD_RATE as usize / 50;

/// People say up to six and a half tokens a second, as the model's authors found; more is a loop.
const MAX_TOKENS_PER_SECOND: f32 = 6.5;
/// So that a short word has room for its punctuation and its end.
const SPARE_TOKENS: usize = 4;
/// A loop is as many rounds of at most as many tokens.
const MIN_LOOP_ROUNDS: usize = 4;
const MAX_LOOP_TOKENS: usize = 12;

/// How much silence is left around speech. Of half a second of it before the first word, the smaller model takes the whole
/// utterance for silence.
const MARGIN_SAMPLES: usize = HEARD_RATE as usize / 5;
/// How much less energy than the loudest has what counts as silence: 26 dB.
const SILENCE_RATIO: i64 = 400;

/// An utterance from shortly before its first sound to shortly after its last.
pub(crate) fn without_silence_around(samples: &[i16]) -> &[i16] {
    let energy = |frame: &[i16]| frame.iter().map(|sample| i64::from(*sample).pow(2)).sum::<i64>();
    let loudest = samples.chunks(PAUSE_STEP).map(energy).max().unwrap_or_default();
    let is_sound = |frame: &[i16]| energy(frame) > loudest / SILENCE_RATIO;
    let Some(first) = samples.chunks(PAUSE_STEP).position(is_sound) else { return samples };
    let last = samples.chunks(PAUSE_STEP).rposition(is_sound).unwrap_or(first);
    let start = (first * PAUSE_STEP).saturating_sub(MARGIN_SAMPLES);
    let end = ((last + 1) * PAUSE_STEP + MARGIN_SAMPLES).min(samples.len());
    &samples[start..end]
}

/// Pieces of an utterance, one after the other, cut where it is quietest.
pub(crate) fn split(samples: &[i16]) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let mut start = 0;
    while samples.len() - start > MAX_SEGMENT_SAMPLES {
        let window = start + MIN_CUT_SAMPLES..start + MAX_SEGMENT_SAMPLES;
        let cut = quietest(samples, window);
        segments.push(start..cut);
        start = cut;
    }
    segments.push(start..samples.len());
    segments
}

/// The middle of the quietest pause in a part of the audio.
fn quietest(samples: &[i16], window: Range<usize>) -> usize {
    let energy = |start: usize| -> i64 {
        samples[start..start + PAUSE_SAMPLES].iter().map(|sample| i64::from(*sample).pow(2)).sum()
    };
    let starts = (window.start..window.end - PAUSE_SAMPLES).step_by(PAUSE_STEP);
    // Of equals the last: longer pieces have more context.
    let quietest = starts.rev().min_by_key(|start| energy(*start));
    quietest.map_or(window.end, |start| start + PAUSE_SAMPLES / 2)
}

/// What the network takes: floating point, with silence after what is too short.
pub(crate) fn network_input(samples: &[i16]) -> Vec<f32> {
    let mut input: Vec<_> = samples.iter().map(|sample| f32::from(*sample) / 32_768.).collect();
    input.resize(input.len().max(MIN_SEGMENT_SAMPLES), 0.);
    input
}

pub(crate) fn max_tokens(samples: usize) -> usize {
    (samples as f32 / HEARD_RATE as f32 * MAX_TOKENS_PER_SECOND).ceil() as usize + SPARE_TOKENS
}

/// Keeps one round of a loop at the end. For what reached the limit of tokens: people do say a word four times.
pub(crate) fn without_loop(tokens: &[u32]) -> &[u32] {
    for length in 1..=MAX_LOOP_TOKENS.min(tokens.len() / MIN_LOOP_ROUNDS) {
        let round = &tokens[tokens.len() - length..];
        let rounds = tokens.rchunks_exact(length).take_while(|chunk| *chunk == round).count();
        if rounds >= MIN_LOOP_ROUNDS {
            return &tokens[..tokens.len() - (rounds - 1) * length];
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: usize = HEARD_RATE as usize;

    #[test]
    fn silence_around_speech_is_cut_to_a_margin() {
        let quiet = vec![20; 2 * SECOND];
        let spoken = [&quiet[..], &vec![3_000; SECOND], &quiet].concat();
        assert_eq!(without_silence_around(&spoken).len(), SECOND + 2 * MARGIN_SAMPLES);
        for samples in [vec![], vec![0; SECOND], vec![3_000; SECOND], vec![3_000; 7]] {
            assert_eq!(without_silence_around(&samples).len(), samples.len());
        }
    }

    #[test]
    fn an_utterance_that_fits_is_one_segment() {
        for samples in [0, SECOND / 2, 28 * SECOND] {
            assert_eq!(split(&vec![1; samples]), vec![0..samples; 1]);
        }
    }

    #[test]
    fn a_long_utterance_is_cut_in_its_pause() {
        let mut samples = vec![1_000; 40 * SECOND];
        samples[20 * SECOND..20 * SECOND + SECOND / 2].fill(3);
        let [first, second] = &split(&samples)[..] else { panic!("two segments") };
        assert!((20 * SECOND..20 * SECOND + SECOND / 2).contains(&first.end), "{first:?}");
        assert_eq!((first.start, first.end, second.end), (0, second.start, samples.len()));
    }

    #[test]
    fn without_a_pause_no_segment_is_too_long_and_nothing_is_lost() {
        let segments = split(&vec![i16::MIN; 100 * SECOND]);
        assert!(segments.iter().all(|segment| segment.len() <= MAX_SEGMENT_SAMPLES), "{segments:?}");
        assert!(segments.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(segments.last().map(|segment| segment.end), Some(100 * SECOND));
    }

    #[test]
    fn a_short_word_is_followed_by_silence() {
        let input = network_input(&[16_384; 10]);
        assert_eq!((input.len(), input[9], input[10]), (SECOND, 0.5, 0.));
        assert_eq!(max_tokens(input.len()), 11);
    }

    #[test]
    fn a_loop_leaves_one_round() {
        assert_eq!(without_loop(&[9, 1, 2, 1, 2, 1, 2, 1, 2]), [9, 1, 2]);
        assert_eq!(without_loop(&[9, 7, 7, 7, 7, 7]), [9, 7]);
        assert_eq!(without_loop(&[1, 2, 1, 2, 1, 2, 3]), [1, 2, 1, 2, 1, 2, 3]);
        assert_eq!(without_loop(&[]), [] as [u32; 0]);
    }
}
