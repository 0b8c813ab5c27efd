//! `quarterdeck call`.

use std::io::Read;
use std::sync::Arc;

use anyhow::{Context, bail};
use quarterdeck_calendar::Calendars;
use quarterdeck_compiler::nearest;
use quarterdeck_contracts::{CaseClient, ConfirmationAnswer, Mode, parse_json};
use quarterdeck_runtime::gates::{GateExplanation, Trace};
use quarterdeck_runtime::{Call, Client};
use serde_json::{Value, json};

use crate::arguments::{CallOptions, ClientOptions, ModeChoice};
use crate::config::LocalConfig;
use crate::handler_access::{LocalAccess, SecretSource};
use crate::local_session::{self, CallResult, LocalSession, LocalSources, LocalWorld};
use crate::recorded_fetches::{RecordedFetches, Recording};
use crate::terminal::{info, print};
use crate::{ExitStatus, wire};

pub(crate) fn run(options: &CallOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let recorded = Arc::new(RecordedFetches::default());
    let access = LocalAccess {
        grants: config.grants.clone(),
        private_hosts: options.private_hosts.hosts.clone(),
        secrets: SecretSource::Configured,
        recorded: recorded.clone(),
    };
    let Some(registry) = wire::load_folder(options.tools.or(&config), &access)? else {
        return Ok(ExitStatus::Problems);
    };
    let snapshot = registry.snapshot();
    let id = options.tool.replace('-', "_");
    if snapshot.find(&id).is_none() {
        let known = snapshot.tools().map(|tool| tool.metadata().tool_id.as_str());
        let hint = nearest(&id, known)
            .map_or("`quarterdeck list` shows them all".into(), |near| format!("did you mean {near}?"));
        bail!("there is no tool {}; {hint}", options.tool);
    }
    let args = parse_json(&read_arguments(options)?).context("the arguments are not a JSON object")?;
    let mode = match options.mode {
        ModeChoice::Text => Mode::Text,
        ModeChoice::Voice => Mode::Voice,
    };
    let answer = options.confirm.then_some(ConfirmationAnswer::Approve);
    let CallResult { response, gates } = wire::block_on(async {
        let folder = options.kb.or(&config);
        let kb = folder.is_dir().then(|| wire::knowledge(folder, options.data.or(&config))).transpose()?;
        let sources = LocalSources {
            kb,
            calendar: Calendars::local(config.calendar.calendars.clone())?,
            topics: config.topics.clone(),
        };
        let world = LocalWorld { snapshot, recorded };
        let client = client(&options.client)?;
        let mut session = LocalSession::for_terminal(mode, client, &world, sources).await?;
        if let Some(file) = &options.fetch {
            session.record_fetches(Recording::read(file)?);
        }
        options.said.iter().for_each(|words| session.add_user_words(words));
        anyhow::Ok(session.call(Call::new(&id, args), answer).await)
    })??;
    if options.explain {
        print_gates(&gates);
    }
    print(&format!("{:#}\n", json!(*response)))?;
    Ok(if response.is_ok() { ExitStatus::Success } else { ExitStatus::Problems })
}

/// A client who has signed in, if a flag says so.
fn client(options: &ClientOptions) -> anyhow::Result<Client> {
    let no_object = "the claims are not a JSON object, such as '{ \"role\": \"staff\" }'";
    let claims = match &options.claims {
        Some(text) => Some(serde_json::from_value(parse_json(text).context(no_object)?).context(no_object)?),
        None => None,
    };
    let signed_in = options.client.is_some() || claims.is_some();
    let given =
        signed_in.then(|| CaseClient { id: options.client.clone(), claims: claims.unwrap_or_default() });
    local_session::client(given.as_ref()).map_err(anyhow::Error::msg)
}

fn print_gates(gates: &Value) {
    let trace: Trace = serde_json::from_value(gates.clone()).unwrap_or_default();
    for (number, GateExplanation { gate, verdict, note }) in trace.explain().into_iter().enumerate() {
        let note = note.map_or_else(String::new, |note| format!(": {note}"));
        info(&format!("{:>2}  {gate:<12} {verdict}{note}", number + 1));
    }
}

/// The arguments, from the command line or from standard input.
fn read_arguments(options: &CallOptions) -> anyhow::Result<String> {
    const MAX_ARGUMENT_BYTES: u64 = 1 << 20;
    if options.args != "-" {
        return Ok(options.args.clone());
    }
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_ARGUMENT_BYTES + 1)
        .read_to_string(&mut text)
        .context("cannot read the arguments")?;
    if text.len() as u64 > MAX_ARGUMENT_BYTES {
        bail!("the arguments are larger than 1 MiB");
    }
    Ok(text)
}
