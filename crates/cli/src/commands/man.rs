//! `quarterdeck man`: a manual page for each command, as packages install them.

use std::fs;

use anyhow::Context;
use clap::CommandFactory;

use crate::ExitStatus;
use crate::arguments::{Arguments, ManOptions};

pub(crate) fn run(options: &ManOptions) -> anyhow::Result<ExitStatus> {
    let folder = &options.out;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .with_context(|| format!("cannot write the manual pages to {}", folder.display()))?;
    Ok(ExitStatus::Success)
}
