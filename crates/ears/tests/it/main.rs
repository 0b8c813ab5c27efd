//! The ear and sound: made here, or by a synthesiser where one is installed.

mod espeak;
mod hearing;
mod sound;
