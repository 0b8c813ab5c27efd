//! `quarterdeck completions`.

use clap::CommandFactory;

use crate::ExitStatus;
use crate::arguments::{Arguments, CompletionsOptions};
use crate::terminal::print;

pub(crate) fn run(options: &CompletionsOptions) -> anyhow::Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "quarterdeck", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Success)
}
