//! What is computed on vectors beside products. Sums run over sixteen lanes, so that they can be vectorised and are the
//! same on every run.

use crate::simd::{Kernel, fused};

const LANES: usize = 16;

/// The function between the two halves of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// With the error function, as BERT was trained.
    Gelu,
    /// With the hyperbolic tangent.
    GeluTanh,
    Relu,
}

/// Scales a vector to length one; `false` if it has no direction.
pub(crate) fn normalise(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if !(length.is_finite() && length > 0.0) {
        return false;
    }
    for value in vector {
        *value = (f64::from(*value) / length) as f32;
    }
    true
}

/// Adds `residual` to each row of `values` and normalises the row.
pub(crate) struct LayerNormKernel<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) residual: Option<&'a [f32]>,
    pub(crate) weight: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) epsilon: f32,
}

impl Kernel for LayerNormKernel<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        if let Some(residual) = self.residual {
            for (value, residual) in self.values.iter_mut().zip(residual) {
                *value += residual;
            }
        }
        let size = self.weight.len();
        for row in self.values.chunks_exact_mut(size) {
            let mean = sum_of(row, |value| value) / size as f32;
            let variance = sum_of(row, |value| (value - mean) * (value - mean)) / size as f32;
            let scale = 1.0 / (variance + self.epsilon).sqrt();
            for ((value, weight), bias) in row.iter_mut().zip(self.weight).zip(self.bias) {
                *value = fused::<FUSED>((*value - mean) * scale, *weight, *bias);
            }
        }
    }
}

/// Turns each row of scores into shares that add up to one.
pub(crate) struct SoftmaxKernel<'a> {
    pub(crate) scores: &'a mut [f32],
    pub(crate) width: usize,
    /// What each score is multiplied by before.
    pub(crate) scale: f32,
}

impl Kernel for SoftmaxKernel<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for row in self.scores.chunks_exact_mut(self.width) {
            let highest =
                row.iter().fold(f32::NEG_INFINITY, |high, value| if *value > high { *value } else { high });
            for value in row.iter_mut() {
                *value = exp::<FUSED>((*value - highest) * self.scale);
            }
            let share = 1.0 / sum_of(row, |value| value);
            for value in row.iter_mut() {
                *value *= share;
            }
        }
    }
}

pub(crate) struct ActivationKernel<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) activation: Activation,
}

impl Kernel for ActivationKernel<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match self.activation {
            Activation::Gelu => {
                for value in self.values {
                    *value = 0.5 * *value * (1.0 + erf::<FUSED>(*value * std::f32::consts::FRAC_1_SQRT_2));
                }
            }
            Activation::GeluTanh => {
                for value in self.values {
                    let inner = 1.595_769 * (*value + 0.044_715 * *value * *value * *value);
                    *value /= 1.0 + exp::<FUSED>(-inner);
                }
            }
            Activation::Relu => {
                for value in self.values {
                    *value = value.max(0.0);
                }
            }
        }
    }
}

#[inline(always)]
fn sum_of(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += of(chunk[lane]);
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        sums[lane] += of(*value);
    }
    sums.iter().sum()
}

/// eˣ to about two units in the last place. The standard library's is a function call for each value.
#[inline(always)]
fn exp<const FUSED: bool>(x: f32) -> f32 {
    // Adding this leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = fused::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let rest = fused::<FUSED>(whole, -0.693_359_4, x);
    let rest = fused::<FUSED>(whole, 2.121_944_4e-4, rest);
    let mut sum = 1.987_569_1e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        sum = fused::<FUSED>(sum, rest, coefficient);
    }
    let sum = fused::<FUSED>(sum, rest * rest, rest + 1.0);
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    sum * f32::from_bits(exponent)
}

/// The error function to 2e-7 (Abramowitz and Stegun, 7.1.26).
#[inline(always)]
fn erf<const FUSED: bool>(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / fused::<FUSED>(0.327_591_1, size, 1.0);
    let mut sum = 1.061_405_4;
    for coefficient in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        sum = fused::<FUSED>(sum, t, coefficient);
    }
    (1.0 - sum * t * exp::<FUSED>(-size * size)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_to_the_library_everywhere() {
        for step in -8600..8700 {
            let x = step as f32 / 100.0;
            let (ours, theirs) = (f64::from(exp::<true>(x)), f64::from(x).exp());
            assert!((ours / theirs - 1.0).abs() < 4e-7, "{x}: {ours} {theirs}");
        }
        assert!(exp::<false>(-1e9) < 1e-37);
        assert!(exp::<false>(f32::NAN).is_nan());
    }

    #[test]
    fn erf_has_its_known_values() {
        for (x, value) in
            [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (-2.0, -0.995_322_3), (9.0, 1.0)]
        {
            assert!((erf::<true>(x) - value).abs() < 4e-7, "{x}");
        }
    }

    #[test]
    fn shares_add_up_and_keep_their_order_for_any_width() {
        for width in [1, 3, 16, 17, 40] {
            let mut scores: Vec<f32> = (0..width * 2).map(|i| i as f32 * 40.0).collect();
            SoftmaxKernel { scores: &mut scores, width, scale: 0.5 }.apply();
            for row in scores.chunks(width) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
                assert!(row.is_sorted());
            }
        }
    }

    #[test]
    fn a_vector_without_direction_is_not_normalised() {
        assert!(!normalise(&mut [0.0, 0.0]));
        assert!(!normalise(&mut [f32::NAN, 1.0]));
        let mut vector = [3.0, 4.0];
        assert!(normalise(&mut vector));
        assert_eq!(vector, [0.6, 0.8]);
    }
}
