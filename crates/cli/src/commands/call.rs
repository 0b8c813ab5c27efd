//! `quarterdeck call`.

use std::io::Read;

use anyhow::{Context, bail};
use quarterdeck_compiler::nearest;
use quarterdeck_contracts::parse_json;
use quarterdeck_contracts::{ConfirmationAnswer, Mode};
use quarterdeck_runtime::Call;
use quarterdeck_runtime::gates::{GateExplanation, Trace};
use serde_json::{Value, json};

use crate::arguments::{CallOptions, ModeChoice};
use crate::config::Site;
use crate::terminal::{print, say};
use crate::world::{Books, Came, CaseFixtures};
use crate::{Verdict, wire};

pub(crate) fn run(options: &CallOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let Some(registry) = wire::load_folder(options.tools.or(&site))? else { return Ok(Verdict::Problems) };
    let snapshot = registry.snapshot();
    let id = options.tool.replace('-', "_");
    if snapshot.find(&id).is_none() {
        let known = snapshot.tools().map(|tool| tool.metadata().tool_id.as_str());
        let hint = nearest(&id, known)
            .map_or("`quarterdeck list` shows them all".into(), |near| format!("did you mean {near}?"));
        bail!("there is no tool {}; {hint}", options.tool);
    }
    let args = parse_json(&text(options)?).context("the arguments are not a JSON object")?;
    let mode = match options.mode {
        ModeChoice::Text => Mode::Text,
        ModeChoice::Voice => Mode::Voice,
    };
    let answer = options.confirm.then_some(ConfirmationAnswer::Approve);
    let Came { response, gates } = wire::block_on(async {
        let folder = options.kb.or(&site);
        let kb = folder.is_dir().then(|| wire::knowledge(folder, options.data.or(&site))).transpose()?;
        let mut world =
            CaseFixtures::at_terminal(mode, &snapshot, Books { kb, calendar: wire::calendar(&site)? })
                .await?;
        anyhow::Ok(world.call(Call::new(&id, args), answer).await)
    })??;
    if options.explain {
        explain(&gates);
    }
    print(&format!("{:#}\n", json!(*response)))?;
    Ok(if response.is_ok() { Verdict::Fine } else { Verdict::Problems })
}

/// What each gate said, in their order.
fn explain(gates: &Value) {
    let trace: Trace = serde_json::from_value(gates.clone()).unwrap_or_default();
    for (number, GateExplanation { gate, verdict, note }) in trace.explain().into_iter().enumerate() {
        let note = note.map_or_else(String::new, |note| format!(": {note}"));
        say(&format!("{:>2}  {gate:<13}{verdict}{note}", number + 1));
    }
}

/// The arguments, from the command line or from standard input.
fn text(options: &CallOptions) -> anyhow::Result<String> {
    /// More than any schema lets through.
    const LIMIT: u64 = 1 << 20;
    if options.args != "-" {
        return Ok(options.args.clone());
    }
    let mut text = String::new();
    std::io::stdin().take(LIMIT + 1).read_to_string(&mut text).context("cannot read the arguments")?;
    if text.len() as u64 > LIMIT {
        bail!("the arguments are larger than 1 MiB");
    }
    Ok(text)
}
