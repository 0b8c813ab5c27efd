//! `quarterdeck describe`.

use std::fmt::Write;

use anyhow::bail;
use quarterdeck_compiler::adapters::adapt;
use quarterdeck_compiler::nearest;
use quarterdeck_contracts::{CompiledTool, Definition, Loss, Provider};
use serde_json::{Value, json};

use crate::arguments::{DescribeOptions, Format};
use crate::config::LocalConfig;
use crate::terminal::{paint, print};
use crate::{ExitStatus, environment, report, wire};

pub(crate) fn run(options: &DescribeOptions) -> anyhow::Result<ExitStatus> {
    let provider = options.provider.as_deref().map(parse_provider).transpose()?;
    let config = LocalConfig::load()?;
    let tools = options.tools.or(&config);
    let compilation = wire::compile_folder(tools, false)?;
    let Some(artifact) = &compilation.artifact else {
        report::problems(&compilation, tools);
        return Ok(ExitStatus::Problems);
    };
    let tool = find(&artifact.tools, &options.tool)?;
    let text = match (options.format, provider) {
        (Format::Json, None) => format!("{:#}\n", json!(tool)),
        (Format::Json, Some(provider)) => format!("{:#}\n", declaration_json(tool, provider)),
        (Format::Human, None) => describe(tool),
        (Format::Human, Some(provider)) => show_declaration(tool, provider),
    };
    print(&text)?;
    Ok(ExitStatus::Success)
}

fn find<'a>(tools: &'a [CompiledTool], name: &str) -> anyhow::Result<&'a CompiledTool> {
    let id = name.replace('-', "_");
    if let Some(tool) = tools.iter().find(|tool| tool.metadata.tool_id.as_str() == id) {
        return Ok(tool);
    }
    let hint = match nearest(&id, tools.iter().map(|tool| tool.metadata.tool_id.as_str())) {
        Some(near) => format!("did you mean {near}?"),
        None => "`quarterdeck list` shows them all".into(),
    };
    bail!("there is no tool {name}; {hint}")
}

fn parse_provider(name: &str) -> anyhow::Result<Provider> {
    match Provider::ALL.into_iter().find(|provider| provider.as_str().eq_ignore_ascii_case(name)) {
        Some(provider) => Ok(provider),
        None => {
            let known: Vec<_> = Provider::ALL.iter().map(|provider| provider.as_str()).collect();
            bail!("there is no provider {name}; there are {}", known.join(", "))
        }
    }
}

fn describe(tool: &CompiledTool) -> String {
    let metadata = &tool.metadata;
    let mut text =
        format!("{} {}\n{}\n", title(metadata.tool_id.as_str()), metadata.version, metadata.description);
    section(&mut text, "contract");
    let mut contract = json!(metadata);
    if let Some(fields) = contract.as_object_mut() {
        fields.retain(|name, _| {
            !["$schema", "toolId", "version", "description", "returns"].contains(&name.as_str())
        });
        fields.insert("timeoutMs".into(), metadata.effective_timeout_ms().into());
        for (name, value) in fields {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    section(&mut text, "parameters");
    let _ = writeln!(text, "{:#}", tool.json_schema);
    if let Some(returns) = &metadata.returns {
        section(&mut text, "returns");
        let _ = writeln!(text, "{returns:#}");
    }
    section(&mut text, "guide");
    text.push_str(tool.documentation.trim());
    text.push('\n');
    section(&mut text, "providers");
    for provider in Provider::ALL {
        text.push_str(&describe_provider(tool, provider));
    }
    let _ = writeln!(text, "\n`quarterdeck describe {} --provider NAME` shows one of them", metadata.tool_id);
    text
}

fn section(text: &mut String, name: &str) {
    let _ = writeln!(text, "\n{}", title(name));
}

fn title(name: &str) -> String {
    paint(name, "1", environment::style_of_stdout())
}

fn describe_provider(tool: &CompiledTool, provider: Provider) -> String {
    match (tool.provider_schemas.contains_key(&provider), tool.lossy.get(&provider)) {
        (false, _) => format!("{provider}: left out\n{}", reasons(tool, provider)),
        (true, None) => format!("{provider}: lossless\n"),
        (true, Some(losses)) => format!("{provider}: lossy\n{}", describe_losses(losses)),
    }
}

fn describe_losses(losses: &[Loss]) -> String {
    let mut text = String::new();
    for loss in losses {
        let _ = writeln!(text, "  cannot express `{}` at {}", loss.what, places(loss));
        for (original, declared) in &loss.renamed {
            let _ = writeln!(text, "    {original:?} is declared as {declared}");
        }
        if let Some(example) = &loss.counter_example {
            let _ = writeln!(text, "    accepted by the provider, refused by the tool: {example}");
        }
    }
    text
}

fn places(loss: &Loss) -> String {
    let shown: Vec<_> = loss.at.iter().map(|at| if at.is_empty() { "/" } else { at }).collect();
    shown.join(", ")
}

/// Why a provider cannot take the tool. The artifact only says that it cannot.
fn reasons(tool: &CompiledTool, provider: Provider) -> String {
    let definition = Definition { metadata: tool.metadata.clone(), parameters: tool.json_schema.clone() };
    let refusals = adapt(provider, &definition).err().unwrap_or_default();
    refusals.iter().fold(String::new(), |mut text, refusal| {
        let at = if refusal.at.is_empty() { "/" } else { &refusal.at };
        let _ = writeln!(text, "  {at}: {}", refusal.reason);
        text
    })
}

fn show_declaration(tool: &CompiledTool, provider: Provider) -> String {
    match tool.provider_schemas.get(&provider) {
        None => describe_provider(tool, provider),
        Some(declaration) => {
            let losses = tool
                .lossy
                .get(&provider)
                .map(|losses| format!("\n{}", describe_losses(losses)))
                .unwrap_or_default();
            format!("{declaration:#}\n{losses}")
        }
    }
}

fn declaration_json(tool: &CompiledTool, provider: Provider) -> Value {
    json!({
        "provider": provider,
        "declaration": tool.provider_schemas.get(&provider),
        "lossy": tool.lossy.get(&provider),
    })
}
