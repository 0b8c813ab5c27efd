//! `quarterdeck call`.

use std::io::Read;
use std::sync::Arc;

use anyhow::{Context, bail};
use quarterdeck_calendar::Calendars;
use quarterdeck_compiler::nearest;
use quarterdeck_contracts::{CaseClient, ConfirmationAnswer, Mode, parse_json};
use quarterdeck_runtime::gates::{GateExplanation, Trace};
use quarterdeck_runtime::{Call, Client, Snapshot};
use serde_json::{Value, json};

use crate::arguments::{CallOptions, ClientOptions, ModeChoice};
use crate::config::LocalConfig;
use crate::handler_access::{LocalAccess, SecretSource};
use crate::local_session::{self, CallResult, LocalSession, LocalSources, LocalWorld};
use crate::recorded_fetches::{RecordedFetches, Recording};
use crate::terminal::{info, print};
use crate::{ExitStatus, report, wire};

pub(crate) fn run(options: &CallOptions) -> anyhow::Result<ExitStatus> {
    run_tool(&options.tool, options)
}

/// Calls a tool that may have another name on the command line.
pub(crate) fn run_tool(name: &str, options: &CallOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let recorded = Arc::new(RecordedFetches::default());
    let access = LocalAccess {
        grants: config.grants.clone(),
        private_hosts: options.private_hosts.hosts.clone(),
        secrets: SecretSource::Configured,
        recorded: recorded.clone(),
        servers: config.mcp.clone(),
    };
    let tools = options.tools.or(&config);
    let Some(registry) = wire::load_folder(tools, &access)? else {
        return Ok(ExitStatus::Problems);
    };
    let snapshot = registry.snapshot();
    let id = name.replace('-', "_");
    if snapshot.find(&id).is_none() {
        if snapshot.left_out().iter().any(|problem| problem.left_out_tool() == Some(&id)) {
            report::left_out(&snapshot, tools);
            return Ok(ExitStatus::Problems);
        }
        bail!("there is no tool {name}; {}", hint_for(&id, &snapshot));
    }
    let args = parse_json(&read_arguments(options)?).context("the arguments are not a JSON object")?;
    let mode = match options.mode {
        ModeChoice::Text => Mode::Text,
        ModeChoice::Voice => Mode::Voice,
    };
    let answer = options.confirm.then_some(ConfirmationAnswer::Approve);
    let CallResult { response, fault, gates } = wire::block_on(async {
        let folder = options.kb.or(&config);
        let kb = wire::find_knowledge(&config, folder, options.data.or(&config)).await?;
        let sources = LocalSources {
            kb,
            calendar: Calendars::local(config.calendar.calendars.clone())?,
            topics: config.topics.clone(),
        };
        let world = LocalWorld { snapshot, recorded };
        let client = match signed_in_client(&options.client)? {
            Some(client) => client,
            None => local_session::client(None).map_err(anyhow::Error::msg)?,
        };
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
    if let Some(fault) = &fault {
        report::fault(fault, tools);
    }
    print(&format!("{:#}\n", json!(*response)))?;
    Ok(if response.is_ok() { ExitStatus::Success } else { ExitStatus::Problems })
}

fn hint_for(id: &str, snapshot: &Snapshot) -> String {
    let known = snapshot.tools().map(|tool| tool.metadata().tool_id.as_str());
    nearest(id, known)
        .map_or("`quarterdeck list` shows them all".into(), |near| format!("did you mean {near}?"))
}

/// A client who has signed in, if a flag says so.
pub(crate) fn signed_in_client(options: &ClientOptions) -> anyhow::Result<Option<Client>> {
    let no_object = "the claims are not a JSON object, such as '{ \"role\": \"staff\" }'";
    let claims = match &options.claims {
        Some(text) => Some(serde_json::from_value(parse_json(text).context(no_object)?).context(no_object)?),
        None => None,
    };
    if options.client.is_none() && claims.is_none() {
        return Ok(None);
    }
    let given = CaseClient { id: options.client.clone(), claims: claims.unwrap_or_default() };
    local_session::client(Some(&given)).map(Some).map_err(anyhow::Error::msg)
}

fn print_gates(gates: &Value) {
    let trace: Trace = serde_json::from_value(gates.clone()).unwrap_or_default();
    for (number, GateExplanation { gate, verdict, note }) in trace.explain().into_iter().enumerate() {
        let note = note.map_or_else(String::new, |note| format!(": {note}"));
        info(&format!("{:>2}  {gate:<12} {verdict}{note}", number + 1));
    }
}

/// The arguments, from the command line or from standard input.
pub(crate) fn read_arguments(options: &CallOptions) -> anyhow::Result<String> {
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
