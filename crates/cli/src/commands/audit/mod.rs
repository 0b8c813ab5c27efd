//! `quarterdeck audit`: one file for each of its commands.

mod export;
mod line;
mod ocsf;
mod query;
mod reader;
mod tail;
mod verify;

use crate::ExitStatus;
use crate::arguments::operator::AuditCommand;

pub(crate) fn run(command: &AuditCommand) -> anyhow::Result<ExitStatus> {
    match command {
        AuditCommand::Tail(options) => tail::run(options),
        AuditCommand::Query(options) => query::run(options),
        AuditCommand::Export(options) => export::run(options),
        AuditCommand::Verify(options) => verify::run(options),
    }
}
