//! Builds the guest: QuickJS with our glue around it, as one WebAssembly module.
//!
//! QuickJS and a libc for it come with the crate `rquickjs-sys`, a build dependency of which nothing but these files is used;
//! cargo knows where they are. Debian's clang compiles them, and the linker of the Rust toolchain links them: it knows what the
//! libc needs, and older ones do not.

#![expect(clippy::disallowed_methods, reason = "Cargo speaks to build scripts through the environment")]
#![expect(clippy::print_stderr, reason = "and they speak to their user through it")]

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Ours, in `guest/`.
const GLUE: [&str; 3] = ["exchange.c", "compiler.c", "runner.c"];
/// And what differs between the guest of the product and that of our tests, which has faults that a handler can set off.
const SOUND: [&str; 1] = ["host_object.c"];
const FAULTY: [&str; 2] = ["host_object.c", "faults.c"];
/// Of the crate.
const ENGINE: [&str; 5] = [
    "quickjs/quickjs.c",
    "quickjs/libregexp.c",
    "quickjs/libunicode.c",
    "quickjs/dtoa.c",
    "wasm-shim/shim.c",
];
/// The stack of the guest's C. It comes first in the memory, so that an overflow is a trap. `src/guest.rs` has the same number.
const STACK_BYTES: usize = 256 << 10;

const CLANG_HELP: &str = "\
JavaScript handlers run on QuickJS, which is compiled to WebAssembly while Quarterdeck is built. That takes clang with its
WebAssembly target, and it was not found. Install it, then build again:

    Debian, Ubuntu   apt install clang          (or: make setup)
    Fedora           dnf install clang
    macOS            brew install llvm          (Apple's own clang has no WebAssembly)

A clang elsewhere is taken from QUARTERDECK_CLANG.";

fn main() {
    println!("cargo:rerun-if-changed=guest");
    println!("cargo:rerun-if-env-changed=QUARTERDECK_CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    if let Err(message) = build() {
        eprintln!("\n{message}\n");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let sources = engine_sources()?;
    let clang = find_clang().ok_or(CLANG_HELP)?;
    let in_glue = |file: &&str| Path::new("guest").join(file);
    let shared: Vec<_> =
        ENGINE.iter().map(|file| sources.join(file)).chain(GLUE.iter().map(in_glue)).collect();
    let compiler = Compiler { clang, sources };
    // At the same time: QuickJS itself takes longer than everything else.
    let shared = compiler.start(shared, &out, &[])?;
    let sound = compiler.start(SOUND.iter().map(in_glue), &out, &[])?;
    let faulty_out = out.join("faulty");
    std::fs::create_dir_all(&faulty_out).map_err(|error| error.to_string())?;
    let faulty = compiler.start(FAULTY.iter().map(in_glue), &faulty_out, &["-DWITH_FAULTS"])?;
    let [shared, sound, faulty] = [finish(shared)?, finish(sound)?, finish(faulty)?];
    link(&[&*shared, &sound].concat(), &compiler.sources, &out.join("guest.wasm"))?;
    link(&[&*shared, &faulty].concat(), &compiler.sources, &out.join("faulty_guest.wasm"))?;
    let mut hasher = DefaultHasher::new();
    std::fs::read(out.join("guest.wasm")).map_err(|error| error.to_string())?.hash(&mut hasher);
    println!("cargo:rustc-env=GUEST_HASH={:016x}", hasher.finish());
    Ok(())
}

/// A file that is being compiled.
struct Compiling {
    source: PathBuf,
    object: PathBuf,
    clang: Child,
}

struct Compiler {
    clang: PathBuf,
    sources: PathBuf,
}

impl Compiler {
    fn start(
        &self,
        files: impl IntoIterator<Item = PathBuf>,
        out: &Path,
        flags: &[&str],
    ) -> Result<Vec<Compiling>, String> {
        let start = |source: PathBuf| {
            let object = out.join(source.file_stem().unwrap_or_default()).with_extension("o");
            let mut compile = compile_command(&self.clang, &self.sources);
            let clang = compile.args(flags).arg("-o").arg(&object).arg(&source).spawn();
            let clang = clang.map_err(|error| format!("{} does not start: {error}", self.clang.display()))?;
            Ok(Compiling { source, object, clang })
        };
        files.into_iter().map(start).collect()
    }
}

/// The objects, once they are there.
fn finish(files: Vec<Compiling>) -> Result<Vec<PathBuf>, String> {
    let wait = |mut file: Compiling| match file.clang.wait() {
        Ok(ended) if ended.success() => Ok(file.object),
        _ => Err(format!("clang could not compile {}", file.source.display())),
    };
    files.into_iter().map(wait).collect()
}

fn compile_command(clang: &Path, sources: &Path) -> Command {
    let mut compile = Command::new(clang);
    compile
        .args(["--target=wasm32-unknown-unknown", "-c", "-O2", "-fvisibility=hidden", "-w"])
        // What the crate's own build script defines for this target.
        .args(["-D_GNU_SOURCE", "-DEMSCRIPTEN=1", "-DFE_DOWNWARD=0", "-DFE_UPWARD=0"])
        .arg("-isystem")
        .arg(sources.join("vendor/wasi-libc/include"))
        .arg("-I")
        .arg(sources.join("quickjs"));
    compile
}

fn link(objects: &[PathBuf], sources: &Path, module: &Path) -> Result<(), String> {
    let linker = linker()?;
    let ended = Command::new(&linker)
        .args(["--no-entry", "--import-memory", "--export-memory", "--stack-first", "--gc-sections"])
        .arg(format!("-zstack-size={STACK_BYTES}"))
        // Names are for the traces of traps.
        .arg("--strip-debug")
        .args(objects)
        .arg(sources.join("vendor/wasi-libc/lib/libc.a"))
        .arg("-o")
        .arg(module)
        .status()
        .map_err(|error| format!("{} does not start: {error}", linker.display()))?;
    if ended.success() { Ok(()) } else { Err(format!("{} could not link the guest", linker.display())) }
}

/// The first clang that compiles to WebAssembly.
fn find_clang() -> Option<PathBuf> {
    let homebrew = ["/opt/homebrew/opt/llvm/bin/clang", "/usr/local/opt/llvm/bin/clang"];
    let versions = (14..=24).rev().map(|version| format!("clang-{version}"));
    let names = env::var("QUARTERDECK_CLANG").ok().into_iter().chain(["clang".to_owned()]).chain(versions);
    let mut candidates = names.chain(homebrew.map(str::to_owned));
    candidates.find(|clang| has_target(clang)).map(PathBuf::from)
}

fn has_target(clang: &str) -> bool {
    let targets = Command::new(clang).arg("--print-targets").output();
    targets.is_ok_and(|printed| String::from_utf8_lossy(&printed.stdout).contains("wasm32"))
}

/// `wasm-ld` of the Rust toolchain.
fn linker() -> Result<PathBuf, String> {
    let rustc = variable("RUSTC")?;
    let printed = Command::new(&rustc)
        .args(["--print", "sysroot"])
        .output()
        .map_err(|error| format!("{rustc} does not start: {error}"))?;
    let sysroot = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
    let host = variable("HOST")?;
    let linker = Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/gcc-ld/wasm-ld");
    if linker.exists() {
        return Ok(linker);
    }
    Err(format!(
        "the Rust toolchain has no {}, which links JavaScript's engine; use a toolchain of rustup",
        linker.display()
    ))
}

/// The folder of `rquickjs-sys`, wherever cargo has it: in a registry's cache, or vendored.
fn engine_sources() -> Result<PathBuf, String> {
    let metadata = |offline: bool| -> Option<String> {
        let mut cargo = Command::new(env::var_os("CARGO")?);
        cargo.args(["metadata", "--format-version", "1", "--locked"]);
        cargo.arg("--filter-platform").arg(env::var_os("HOST")?);
        if offline {
            cargo.arg("--offline");
        }
        let printed = cargo.output().ok()?;
        let text = String::from_utf8(printed.stdout).ok()?;
        manifest_in(&text).map(str::to_owned)
    };
    // Nearly always everything is here already.
    let manifest = metadata(true).or_else(|| metadata(false));
    let manifest =
        manifest.ok_or("`cargo metadata` does not know where `rquickjs-sys` is; run `cargo fetch`")?;
    Path::new(&manifest).parent().map(Path::to_owned).ok_or_else(|| format!("{manifest} is in no folder"))
}

/// The path of the manifest of `rquickjs-sys`, which is in no other way in the text than as this value.
fn manifest_in(metadata: &str) -> Option<&str> {
    metadata.split("\"manifest_path\":\"").skip(1).find_map(|after| {
        let path = after.split('"').next()?;
        let folder = Path::new(path).parent()?.file_name()?.to_str()?;
        (folder == "rquickjs-sys" || folder.starts_with("rquickjs-sys-")).then_some(path)
    })
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo has not set {name}"))
}
