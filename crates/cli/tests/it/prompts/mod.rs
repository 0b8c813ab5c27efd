//! What the rehearsal comes to for the prompts of `tests/prompts`, with the tools and records of this repository.

mod in_a_call;
mod in_writing;
mod prompt_set;
