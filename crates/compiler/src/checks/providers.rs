//! What each provider will see, and what it will not.

use std::collections::BTreeMap;

use quarterdeck_contracts::{Definition, Loss, Provider};
use serde_json::Value;

use crate::adapters::{self, Form};
use crate::compile::CheckedTool;
use crate::source::JsonSource;
use crate::{Diagnostic, rules};

type ProviderForms = (BTreeMap<Provider, Value>, BTreeMap<Provider, Vec<Loss>>);

/// Computes every provider's declaration. A provider that cannot take the tool is left out, and that is reported.
pub(crate) fn adapt(
    json: &JsonSource,
    definition: &Definition,
    deny_lossy: bool,
    problems: &mut Vec<Diagnostic>,
) -> ProviderForms {
    let mut declarations = BTreeMap::new();
    let mut losses = BTreeMap::new();
    for provider in Provider::ALL {
        match adapters::adapt(provider, definition) {
            Ok(adapted) => {
                declarations.insert(provider, adapted.declaration);
                if !adapted.losses.is_empty() {
                    losses.insert(provider, adapted.losses);
                }
            }
            Err(_) if Form::of(provider).is_optional => {}
            Err(refusals) => problems.extend(refusals.into_iter().map(|refusal| {
                Diagnostic::new(
                    &rules::LEFT_OUT,
                    format!("{provider} cannot take this tool: {}", refusal.reason),
                    format!("change this, or accept that agents on {provider} do not have the tool"),
                )
                .at(json.place_of_key(&format!("/parameters{}", refusal.at)))
            })),
        }
    }
    check_acknowledged(json, definition, &losses, problems);
    if deny_lossy {
        problems.extend(unacknowledged(json, definition, &losses));
    }
    (declarations, losses)
}

/// The entry under `acknowledged` that accepts a loss.
fn acknowledgement(provider: Provider, loss: &Loss) -> String {
    format!("{provider}: {}", loss.what)
}

fn check_acknowledged(
    json: &JsonSource,
    definition: &Definition,
    losses: &BTreeMap<Provider, Vec<Loss>>,
    problems: &mut Vec<Diagnostic>,
) {
    let lost: Vec<_> = each(losses).map(|(provider, loss)| acknowledgement(provider, loss)).collect();
    for (index, entry) in
        definition.metadata.acknowledged.iter().enumerate().filter(|(_, entry)| !lost.contains(entry))
    {
        let help = match &lost[..] {
            [] => "nothing is lost for any provider: remove it".to_owned(),
            lost => format!("what is lost is: {}", lost.join(", ")),
        };
        problems.push(
            Diagnostic::new(
                &rules::BAD_ACKNOWLEDGEMENT,
                format!("\"{entry}\" matches nothing that is lost"),
                help,
            )
            .at(json.place(&format!("/acknowledged/{index}"))),
        );
    }
}

fn unacknowledged<'a>(
    json: &'a JsonSource,
    definition: &'a Definition,
    losses: &'a BTreeMap<Provider, Vec<Loss>>,
) -> impl Iterator<Item = Diagnostic> + 'a {
    each(losses).filter_map(move |(provider, loss)| {
        let entry = acknowledgement(provider, loss);
        if definition.metadata.acknowledged.contains(&entry) {
            return None;
        }
        let admitted = match &loss.counter_example {
            Some(example) => format!("; it would let {example} through"),
            None => String::new(),
        };
        let at = loss.at.first().map(String::as_str).unwrap_or("");
        Some(
            Diagnostic::new(
                &rules::LOSSY,
                format!("{provider} cannot say `{}`{admitted}", loss.what),
                format!("simplify the schema, or add \"{entry}\" to \"acknowledged\""),
            )
            .at(json.place(&format!("/parameters{at}"))),
        )
    })
}

fn each(losses: &BTreeMap<Provider, Vec<Loss>>) -> impl Iterator<Item = (Provider, &Loss)> {
    losses.iter().flat_map(|(provider, losses)| losses.iter().map(|loss| (*provider, loss)))
}

/// What a provider says about the number of tools.
pub(super) fn across(tools: &[CheckedTool]) -> Vec<Diagnostic> {
    let too_many = |provider: Provider| {
        let (max, name) = Form::of(provider).max_tools?;
        let count = tools.iter().filter(|tool| tool.declarations.contains_key(&provider)).count();
        let message = || format!("there are {count} tools, and {name} takes at most {max} at once");
        let help = "serve some of them from another registry";
        (count > max).then(|| Diagnostic::new(&rules::TOO_MANY_TOOLS, message(), help))
    };
    Provider::ALL.into_iter().filter_map(too_many).collect()
}
