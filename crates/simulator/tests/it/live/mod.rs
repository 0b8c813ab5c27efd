//! Conversations with the Live simulator, on a stream in memory and a clock that waits for nobody.

mod answering;
mod anything;
mod client;
mod conversations;
mod examples;
mod faults;
mod frames;
mod interrupting;
mod reading;
mod recorded;
mod resuming;
mod setting_up;
mod waiting;
