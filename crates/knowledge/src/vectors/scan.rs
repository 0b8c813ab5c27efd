//! The scan: every row that passes against one question, with the widest instructions that this processor has.
//!
//! The loops are ordinary code, which the compiler turns into vector instructions. Calling a function that was compiled
//! for more of them is sound once the processor has said that it knows them; nothing else here is unsafe.

use super::rows::Rows;
use crate::index::Doc;
use crate::top_k::TopK;

/// A question in steps of its largest number, wide enough that products need no second widening.
pub(crate) struct ScaledQuery {
    numbers: Vec<i16>,
    step: f32,
}

impl ScaledQuery {
    pub(crate) fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0_f32, |largest, number| largest.max(number.abs()));
        let step = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        Self { numbers: vector.iter().map(|number| (number / step).round() as i16).collect(), step }
    }
}

/// What is scanned: rows, where those of each record begin, and the question.
#[derive(Clone, Copy)]
pub(crate) struct Scan<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) starts: &'a [u32],
    pub(crate) question: &'a ScaledQuery,
}

impl Scan<'_> {
    /// Offers every record with what `score` makes of the cosine of its nearest passage.
    pub(crate) fn run(
        self,
        docs: impl Iterator<Item = Doc>,
        score: impl Fn(Doc, f64) -> f64,
        best: &mut TopK,
    ) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
                #[expect(
                    unsafe_code,
                    reason = "the processor has just said that it has these instructions"
                )]
                return unsafe { avx512(self, docs, score, best) };
            }
            if is_x86_feature_detected!("avx2") {
                #[expect(
                    unsafe_code,
                    reason = "the processor has just said that it has these instructions"
                )]
                return unsafe { avx2(self, docs, score, best) };
            }
        }
        self.each(docs, score, best);
    }

    #[inline(always)]
    fn each(self, docs: impl Iterator<Item = Doc>, score: impl Fn(Doc, f64) -> f64, best: &mut TopK) {
        for doc in docs {
            let mut nearest = f32::NEG_INFINITY;
            for row in self.starts[doc as usize]..self.starts[doc as usize + 1] {
                let (bytes, scale) = self.rows.get(row as usize);
                nearest = nearest.max(dot(bytes, &self.question.numbers) as f32 * scale);
            }
            best.offer(score(doc, f64::from(nearest * self.question.step)), doc);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2")]
fn avx512(scan: Scan<'_>, docs: impl Iterator<Item = Doc>, score: impl Fn(Doc, f64) -> f64, best: &mut TopK) {
    scan.each(docs, score, best);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(scan: Scan<'_>, docs: impl Iterator<Item = Doc>, score: impl Fn(Doc, f64) -> f64, best: &mut TopK) {
    scan.each(docs, score, best);
}

/// Products of bytes fit 16 bits and pairs of them 32: the shape that compilers turn into one instruction.
#[inline(always)]
fn dot(row: &[i8], question: &[i16]) -> i32 {
    row.iter().zip(question).map(|(row, question)| i32::from(*row) * i32::from(*question)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_bytes_do_not_overflow() {
        assert_eq!(dot(&[-128; 1_000], &[-128; 1_000]), 128 * 128 * 1_000);
        assert_eq!(dot(&[3; 70], &[-2; 70]), -420);
    }

    proptest! {
        #[test]
        fn every_kind_of_instruction_finds_the_same(
            dimension in 1_usize..200,
            seed in any::<u32>(),
            passages in 1_u32..3,
        ) {
            let mut state = seed;
            let mut byte = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as i8
            };
            let docs = 50_u32;
            let mut rows = Rows::zeroed(dimension, (docs * passages) as usize);
            for row in 0..(docs * passages) as usize {
                rows.set(row, &(0..dimension).map(|_| byte()).collect::<Vec<_>>(), 0.5);
            }
            let starts: Vec<u32> = (0..=docs).map(|doc| doc * passages).collect();
            let numbers = (0..dimension).map(|_| i16::from(byte().max(-127))).collect();
            let question = ScaledQuery { numbers, step: 0.25 };
            let scan = Scan { rows: &rows, starts: &starts, question: &question };
            let score = |doc: Doc, cosine: f64| cosine + f64::from(doc % 3);
            let mut plain = TopK::new(20);
            for doc in 0..docs {
                let near = (starts[doc as usize]..starts[doc as usize + 1]).map(|row| {
                    let pairs = rows.get(row as usize).0.iter().zip(&question.numbers);
                    f64::from(pairs.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>() as f32 * 0.5 * 0.25)
                });
                plain.offer(score(doc, near.fold(f64::NEG_INFINITY, f64::max)), doc);
            }
            let plain = plain.finish();
            let found = |run: &dyn Fn(&mut TopK)| {
                let mut best = TopK::new(20);
                run(&mut best);
                best.finish()
            };
            prop_assert_eq!(&found(&|best| scan.each(0..docs, score, best)), &plain);
            prop_assert_eq!(&found(&|best| scan.run(0..docs, score, best)), &plain);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                #[expect(unsafe_code, reason = "the processor has just said that it has these instructions")]
                let narrow = found(&|best| unsafe { avx2(scan, 0..docs, score, best) });
                prop_assert_eq!(&narrow, &plain);
            }
        }
    }
}
