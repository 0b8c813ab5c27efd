//! Tool folders in, one artifact out.

pub mod adapters;
