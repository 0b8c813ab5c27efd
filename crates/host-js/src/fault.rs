//! What a handler's author is told of a fault: the stack in the author's own files, the source line, and a hint.

use std::collections::BTreeMap;

use quarterdeck_contracts::handler::{
    CapabilityError, CapabilityErrorCode, Context, HandlerFault, HandlerToLoad, SourceExcerpt, StackFrame,
};
use quarterdeck_contracts::{AnswerError, CapabilitySpec};

use crate::answer::Thrown;
use crate::hints::{self, Declared, Exception};
use crate::program::Program;

/// What a fault of a handler is explained with.
pub(crate) struct HandlerSources {
    entry: String,
    /// The texts of its files, by path relative to the tools folder.
    texts: BTreeMap<String, String>,
    declared: Declared,
}

impl HandlerSources {
    pub(crate) fn new(handler: HandlerToLoad<'_>, texts: BTreeMap<String, String>) -> Self {
        let folder = handler.entry.split('/').next().unwrap_or_default();
        let declared = Declared {
            definition: format!("{folder}/schema.json"),
            capabilities: handler.metadata.capabilities.iter().flatten().map(ToString::to_string).collect(),
            network: handler.metadata.network.clone(),
        };
        Self { entry: handler.entry.to_owned(), texts, declared }
    }

    fn excerpt(&self, frame: &StackFrame) -> Option<SourceExcerpt> {
        SourceExcerpt::of(self.texts.get(&frame.file)?, &frame.file, frame.line, frame.column)
    }

    /// The calls of an engine's stack that are in the handler's files: `    at execute (tool/handler.js:3:10)`.
    fn frames(&self, stack: &str) -> Vec<StackFrame> {
        stack.lines().filter_map(|line| self.frame(line)).collect()
    }

    fn frame(&self, line: &str) -> Option<StackFrame> {
        let call = line.trim().strip_prefix("at ")?;
        let (function, place) = match call.strip_suffix(')').and_then(|call| call.rsplit_once(" (")) {
            Some((function, place)) => (Some(function), place),
            None => (None, call),
        };
        let (rest, column) = place.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let function = function.filter(|name| !name.starts_with('<')).map(str::to_owned);
        let is_own = self.texts.contains_key(file);
        let frame = StackFrame {
            function,
            file: file.to_owned(),
            line: line.parse().ok()?,
            column: column.parse().ok()?,
        };
        is_own.then_some(frame)
    }

    /// Where `execute` is exported, which an answer of the wrong form came from.
    fn execute(&self) -> Option<SourceExcerpt> {
        let text = self.texts.get(&self.entry)?;
        text.lines().zip(1..).find_map(|(line, number)| {
            let export = line.find("export")?;
            let name = export + line[export..].find("execute")?;
            let column = line[..name].chars().count() as u32 + 1;
            SourceExcerpt::of(text, &self.entry, number, column)
        })
    }
}

impl Program {
    /// What was thrown, and where.
    pub(crate) fn fault(&self, thrown: &Thrown) -> HandlerFault {
        self.fault_with(thrown, &[])
    }

    fn fault_with(&self, thrown: &Thrown, capabilities: &[CapabilitySpec]) -> HandlerFault {
        let frames = self.sources.frames(&thrown.stack);
        let excerpt = frames.first().and_then(|frame| self.sources.excerpt(frame));
        let line = excerpt.as_ref().map_or("", |excerpt| excerpt.text.as_str());
        let execute = self.sources.execute();
        let execute = execute.as_ref().map_or("", |excerpt| excerpt.text.as_str());
        let exception = Exception { head: &thrown.head, line, execute };
        let hint = hints::of_exception(&exception, &self.sources.declared, capabilities);
        HandlerFault { excerpt, hint, ..HandlerFault::new(&thrown.head).at(frames) }
    }
}

/// Reports the faults of one call.
pub(crate) struct FaultReporter<'a> {
    pub(crate) program: &'a Program,
    pub(crate) capabilities: &'a [CapabilitySpec],
    pub(crate) context: &'a dyn Context,
}

impl FaultReporter<'_> {
    pub(crate) fn report(&self, fault: HandlerFault) {
        self.context.report_fault(fault);
    }

    pub(crate) fn thrown(&self, thrown: &Thrown) -> HandlerFault {
        self.program.fault_with(thrown, self.capabilities)
    }

    /// An answer that JSON has no words for, found when it was written.
    pub(crate) fn unwritable(&self, thrown: &Thrown) -> HandlerFault {
        let fault = self.thrown(thrown);
        HandlerFault { excerpt: fault.excerpt.or_else(|| self.program.sources.execute()), ..fault }
    }

    /// An answer of the wrong form; `returned` says what it was.
    pub(crate) fn misshapen(&self, error: &AnswerError, returned: &str) -> HandlerFault {
        let fault = HandlerFault::new(format!("the handler's answer is malformed: {error}"));
        let hint = hints::of_answer(error, returned);
        HandlerFault { excerpt: self.program.sources.execute(), ..fault.with_hint(hint) }
    }

    /// An error of a capability that the handler did not catch.
    pub(crate) fn capability(&self, error: &CapabilityError, stack: &str) -> HandlerFault {
        let head = format!("CapabilityError: {}", error.message);
        let fault = self.program.fault(&Thrown { head, stack: stack.to_owned() });
        let hint = (error.code == CapabilityErrorCode::NotDeclared)
            .then(|| hints::of_undeclared(&error.message, &self.program.sources.declared))
            .flatten();
        HandlerFault { hint: hint.or(fault.hint), ..fault }
    }
}
