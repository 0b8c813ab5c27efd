//! Link options of the binary.

use std::env;

#[expect(clippy::disallowed_methods, reason = "Cargo speaks to build scripts through the environment")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Relocations are read at every start, and stay in memory; packed, they take much less. The C library reads them since
    // 2.36, which is Debian 12's.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
