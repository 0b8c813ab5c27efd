//! What a handler is written in.

use std::path::Path;

use crate::arguments::LanguageChoice;

/// By what becomes of the source.
#[derive(Clone, Copy)]
pub(super) enum Language {
    Js,
    TypeScript,
    /// Part of the binary.
    Rust,
    /// Compiled to `handler.wasm`.
    Wasm(WasmLanguage),
}

/// A language that is compiled by the compiler's own command, so that a scaffold needs no build tool.
#[derive(Clone, Copy)]
pub(super) struct WasmLanguage {
    /// As it stands in a sentence.
    pub(super) name: &'static str,
    /// The name of the source and what it holds. `handler.rs` and `handler.ts` would be handlers of other kinds.
    pub(super) handler: (&'static str, &'static str),
    /// The command that compiles, with `SOURCE` and `MODULE` for the files.
    compile: &'static str,
}

impl From<LanguageChoice> for Language {
    fn from(choice: LanguageChoice) -> Self {
        match choice {
            LanguageChoice::Js => Self::Js,
            LanguageChoice::TypeScript => Self::TypeScript,
            LanguageChoice::Rust => Self::Rust,
            LanguageChoice::C => Self::Wasm(C),
            LanguageChoice::RustWasm => Self::Wasm(RUST),
            LanguageChoice::Zig => Self::Wasm(ZIG),
            LanguageChoice::AssemblyScript => Self::Wasm(ASSEMBLYSCRIPT),
        }
    }
}

const C: WasmLanguage = WasmLanguage {
    name: "C",
    handler: ("handler.c", include_str!("../../../templates/utility/handler.c.txt")),
    compile: "clang --target=wasm32 -O2 -mbulk-memory -nostdlib -Wl,--no-entry -o MODULE SOURCE",
};

const RUST: WasmLanguage = WasmLanguage {
    name: "Rust for WebAssembly",
    handler: ("wasm.rs", include_str!("../../../templates/utility/wasm.rs.txt")),
    // With the debug information of the standard library it would be five times as large as a handler may be.
    compile: "rustc --edition 2021 --crate-type cdylib --target wasm32-unknown-unknown -O -C strip=debuginfo -o MODULE SOURCE",
};

const ZIG: WasmLanguage = WasmLanguage {
    name: "Zig",
    handler: ("handler.zig", include_str!("../../../templates/utility/handler.zig.txt")),
    compile: "zig build-exe -target wasm32-freestanding -fno-entry -rdynamic -O ReleaseSmall -femit-bin=MODULE SOURCE",
};

const ASSEMBLYSCRIPT: WasmLanguage = WasmLanguage {
    name: "AssemblyScript",
    handler: ("assembly.ts", include_str!("../../../templates/utility/assembly.ts.txt")),
    // `abort` would be imported; without it, a failure is a trap.
    compile: "asc SOURCE -o MODULE -O --runtime stub --use abort=",
};

impl WasmLanguage {
    /// The line that compiles the source in this folder.
    pub(super) fn compile_line(&self, folder: &Path) -> String {
        let (source, module) = (folder.join(self.handler.0), folder.join("handler.wasm"));
        let words = self.compile.split(' ').map(|word| match word {
            "SOURCE" => source.display().to_string(),
            _ => word.replace("MODULE", &module.display().to_string()),
        });
        words.collect::<Vec<_>>().join(" ")
    }
}
