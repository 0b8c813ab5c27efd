//! Looks at a module before a build.

use quarterdeck_contracts::handler::{FileType, Finding, FindingKind, HandlerSource, Inspection, Inspector};

use crate::module_check::{self, Problem};

/// Looks at `handler.wasm` files, with the reader and the validator that wasmtime has. Nothing is compiled: what is valid and
/// within the limits compiles, and a build need not wait for it.
#[derive(Debug, Default)]
pub struct WasmInspector;

impl Inspector for WasmInspector {
    fn entry_file(&self) -> &'static str {
        "handler.wasm"
    }

    fn file_types(&self) -> &'static [FileType] {
        const { &[FileType::binary("wasm")] }
    }

    fn inspect(&self, source: HandlerSource<'_>) -> Inspection {
        let bytes = source.files.get(source.entry).map_or(&[][..], Vec::as_slice);
        let findings = module_check::problems(bytes).into_iter().map(|problem| Finding {
            kind: match problem {
                Problem::Module(_) => FindingKind::WasmModule,
                Problem::Interface(_) => FindingKind::WasmInterface,
            },
            file: source.entry.to_owned(),
            position: None,
            message: problem.message().to_owned(),
        });
        Inspection { findings: findings.collect(), files: vec![source.entry.to_owned()] }
    }
}
