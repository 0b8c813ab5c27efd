//! Matrix products for a handful of rows.
//!
//! A query is a dozen rows against matrices of millions of weights, so the weights are laid out once, when they are
//! loaded, in the order in which the product reads them. A row's result does not depend on the rows beside it: every
//! sum runs in the same order whatever the batch, so that the same text always has the same vector.

use crate::tiles::{self, COLUMNS, Line, Tile};

/// A matrix as the right-hand side of a product: panels of [`COLUMNS`] columns, each with its rows one after another,
/// the last filled up with zeroes.
pub(crate) struct Packed {
    depth: usize,
    width: usize,
    panels: Vec<Line>,
}

impl Packed {
    /// From weights that hold one row for each output, as linear layers are stored.
    pub(crate) fn from_outputs(weights: &[f32], width: usize, depth: usize) -> Self {
        let mut packed = Self::empty();
        packed.pack_outputs(width, depth, |column| &weights[column * depth..][..depth]);
        packed
    }

    /// Nothing yet; room for a matrix that changes with every text.
    pub(crate) fn empty() -> Self {
        Self { depth: 0, width: 0, panels: Vec::new() }
    }

    /// How long the rows on the left-hand side are.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Takes on the matrix whose columns are `column(0)`, `column(1)`, ….
    pub(crate) fn pack_outputs<'a>(
        &mut self,
        width: usize,
        depth: usize,
        column: impl Fn(usize) -> &'a [f32],
    ) {
        self.resize(width, depth);
        for index in 0..width {
            let panel = &mut self.panels[index / COLUMNS * depth..][..depth];
            for (line, value) in panel.iter_mut().zip(column(index)) {
                line.0[index % COLUMNS] = *value;
            }
        }
    }

    /// Takes on the matrix whose rows are `row(0)`, `row(1)`, ….
    pub(crate) fn pack_rows<'a>(&mut self, width: usize, depth: usize, row: impl Fn(usize) -> &'a [f32]) {
        self.resize(width, depth);
        for index in 0..depth {
            for (panel, part) in row(index)[..width].chunks(COLUMNS).enumerate() {
                self.panels[panel * depth + index].0[..part.len()].copy_from_slice(part);
            }
        }
    }

    fn resize(&mut self, width: usize, depth: usize) {
        self.width = width;
        self.depth = depth;
        self.panels.clear();
        self.panels.resize(width.div_ceil(COLUMNS) * depth, Line([0.0; COLUMNS]));
    }
}

/// Rows on the left-hand side, and the room to rearrange them in, kept between products.
#[derive(Default)]
pub(crate) struct Product {
    blocks: Vec<f32>,
}

impl Product {
    /// `out = rows × matrix (+ bias)`. Row `i` begins at `i * in_stride` of `rows` and at `i * out_stride` of `out`.
    pub(crate) fn run(
        &mut self,
        rows: Rows<'_>,
        matrix: &Packed,
        bias: Option<&[f32]>,
        out: &mut [f32],
        out_stride: usize,
    ) {
        tiles::run(Job { blocks: &mut self.blocks, rows, matrix, bias, out, out_stride });
    }
}

/// Rows that lie at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

pub(crate) struct Job<'a> {
    blocks: &'a mut Vec<f32>,
    rows: Rows<'a>,
    matrix: &'a Packed,
    bias: Option<&'a [f32]>,
    out: &'a mut [f32],
    out_stride: usize,
}

impl Job<'_> {
    pub(crate) fn rows(&self) -> usize {
        self.rows.count
    }

    /// Sums of a block of rows stay in registers while a panel passes by. The last block is filled up with zeroes.
    pub(crate) fn run<const HEIGHT: usize>(
        self,
        multiply: impl Fn(&[[f32; HEIGHT]], &[Line], &mut Tile<HEIGHT>),
    ) {
        let depth = self.matrix.depth;
        let width = self.matrix.width;
        let blocks = self.rows.count.div_ceil(HEIGHT);
        arrange::<HEIGHT>(self.blocks, self.rows, depth);
        for panel in 0..width.div_ceil(COLUMNS) {
            let weights = &self.matrix.panels[panel * depth..][..depth];
            let first = panel * COLUMNS;
            let columns = COLUMNS.min(width - first);
            let mut start = [0.0; COLUMNS];
            if let Some(bias) = self.bias {
                start[..columns].copy_from_slice(&bias[first..first + columns]);
            }
            for block in 0..blocks {
                let (rows, _) = self.blocks[block * HEIGHT * depth..][..HEIGHT * depth].as_chunks();
                let mut sums = [start; HEIGHT];
                multiply(rows, weights, &mut sums);
                let rows = block * HEIGHT..self.rows.count.min((block + 1) * HEIGHT);
                for (row, sums) in rows.zip(&sums) {
                    let at = row * self.out_stride + first;
                    self.out[at..at + columns].copy_from_slice(&sums[..columns]);
                }
            }
        }
    }
}

/// Interleaves blocks of rows, so that the product reads them front to back.
fn arrange<const HEIGHT: usize>(blocks: &mut Vec<f32>, rows: Rows<'_>, depth: usize) {
    blocks.clear();
    blocks.resize(rows.count.div_ceil(HEIGHT) * HEIGHT * depth, 0.0);
    for index in 0..rows.count {
        let row = &rows.values[index * rows.stride..][..depth];
        let (out, _) = blocks[index / HEIGHT * HEIGHT * depth..][..HEIGHT * depth].as_chunks_mut::<HEIGHT>();
        for (out, value) in out.iter_mut().zip(row) {
            out[index % HEIGHT] = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 37 + seed * 11) % 23) as f32 - 11.0).collect()
    }

    #[test]
    fn products_agree_with_the_definition_at_every_size() {
        for (count, depth, width) in
            [(1, 1, 1), (2, 5, 31), (3, 7, 32), (7, 3, 33), (8, 64, 65), (17, 16, 70), (25, 1, 3)]
        {
            let rows = values(count * depth, 1);
            let weights = values(width * depth, 2);
            let bias = values(width, 3);
            let mut out = vec![f32::NAN; count * width];
            Product::default().run(
                Rows { values: &rows, stride: depth, count },
                &Packed::from_outputs(&weights, width, depth),
                Some(&bias),
                &mut out,
                width,
            );
            for row in 0..count {
                for column in 0..width {
                    let sum: f32 =
                        (0..depth).map(|k| rows[row * depth + k] * weights[column * depth + k]).sum();
                    assert_eq!(out[row * width + column], sum + bias[column], "{count} {depth} {width}");
                }
            }
        }
    }

    #[test]
    fn a_matrix_packed_by_rows_is_the_one_packed_by_columns() {
        let (width, depth) = (70, 9);
        let by_column = values(width * depth, 4);
        let by_row: Vec<f32> = (0..width * depth).map(|i| by_column[i % width * depth + i / width]).collect();
        let mut packed = Packed::empty();
        packed.pack_rows(width, depth, |row| &by_row[row * width..][..width]);
        let lines = |packed: Packed| packed.panels.into_iter().map(|line| line.0).collect::<Vec<_>>();
        assert_eq!(lines(packed), lines(Packed::from_outputs(&by_column, width, depth)));
    }

    #[test]
    fn every_kind_of_instruction_computes_the_same() {
        for count in 1..26 {
            let (depth, width) = (20, 40);
            let (rows, weights) = (values(count * depth, 5), values(width * depth, 6));
            let matrix = Packed::from_outputs(&weights, width, depth);
            let left = Rows { values: &rows, stride: depth, count };
            let mut fast = vec![0.0; count * width];
            Product::default().run(left, &matrix, None, &mut fast, width);
            let with = |run: &dyn Fn(Job<'_>)| {
                let (mut out, mut blocks) = (vec![0.0; count * width], Vec::new());
                let rows = left;
                run(Job {
                    blocks: &mut blocks,
                    rows,
                    matrix: &matrix,
                    bias: None,
                    out: &mut out,
                    out_stride: width,
                });
                out
            };
            assert_eq!(fast, with(&|job| job.run(tiles::portable::<2>)));
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx2() {
                #[expect(unsafe_code, reason = "the processor has just said that it has these instructions")]
                let avx2 = with(&|job| {
                    job.run::<3>(|rows, weights, sums| unsafe { tiles::x86::avx2(rows, weights, sums) });
                });
                assert_eq!(fast, avx2);
            }
        }
    }
}
