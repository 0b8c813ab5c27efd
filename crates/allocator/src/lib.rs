//! The allocator of the binary: mimalloc, asked plainly.
//!
//! A call makes many small values, and each is one request to the allocator. mimalloc's own crate makes every request as if its
//! alignment were unusual, which takes twice as long; here only those do that are.

#![expect(unsafe_code, reason = "an allocator is an unsafe trait, and mimalloc's functions are C")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// mimalloc aligns every block to this that is at least as large (`MI_MAX_ALIGN_SIZE`), and smaller ones to their size rounded
/// down to a power of two.
const NATURAL_ALIGNMENT: usize = 16;

/// For `#[global_allocator]`.
#[derive(Debug, Clone, Copy)]
pub struct Allocator;

/// Whether a block of this size has the alignment without being asked for it.
fn is_natural(size: usize, alignment: usize) -> bool {
    alignment <= NATURAL_ALIGNMENT && alignment <= size
}

// SAFETY: the functions are those of one allocator, and what they return is aligned as the layout asks: either they are told the
// alignment, or every block of that size has it.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: the functions take any size, and alignments that are powers of two.
        unsafe {
            match is_natural(size, alignment) {
                true => mi_malloc(size).cast(),
                false => mi_malloc_aligned(size, alignment).cast(),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: as above.
        unsafe {
            match is_natural(size, alignment) {
                true => mi_zalloc(size).cast(),
                false => mi_zalloc_aligned(size, alignment).cast(),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller has it from one of the other functions.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller has the block from one of the other functions; mimalloc knows how it was made.
        unsafe {
            match is_natural(size, layout.align()) {
                true => mi_realloc(block.cast(), size).cast(),
                false => mi_realloc_aligned(block.cast(), size, layout.align()).cast(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: std::ops::Range<usize> = 1..5_000;
    const ALIGNMENTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 4_096];

    fn layouts() -> impl Iterator<Item = Layout> {
        SIZES.flat_map(|size| ALIGNMENTS.map(|alignment| Layout::from_size_align(size, alignment).unwrap()))
    }

    #[test]
    fn blocks_are_aligned_as_asked_whatever_their_size() {
        for layout in layouts() {
            // Several, because the first of a page is aligned better than it must be.
            let blocks: Vec<_> = (0..4).map(|_| unsafe { Allocator.alloc(layout) }).collect();
            for block in blocks {
                assert!(!block.is_null() && block.addr() % layout.align() == 0, "{layout:?}");
                unsafe { Allocator.dealloc(block, layout) };
            }
        }
    }

    #[test]
    fn zeroed_blocks_are_zeroed_where_others_were_before() {
        for layout in layouts() {
            let used = unsafe { Allocator.alloc(layout) };
            unsafe { used.write_bytes(0xa5, layout.size()) };
            unsafe { Allocator.dealloc(used, layout) };
            let block = unsafe { Allocator.alloc_zeroed(layout) };
            assert!(block.addr() % layout.align() == 0, "{layout:?}");
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            assert!(bytes.iter().all(|byte| *byte == 0), "{layout:?}");
            unsafe { Allocator.dealloc(block, layout) };
        }
    }

    #[test]
    fn block_that_grows_or_shrinks_keeps_its_bytes_and_its_alignment() {
        for layout in layouts().step_by(7) {
            for size in [1, layout.size() / 2, layout.size() * 2, layout.size() * 9] {
                let size = size.max(1);
                let block = unsafe { Allocator.alloc(layout) };
                unsafe { block.write_bytes(0x5a, layout.size()) };
                let moved = unsafe { Allocator.realloc(block, layout, size) };
                assert!(moved.addr() % layout.align() == 0, "{layout:?} to {size}");
                let kept = unsafe { std::slice::from_raw_parts(moved, size.min(layout.size())) };
                assert!(kept.iter().all(|byte| *byte == 0x5a), "{layout:?} to {size}");
                let layout = Layout::from_size_align(size, layout.align()).unwrap();
                unsafe { Allocator.dealloc(moved, layout) };
            }
        }
    }
}
