//! `quarterdeck blocks`.

use quarterdeck_runtime::{Block, lift_block, list_blocks};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operator::{BlocksCommand, BlocksLiftOptions, BlocksListOptions, BlocksOptions};
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::terminal::{info, plain, print, titled_table};
use crate::times::{now_ms, show_ms};
use crate::{ExitStatus, wire};

const COLUMNS: [&str; 5] = ["client", "until", "since", "session", "message"];

pub(crate) fn run(options: &BlocksOptions) -> anyhow::Result<ExitStatus> {
    match &options.command {
        None => list(&options.list),
        Some(BlocksCommand::List(options)) => list(options),
        Some(BlocksCommand::Lift(options)) => wire::block_on(lift(options))?,
    }
}

fn list(options: &BlocksListOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let node = options.data.node(&config);
    let found = wire::block_on(async {
        let store = wire::find_store(&node).await?;
        anyhow::Ok(list_blocks(&*store, now_ms()).await?)
    })??;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "blocks": found })))?,
        Format::Human if found.is_empty() => info("no client is blocked"),
        Format::Human => print(&titled_table(&COLUMNS, found.iter().map(row)))?,
    }
    Ok(ExitStatus::Success)
}

fn row(block: &Block) -> Vec<String> {
    vec![
        plain(&block.client_id),
        show_ms(block.until_ms),
        show_ms(block.at_ms),
        plain(&block.session_id),
        plain(&block.message),
    ]
}

async fn lift(options: &BlocksLiftOptions) -> anyhow::Result<ExitStatus> {
    let client = &options.client;
    let config = LocalConfig::load()?;
    let operator = OperatorSession::open(&options.data.node(&config)).await?;
    if !lift_block(&*operator.store(), client, now_ms()).await? {
        info(&format!("{client} is not blocked; `quarterdeck blocks` lists the clients that are"));
        return Ok(ExitStatus::Problems);
    }
    operator.record("lift_block", json!({ "clientId": client })).await?;
    info(&format!("{client} is no longer blocked"));
    Ok(ExitStatus::Success)
}
