//! One tool's cases, each in a fresh session.

use std::fs;
use std::path::Path;

use quarterdeck_compiler::example_calls;
use quarterdeck_contracts::{
    Case, CaseCall, CaseFile, ConfirmationAnswer, ErrorType, Expectation, Mode, Outcome, parse_json,
};
use quarterdeck_runtime::{Call, LoadedTool};
use serde_json::{Value, json};

use super::matching::difference;
use crate::local_session::{LocalSession, LocalWorld};

/// What came of one case.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) tool: String,
    pub(crate) name: String,
    /// What was not as expected.
    pub(crate) difference: Option<String>,
}

/// Runs every case file and every example of one tool.
pub(crate) async fn run_tool(world: &LocalWorld, tool: &LoadedTool, tools: &Path) -> Vec<Report> {
    let id = tool.metadata().tool_id.as_str();
    let folder = tool.compiled().handler.path.split('/').next().unwrap_or(id);
    let report = |name: String, difference| Report { tool: id.to_owned(), name, difference };
    let mut reports = Vec::new();
    let form = GuideForm::of(&tools.join(folder));
    for (index, args) in example_calls(tool.documentation()).into_iter().enumerate() {
        if let Some(difference) = run_example(world, tool, args, form).await {
            reports.push(report(format!("example {} of the guide", index + 1), difference));
        }
    }
    for file in case_files(&tools.join(folder)) {
        match read(&file) {
            Ok(cases) => {
                for case in cases {
                    let difference = run_case(world, id, &case).await;
                    reports.push(report(case.name, difference));
                }
            }
            Err(fault) => {
                let name =
                    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                reports.push(report(name, Some(fault)));
            }
        }
    }
    reports
}

/// Case files of a folder, by name.
fn case_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(".case.json")).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Result<Vec<Case>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot be read: {error}"))?;
    // Which of the two forms it is decides the message, so the form is looked at first.
    let value = parse_json(&text).map_err(|fault| format!("is not JSON: {fault}"))?;
    let parsed = if value.is_array() {
        serde_json::from_value(value).map(CaseFile::Many)
    } else {
        serde_json::from_value(value).map(|case| CaseFile::One(Box::new(case)))
    };
    Ok(parsed.map_err(|error| format!("is not a case file: {error}"))?.into_cases())
}

/// How a tool is documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuideForm {
    Guide,
    /// `doc.md`, whose blocks need not be calls: the compiler only warns of those that the tool refuses.
    Older,
}

impl GuideForm {
    fn of(folder: &Path) -> Self {
        if folder.join("guide.md").is_file() { Self::Guide } else { Self::Older }
    }
}

/// An example is a call that the tool takes: it may find nothing, but neither the schema nor the handler refuses it.
/// `None` for a block of the older form that turns out not to be a call.
async fn run_example(
    world: &LocalWorld,
    tool: &LoadedTool,
    args: Value,
    form: GuideForm,
) -> Option<Option<String>> {
    let metadata = tool.metadata();
    let mode = if metadata.allowed_modes.contains(&Mode::Text) { Mode::Text } else { Mode::Voice };
    let mut session = match LocalSession::for_examples(mode, world).await {
        Ok(session) => session,
        Err(error) => return Some(Some(error.to_string())),
    };
    let call = Call::new(metadata.tool_id.as_str(), args);
    let response = session.call(call, Some(ConfirmationAnswer::Approve)).await.response;
    match &response.outcome {
        Outcome::Failure(error) if error.kind == ErrorType::Validation && form == GuideForm::Older => None,
        Outcome::Failure(error) if matches!(error.kind, ErrorType::Validation | ErrorType::Internal) => {
            Some(Some(error.to_string()))
        }
        _ => Some(None),
    }
}

async fn run_case(world: &LocalWorld, tool: &str, case: &Case) -> Option<String> {
    let mut session = match LocalSession::for_case(case, world).await {
        Ok(session) => session,
        Err(fault) => return Some(fault),
    };
    let calls = match calls(case) {
        Ok(calls) => calls,
        Err(fault) => return Some(fault),
    };
    if let Some(words) = &case.said {
        session.add_user_words(words);
    }
    let several = calls.len() > 1;
    for (index, call) in calls.into_iter().enumerate() {
        if call.new_turn {
            session.begin_turn();
        }
        if let Some(words) = &call.said {
            session.add_user_words(words);
        }
        let made = Call { id: call.id, name: tool.to_owned(), args: call.args };
        let envelope = json!(*session.call(made, call.confirm).await.response);
        if let Some(difference) = compare(&call.expect, call.exact, &envelope) {
            let place = if several { format!("call {}: ", index + 1) } else { String::new() };
            return Some(format!("{place}{difference}"));
        }
    }
    None
}

fn calls(case: &Case) -> Result<Vec<CaseCall>, String> {
    match (&case.args, &case.expect, case.calls.is_empty()) {
        (Some(args), Some(expect), true) => Ok(vec![CaseCall {
            args: args.clone(),
            id: None,
            new_turn: false,
            said: None,
            expect: expect.clone(),
            exact: case.exact,
            confirm: case.confirm,
        }]),
        (None, None, false) => Ok(case.calls.clone()),
        _ => Err("a case has `args` and `expect`, or `calls`".into()),
    }
}

fn compare(expected: &Expectation, exact: bool, envelope: &Value) -> Option<String> {
    difference(&expected.0, envelope).or_else(|| {
        let differs = exact && expected.0.get("data") != envelope.get("data");
        differs.then(|| format!("data is exactly {}", envelope.get("data").unwrap_or(&Value::Null)))
    })
}
