//! An engine that is asked whether a source parses.

use std::cell::RefCell;

use crate::js_engine::JsEngine;
use crate::offline::{NoImports, OfflineInstance, length};

pub(crate) struct Parser(RefCell<OfflineInstance>);

impl Parser {
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Self(RefCell::new(JsEngine::get()?.compiler(NoImports)?)))
    }

    /// Whether the engine takes a source for a module. One that it fails at is none.
    pub(crate) fn parses(&self, source: &str) -> bool {
        let mut engine = self.0.borrow_mut();
        let Ok(size) = length(source) else { return false };
        engine.write(source).and_then(|at| engine.call::<_, u32>("parses", (at, size))) == Ok(1)
    }
}
