//! The crate from outside: made-up models, damaged ones, installation, and the real model where it is installed.

mod damaged;
mod golden;
mod install;
mod models;
mod world;
