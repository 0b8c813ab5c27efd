//! Vectors as bytes with one scale each: a quarter of the memory, and a scan that the processor does many at a time.

/// Rows of bytes.
pub(super) struct Quantised {
    dimension: usize,
    rows: Vec<i8>,
    scales: Vec<f32>,
}

impl Quantised {
    pub(super) fn new(dimension: usize) -> Self {
        Self { dimension, rows: Vec::new(), scales: Vec::new() }
    }

    pub(super) fn push(&mut self, vector: &[f32]) {
        let (row, scale) = quantise(vector);
        self.rows.extend(row);
        self.scales.push(scale);
    }

    /// How near a row is to a query, in units of the query's own scale, which is the same for all.
    pub(super) fn score(&self, row: usize, query: &[i8]) -> f32 {
        let bytes = &self.rows[row * self.dimension..(row + 1) * self.dimension];
        dot(bytes, query) as f32 * self.scales[row]
    }
}

/// A vector in steps of its largest number.
pub(super) fn quantise(vector: &[f32]) -> (Vec<i8>, f32) {
    let largest = vector.iter().fold(0_f32, |largest, number| largest.max(number.abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    (vector.iter().map(|number| (number / scale).round() as i8).collect(), scale)
}

/// Products of bytes fit 16 bits and pairs of them 32: the shape that compilers turn into one instruction.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    let mut sum = 0;
    let (a, a_rest) = a.as_chunks::<32>();
    let (b, b_rest) = b.as_chunks::<32>();
    for (a, b) in a.iter().zip(b) {
        let products: i32 = a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum();
        sum += products;
    }
    sum + a_rest.iter().zip(b_rest).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bytes_do_not_overflow() {
        assert_eq!(dot(&[-128; 1_000], &[-128; 1_000]), 128 * 128 * 1_000);
        assert_eq!(dot(&[3; 70], &[-2; 70]), -420);
        assert_eq!(quantise(&[0.0, 0.0]), (vec![0, 0], 1.0));
        assert_eq!(quantise(&[1.0, -0.5]).0, [127, -64]);
    }
}
