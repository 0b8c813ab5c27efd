//! Runs kernels with the widest vector instructions of this processor, detected at run time.
//!
//! A kernel is ordinary code, which the compiler turns into vector instructions; calling such a function is sound once
//! the processor has said that it knows them.

/// `run` and what it calls are always inlined, so that they take on the caller's instructions.
pub(crate) trait Kernel: Sized {
    /// With `FUSED`, multiplying and adding is one instruction.
    fn run<const FUSED: bool>(self);

    fn apply(self) {
        run(self);
    }
}

#[cfg(target_arch = "x86_64")]
fn run(kernel: impl Kernel) {
    #[target_feature(enable = "avx512f,avx2,fma")]
    fn avx512(kernel: impl Kernel) {
        kernel.run::<true>();
    }
    #[target_feature(enable = "avx2,fma")]
    fn avx2(kernel: impl Kernel) {
        kernel.run::<true>();
    }
    if has_avx512() {
        #[expect(unsafe_code, reason = "the processor has just said that it has these instructions")]
        unsafe {
            avx512(kernel);
        }
    } else if has_avx2() {
        #[expect(unsafe_code, reason = "the processor has just said that it has these instructions")]
        unsafe {
            avx2(kernel);
        }
    } else {
        kernel.run::<false>();
    }
}

/// Eight values at once, multiplied and added in one instruction.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Sixteen values at once.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    has_avx2() && is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn run(kernel: impl Kernel) {
    kernel.run::<{ cfg!(target_arch = "aarch64") }>();
}

/// `a × b + c`. Where no instruction does this, `mul_add` would be a slow function call.
#[inline(always)]
pub(crate) fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}
