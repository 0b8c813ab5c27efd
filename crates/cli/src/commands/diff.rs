//! `quarterdeck diff`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use quarterdeck_compiler::{Change, Difference, Effect, diff};
use quarterdeck_contracts::{ARTIFACT_FORMAT_VERSION, Artifact, parse_json};
use serde_json::{Value, json};

use crate::arguments::{DiffOptions, Format};
use crate::terminal::{paint, print};
use crate::{ExitStatus, environment};

pub(crate) fn run(options: &DiffOptions) -> anyhow::Result<ExitStatus> {
    let (old, new) = (load_artifact(&options.old)?, load_artifact(&options.new)?);
    let difference = diff(&old, &new);
    match options.format {
        Format::Json => print(&format!("{:#}\n", as_json(&old, &new, &difference)))?,
        Format::Human => print(&as_text(&old, &new, &difference))?,
    }
    Ok(if difference.is_breaking() { ExitStatus::Problems } else { ExitStatus::Success })
}

pub(crate) fn load_artifact(path: &Path) -> anyhow::Result<Artifact> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let value =
        parse_json(&text).with_context(|| format!("{} is not a registry artifact", path.display()))?;
    // The header is looked at first, so that an artifact of another version gets the best message.
    let format = value.get("formatVersion").and_then(Value::as_u64);
    if format != Some(ARTIFACT_FORMAT_VERSION.into()) {
        let found = format.map_or("no format version".into(), |format| format!("format version {format}"));
        anyhow::bail!(
            "{} has {found}, and this quarterdeck reads {ARTIFACT_FORMAT_VERSION}; build it again with `quarterdeck build`",
            path.display()
        );
    }
    serde_json::from_value(value).with_context(|| format!("{} is not a registry artifact", path.display()))
}

fn as_text(old: &Artifact, new: &Artifact, difference: &Difference) -> String {
    let style = environment::style_of_stdout();
    let mut text = format!("{} → {}\n", old.version, new.version);
    let mut tool = "";
    for change in &difference.changes {
        if change.tool != tool {
            tool = &change.tool;
            text.push_str(&format!("\n{}\n", paint(tool, "1", style)));
        }
        let colour = match change.effect {
            Effect::Breaks => "31",
            Effect::Changes => "33",
            Effect::Adds => "32",
        };
        text.push_str(&format!(
            "  {}  {}\n",
            paint(&format!("{:7}", change.effect.as_str()), colour, style),
            change.what
        ));
        if let Some(example) = &change.example {
            text.push_str(&format!("           accepted before, refused now: {example}\n"));
        }
    }
    let breaking = difference.changes.iter().filter(|change| change.effect == Effect::Breaks).count();
    text.push_str(&match (difference.changes.len(), breaking) {
        (0, _) => "no difference\n".to_owned(),
        (_, 0) => "\nnothing breaks callers\n".to_owned(),
        (_, 1) => "\n1 change breaks callers\n".to_owned(),
        (_, several) => format!("\n{several} changes break callers\n"),
    });
    text
}

fn as_json(old: &Artifact, new: &Artifact, difference: &Difference) -> Value {
    let change = |change: &Change| json!({ "tool": change.tool, "effect": change.effect.as_str(), "what": change.what, "example": change.example });
    json!({
        "old": old.version,
        "new": new.version,
        "breaking": difference.is_breaking(),
        "changes": difference.changes.iter().map(change).collect::<Vec<_>>(),
    })
}
