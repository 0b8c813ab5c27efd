//! `make bench`: what the README's table shows. Times are CPU times of one thread; the median of several rounds.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

mod build;
mod rounds;

fn main() {
    println!("| what | CPU time | rounds |");
    println!("| --- | --- | --- |");
    build::run();
}
