//! Rebuilds the crate when a file is added to the embedded pages; changes to known files are tracked by the compiler.

fn main() {
    println!("cargo::rerun-if-changed=web");
}
