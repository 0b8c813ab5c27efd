//! `quarterdeck registry`. Versions live in the server's memory, so the running server is asked.

use std::path::Path;

use anyhow::{Context, bail};
use quarterdeck_runtime::{Bundle, ClaimRule, MAX_BUNDLE_BYTES, OrganisationRule, Rollout, Share};
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::admin_client::AdminClient;
use crate::arguments::Format;
use crate::arguments::operator::RunningServer;
use crate::arguments::registry::{
    RegistryActivateOptions, RegistryCommand, RegistryListOptions, RegistryRetireOptions,
    RegistryRolloutOptions, Rule,
};
use crate::config::LocalConfig;
use crate::terminal::{info, plain, print, titled_table};

/// Means the artifact that the server was started with.
const START: &str = "start";
const COLUMNS: [&str; 11] =
    ["version", "state", "open", "sessions", "calls", "errors", "asked", "approved", "p50", "p95", "tokens"];

pub(crate) fn run(command: &RegistryCommand) -> anyhow::Result<ExitStatus> {
    match command {
        RegistryCommand::List(options) => list(options),
        RegistryCommand::Activate(options) => activate(options),
        RegistryCommand::Retire(options) => retire(options),
        RegistryCommand::Rollout(options) => rollout(options),
    }
}

fn client(server: &RunningServer) -> anyhow::Result<AdminClient> {
    Ok(AdminClient::new(&LocalConfig::load()?, server))
}

fn list(options: &RegistryListOptions) -> anyhow::Result<ExitStatus> {
    let found = client(&options.server)?.request("GET", "/api/deck/versions")?.success()?;
    if options.format == Format::Json {
        print(&format!("{found:#}\n"))?;
        return Ok(ExitStatus::Success);
    }
    let versions = found["versions"].as_array().cloned().unwrap_or_default();
    let stored = found["stored"].as_array().cloned().unwrap_or_default();
    let mut text = titled_table(&COLUMNS, versions.iter().map(row));
    for version in &versions {
        text.push_str(&format!("\n{}  digest {}", text_of(version, "version"), text_of(version, "digest")));
    }
    for digest in stored.iter().filter_map(Value::as_str) {
        text.push_str(&format!("\nstored  digest {}", plain(digest)));
    }
    text.push_str(&format!("\n\n{}", explain(&found)));
    print(&text)?;
    Ok(ExitStatus::Success)
}

fn row(version: &Value) -> Vec<String> {
    let counters = &version["counters"];
    let count = |name: &str| counters[name].as_u64().unwrap_or_default().to_string();
    let step = |name: &str| counters["confirmations"][name].as_u64().unwrap_or_default().to_string();
    let ms = |name: &str| format!("{} ms", counters[name].as_f64().unwrap_or_default());
    vec![
        text_of(version, "version"),
        text_of(version, "state"),
        version["sessions"].as_u64().unwrap_or_default().to_string(),
        count("sessions"),
        count("calls"),
        count("errors"),
        step("requested"),
        step("approved"),
        ms("p50"),
        ms("p95"),
        count("tokensAverage"),
    ]
}

fn text_of(value: &Value, name: &str) -> String {
    plain(value[name].as_str().unwrap_or_default())
}

fn activate(options: &RegistryActivateOptions) -> anyhow::Result<ExitStatus> {
    let mut body = json!({ "digest": options.digest, "onlyLoad": options.only_load });
    if let Some(artifact) = &options.artifact {
        let folder = options.tools.as_deref().or(artifact.parent()).unwrap_or(Path::new("."));
        body["bundle"] = bundle(artifact, folder, &options.digest)?;
    }
    let client = client(&options.server)?;
    let done = client.send("POST", "/api/deck/versions", &body)?.success()?;
    let (version, tools) = (text_of(&done, "version"), done["tools"].as_u64().unwrap_or_default());
    info(&match options.only_load {
        true => {
            format!("{version} is loaded ({tools} tools); `quarterdeck registry rollout` gives it sessions")
        }
        false => {
            format!("new sessions get {version} ({tools} tools); sessions keep the version that they have")
        }
    });
    Ok(ExitStatus::Success)
}

/// The artifact with its handlers. What is sent has been checked here, so that a mistake is found before the server is
/// asked.
fn bundle(artifact: &Path, tools: &Path, digest: &str) -> anyhow::Result<Value> {
    let bundle = Bundle::read(artifact, tools).with_context(|| {
        format!("{} and the handlers in {} do not belong together", artifact.display(), tools.display())
    })?;
    if !bundle.digest().eq_ignore_ascii_case(digest.trim()) {
        bail!(
            "{} has the digest {}, not {digest}\nhelp: give the artifact that has it, or the digest that \
             `quarterdeck build` prints",
            artifact.display(),
            bundle.digest()
        );
    }
    let text = bundle.to_json();
    if text.len() > MAX_BUNDLE_BYTES {
        bail!("{} and its handlers have more than {MAX_BUNDLE_BYTES} bytes", artifact.display());
    }
    Ok(serde_json::from_str(&text)?)
}

fn retire(options: &RegistryRetireOptions) -> anyhow::Result<ExitStatus> {
    let name = options.version.trim();
    // It becomes a part of the path.
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.') {
        bail!("`{name}` is no version\nhelp: `quarterdeck registry list` shows those that are loaded");
    }
    let response = client(&options.server)?.request("DELETE", &format!("/api/deck/versions/{name}"))?;
    let done = response.success()?;
    let version = text_of(&done, "version");
    info(&match done["isDropped"].as_bool() {
        Some(true) => format!("{version} is dropped"),
        _ => format!("{version} takes no new sessions, and is dropped when its last session ends"),
    });
    Ok(ExitStatus::Success)
}

fn rollout(options: &RegistryRolloutOptions) -> anyhow::Result<ExitStatus> {
    let client = client(&options.server)?;
    let mut found = client.request("GET", "/api/deck/versions")?.success()?;
    if !options.is_question() {
        let rules = rules(options, found["rollout"]["rest"].as_str());
        found["rollout"] =
            client.send("POST", "/api/deck/rollout", &json!(rules))?.success()?["rollout"].take();
    }
    print(&match options.format {
        Format::Json => format!("{:#}\n", found["rollout"]),
        Format::Human => explain(&found),
    })?;
    Ok(ExitStatus::Success)
}

fn rules(options: &RegistryRolloutOptions, rest: Option<&str>) -> Rollout {
    let claim = |rule: &Rule<String>| ClaimRule { claim: rule.of.clone(), version: rule.version.clone() };
    let organisation = |rule: &Rule<String>| OrganisationRule {
        organisation: rule.of.clone(),
        version: rule.version.clone(),
    };
    Rollout {
        header_from: options.header_from.clone(),
        claims: options.claim.iter().map(claim).collect(),
        organisations: options.organisation.iter().map(organisation).collect(),
        shares: options
            .percent
            .iter()
            .map(|rule| Share { percent: rule.of, version: rule.version.clone() })
            .collect(),
        rest: options.rest.as_deref().or(rest).filter(|version| *version != START).map(str::to_owned),
    }
}

/// The rules, one to a line, in the order in which they are tried.
fn explain(found: &Value) -> String {
    let versions = found["versions"].as_array().cloned().unwrap_or_default();
    let name = |digest: &Value| {
        let digest = digest.as_str().unwrap_or_default();
        let known = versions.iter().find(|version| version["digest"] == digest);
        known.map_or_else(
            || format!("{} (not loaded; passed over)", plain(digest)),
            |version| text_of(version, "version"),
        )
    };
    let rollout = &found["rollout"];
    let rules = |kind: &str| rollout[kind].as_array().cloned().unwrap_or_default();
    let mut lines = Vec::new();
    for key in rules("headerFrom") {
        lines.push(format!("key {}: what the header names", plain(key.as_str().unwrap_or_default())));
    }
    for rule in rules("claims") {
        lines.push(format!("claim {}: {}", text_of(&rule, "claim"), name(&rule["version"])));
    }
    for rule in rules("organisations") {
        lines.push(format!("organisation {}: {}", text_of(&rule, "organisation"), name(&rule["version"])));
    }
    for rule in rules("shares") {
        let percent = rule["percent"].as_f64().unwrap_or_default();
        lines.push(format!("{percent} % of clients: {}", name(&rule["version"])));
    }
    let rest = versions.iter().find(|version| version["isRest"] == true);
    let what = if lines.is_empty() { "all new sessions" } else { "the rest" };
    match (&rollout["rest"], rest) {
        (Value::String(_), _) => lines.push(format!("{what}: {}", name(&rollout["rest"]))),
        (_, Some(rest)) => lines.push(format!("{what}: {} (the server's start)", text_of(rest, "version"))),
        _ => {}
    }
    lines.join("\n") + "\n"
}
