//! What the crate promises, in our own cases and against recorded results of the reference implementation.

mod admit;
mod arbitrary;
mod compare;
mod corpus;
mod formats;
mod hostile;
mod lint;
mod suite;
mod work;
