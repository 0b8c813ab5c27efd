//! The innermost loop of a product: a tile of sums that stays in registers.
//!
//! Left to itself the compiler vectorises this loop along the wrong side, thirty times slower, so its instructions are
//! spelled out here. `unsafe` is needed to load and store registers, always from and to arrays of just their size.

use crate::matrix::Job;
use crate::simd::fused;

/// Columns that are computed together: two registers of AVX-512, four of AVX2.
pub(crate) const COLUMNS: usize = 32;

/// Values for those columns, in whole lines of the cache: a load that straddles two costs double.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [f32; COLUMNS]);

/// Sums of some rows, begun and then added to.
pub(crate) type Tile<const HEIGHT: usize> = [[f32; COLUMNS]; HEIGHT];

#[cfg(target_arch = "x86_64")]
pub(crate) fn run(job: Job<'_>) {
    use crate::simd::{has_avx2, has_avx512};

    #[expect(unsafe_code, reason = "the processor has just said that it has these instructions")]
    if has_avx512() {
        // The last block is filled up, so the height that wastes least is the quickest.
        let waste = |height: usize| job.rows().next_multiple_of(height);
        if waste(12) <= waste(8).min(waste(6)) {
            job.run::<12>(|rows, weights, sums| unsafe { x86::avx512(rows, weights, sums) });
        } else if waste(8) <= waste(6) {
            job.run::<8>(|rows, weights, sums| unsafe { x86::avx512(rows, weights, sums) });
        } else {
            job.run::<6>(|rows, weights, sums| unsafe { x86::avx512(rows, weights, sums) });
        }
    } else if has_avx2() {
        job.run::<3>(|rows, weights, sums| unsafe { x86::avx2(rows, weights, sums) });
    } else {
        job.run(portable::<2>);
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn run(job: Job<'_>) {
    job.run(portable::<4>);
}

/// For every processor; adds in the same order as the others.
pub(crate) fn portable<const HEIGHT: usize>(
    rows: &[[f32; HEIGHT]],
    weights: &[Line],
    sums: &mut Tile<HEIGHT>,
) {
    for (row, weights) in rows.iter().zip(weights) {
        for (value, sums) in row.iter().zip(sums.iter_mut()) {
            for (sum, weight) in sums.iter_mut().zip(&weights.0) {
                *sum = fused::<{ cfg!(target_arch = "aarch64") }>(*value, *weight, *sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    #![expect(unsafe_code, reason = "each load and store covers one array of a register's size")]

    use std::arch::x86_64::{
        __m256, __m512, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps,
        _mm512_storeu_ps,
    };

    use super::{COLUMNS, Line, Tile};

    macro_rules! tile {
        ($name:ident, $features:literal, $register:ty, $lanes:literal, $count:literal,
         $zero:ident, $load:ident, $store:ident, $spread:ident, $fused:ident) => {
            #[target_feature(enable = $features)]
            pub(crate) fn $name<const HEIGHT: usize>(
                rows: &[[f32; HEIGHT]],
                weights: &[Line],
                sums: &mut Tile<HEIGHT>,
            ) {
                let load = |from: &[f32; COLUMNS]| -> [$register; $count] {
                    let mut registers = [$zero(); $count];
                    for (register, part) in registers.iter_mut().zip(from.as_chunks::<$lanes>().0) {
                        *register = unsafe { $load(part.as_ptr()) };
                    }
                    registers
                };
                let mut totals = [[$zero(); $count]; HEIGHT];
                for (total, sum) in totals.iter_mut().zip(sums.iter()) {
                    *total = load(sum);
                }
                for (row, weights) in rows.iter().zip(weights) {
                    let weights = load(&weights.0);
                    for lane in 0..HEIGHT {
                        let value = $spread(row[lane]);
                        for part in 0..$count {
                            totals[lane][part] = $fused(value, weights[part], totals[lane][part]);
                        }
                    }
                }
                for (sum, total) in sums.iter_mut().zip(totals) {
                    for (part, register) in sum.as_chunks_mut::<$lanes>().0.iter_mut().zip(total) {
                        unsafe { $store(part.as_mut_ptr(), register) };
                    }
                }
            }
        };
    }

    tile!(
        avx512,
        "avx512f",
        __m512,
        16,
        2,
        _mm512_setzero_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_fmadd_ps
    );
    tile!(
        avx2,
        "avx2,fma",
        __m256,
        8,
        4,
        _mm256_setzero_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_fmadd_ps
    );
}
