//! Runs work with the widest instructions that this processor has, found out when it runs.
//!
//! This is the only place with `unsafe`: the work is ordinary code, which the compiler turns into vector instructions,
//! and calling such a function is sound once the processor has said that it knows them.

/// Something to compute. `run` and what it calls are always inlined, so that they take on the caller's instructions.
pub(crate) trait Work {
    /// `HEIGHT` is how many rows of sums fit in the registers; with `FUSED`, multiplying and adding is one instruction.
    fn run<const HEIGHT: usize, const FUSED: bool>(self);
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn run(work: impl Work) {
    #[target_feature(enable = "avx512f,avx2,fma")]
    fn avx512(work: impl Work) {
        work.run::<8, true>();
    }
    #[target_feature(enable = "avx2,fma")]
    fn avx2(work: impl Work) {
        work.run::<3, true>();
    }
    let avx2_known = is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx2");
    if avx2_known && is_x86_feature_detected!("avx512f") {
        #[expect(unsafe_code, reason = "the processor has just said that it has these instructions")]
        unsafe {
            avx512(work);
        }
    } else if avx2_known {
        #[expect(unsafe_code, reason = "the processor has just said that it has these instructions")]
        unsafe {
            avx2(work);
        }
    } else {
        work.run::<2, false>();
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn run(work: impl Work) {
    work.run::<4, { cfg!(target_arch = "aarch64") }>();
}

/// `a × b + c`. Where no instruction does this, `mul_add` would be a slow function call.
#[inline(always)]
pub(crate) fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}
