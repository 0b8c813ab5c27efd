//! Faults, each a few times.

#![expect(clippy::print_stdout, reason = "it says what it saw")]

mod faults;
mod one_node;
