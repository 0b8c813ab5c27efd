//! `quarterdeck audit`: one file for each of its commands.

mod export;
mod line;
mod query;
mod tail;
mod trail;
mod verify;

use crate::Verdict;
use crate::arguments::operating::AuditCommand;

pub(crate) fn run(command: &AuditCommand) -> anyhow::Result<Verdict> {
    match command {
        AuditCommand::Tail(options) => tail::run(options),
        AuditCommand::Query(options) => query::run(options),
        AuditCommand::Export(options) => export::run(options),
        AuditCommand::Verify(options) => verify::run(options),
    }
}
