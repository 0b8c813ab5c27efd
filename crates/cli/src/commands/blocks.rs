//! `quarterdeck blocks`.

use quarterdeck_runtime::{Block, blocks, lift_block};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::operating::{BlocksCommand, BlocksLiftOptions, BlocksListOptions, BlocksOptions};
use crate::config::Site;
use crate::operator::Operator;
use crate::terminal::{plain, print, say, titled_table};
use crate::times::{now_ms, show_ms};
use crate::{Verdict, wire};

const COLUMNS: [&str; 5] = ["client", "until", "since", "session", "message"];

pub(crate) fn run(options: &BlocksOptions) -> anyhow::Result<Verdict> {
    match &options.command {
        None => list(&options.list),
        Some(BlocksCommand::List(options)) => list(options),
        Some(BlocksCommand::Lift(options)) => wire::block_on(lift(options))?,
    }
}

fn list(options: &BlocksListOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let store = wire::find_store(options.data.or(&site))?;
    let found = wire::block_on(blocks(&*store, now_ms()))??;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "blocks": found })))?,
        Format::Human if found.is_empty() => say("nobody is blocked"),
        Format::Human => print(&titled_table(&COLUMNS, found.iter().map(row)))?,
    }
    Ok(Verdict::Fine)
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

async fn lift(options: &BlocksLiftOptions) -> anyhow::Result<Verdict> {
    let client = &options.client;
    let site = Site::load()?;
    let operator = Operator::at(options.data.or(&site)).await?;
    if !lift_block(&*operator.store(), client, now_ms()).await? {
        say(&format!("{client} is not blocked; `quarterdeck blocks` lists who is"));
        return Ok(Verdict::Problems);
    }
    operator.did("lift_block", json!({ "clientId": client })).await?;
    say(&format!("{client} is no longer blocked"));
    Ok(Verdict::Fine)
}
