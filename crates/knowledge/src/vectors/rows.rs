//! Vectors as bytes with one scale each: a quarter of the memory, and a scan that the processor does many at a time.

/// Rows of bytes. A row stands for a vector of length one, or for nothing at all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows {
    dimension: usize,
    pub(crate) bytes: Vec<i8>,
    pub(crate) scales: Vec<f32>,
}

impl Rows {
    /// So many rows that stand for nothing.
    pub(crate) fn zeroed(dimension: usize, rows: usize) -> Self {
        Self { dimension, bytes: vec![0; dimension * rows], scales: vec![0.0; rows] }
    }

    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// The bytes of a row, and what one step of them is worth.
    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> (&[i8], f32) {
        (&self.bytes[row * self.dimension..(row + 1) * self.dimension], self.scales[row])
    }

    /// Puts a vector in its place, in steps of its largest number.
    pub(crate) fn put(&mut self, row: usize, vector: &[f32]) {
        let largest = vector.iter().fold(0_f32, |largest, number| largest.max(number.abs()));
        let scale = largest / 127.0;
        self.scales[row] = scale;
        let bytes = &mut self.bytes[row * self.dimension..(row + 1) * self.dimension];
        for (byte, number) in bytes.iter_mut().zip(vector) {
            *byte = if scale > 0.0 { (number / scale).round() as i8 } else { 0 };
        }
    }

    /// Puts a row of another matrix in its place.
    pub(crate) fn copy(&mut self, row: usize, other: &Self, from: usize) {
        let (bytes, scale) = other.get(from);
        self.set(row, bytes, scale);
    }

    pub(crate) fn push(&mut self, bytes: &[i8], scale: f32) {
        self.bytes.extend_from_slice(bytes);
        self.scales.push(scale);
    }

    pub(crate) fn set(&mut self, row: usize, bytes: &[i8], scale: f32) {
        self.bytes[row * self.dimension..(row + 1) * self.dimension].copy_from_slice(bytes);
        self.scales[row] = scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_kept_in_steps_of_its_largest_number() {
        let mut rows = Rows::zeroed(2, 2);
        rows.put(0, &[1.0, -0.5]);
        assert_eq!(rows.get(0), (&[127, -64][..], 1.0 / 127.0));
        rows.put(0, &[0.0, 0.0]);
        assert_eq!((rows.get(0), rows.get(1)), ((&[0, 0][..], 0.0), (&[0, 0][..], 0.0)));
    }
}
