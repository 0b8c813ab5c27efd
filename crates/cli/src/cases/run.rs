//! One tool's cases, each in a fresh session.

use std::fs;
use std::path::Path;

use quarterdeck_compiler::{ExampleCall, example_calls};
use quarterdeck_contracts::handler::HandlerFault;
use quarterdeck_contracts::{
    Case, CaseCall, CaseFile, ConfirmationAnswer, ErrorType, Expectation, Mode, Outcome, parse_json,
};
use quarterdeck_runtime::{Call, LoadedTool};
use serde_json::{Value, json};

use super::matching::difference;
use crate::local_session::{CallResult, LocalSession, LocalWorld};

/// What came of one case.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) tool: String,
    pub(crate) name: String,
    /// What was not as expected.
    pub(crate) difference: Option<Difference>,
}

/// Why a case or an example fails.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) text: String,
    /// What went wrong inside the handler, if that is the reason.
    pub(crate) fault: Option<HandlerFault>,
}

impl From<String> for Difference {
    fn from(text: String) -> Self {
        Self { text, fault: None }
    }
}

/// Runs every case file and every example of one tool.
pub(crate) async fn run_tool(world: &LocalWorld, tool: &LoadedTool, tools: &Path) -> Vec<Report> {
    let id = tool.metadata().tool_id.as_str();
    let folder = tools.join(tool.compiled().handler.path.split('/').next().unwrap_or(id));
    let report = |name: String, difference| Report { tool: id.to_owned(), name, difference };
    let files: Vec<_> = case_files(&folder).into_iter().map(|file| (read(&file), file)).collect();
    let cases: Vec<&Case> = files.iter().filter_map(|(cases, _)| cases.as_ref().ok()).flatten().collect();
    let mut reports = Vec::new();
    let form = GuideForm::of(&folder);
    for (index, example) in example_calls(tool.documentation()).into_iter().enumerate() {
        if let Some(difference) = run_example(world, tool, example, &cases, form).await {
            reports.push(report(format!("example {} of the guide", index + 1), difference));
        }
    }
    for (read, file) in &files {
        match read {
            Ok(cases) => {
                for case in cases {
                    let difference = run_case(world, id, case).await;
                    reports.push(report(case.name.clone(), difference));
                }
            }
            Err(fault) => {
                let name =
                    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                reports.push(report(name, Some(fault.clone().into())));
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

/// An example is a call that works, unless it says otherwise: with an error as the answer that the guide shows, with a case
/// of the same arguments, or under `exampleErrors` of the definition. It is run in the world of that case.
///
/// `None` for a block of the older form that turns out not to be a call.
async fn run_example(
    world: &LocalWorld,
    tool: &LoadedTool,
    example: ExampleCall,
    cases: &[&Case],
    form: GuideForm,
) -> Option<Option<Difference>> {
    let metadata = tool.metadata();
    let same: Vec<_> = cases.iter().filter(|case| case.args.as_ref() == Some(&example.args)).collect();
    let case = same.iter().find(|case| !expects_error(case)).or(same.first());
    let mode = if metadata.allowed_modes.contains(&Mode::Text) { Mode::Text } else { Mode::Voice };
    let session = match case {
        Some(case) => LocalSession::for_case(case, world).await,
        None => LocalSession::for_examples(mode, world).await.map_err(|error| error.to_string()),
    };
    let mut session = match session {
        Ok(session) => session,
        Err(error) => return Some(Some(error.into())),
    };
    if let Some(words) = case.and_then(|case| case.said.as_deref()) {
        session.add_user_words(words);
    }
    let call = Call::new(metadata.tool_id.as_str(), example.args);
    let CallResult { response, fault, .. } = session.call(call, Some(ConfirmationAnswer::Approve)).await;
    let Outcome::Failure(error) = &response.outcome else { return Some(None) };
    if error.kind == ErrorType::Validation && form == GuideForm::Older {
        return None;
    }
    let is_said = example.is_refused
        || case.is_some_and(|case| expects_error(case))
        || metadata.example_errors.contains(&error.kind);
    // What breaks inside the handler is never what an example shows.
    if is_said && error.kind != ErrorType::Internal {
        return Some(None);
    }
    let help = match fault {
        Some(_) => String::new(),
        None => format!("\nhelp: {}", example_help(error.kind)),
    };
    Some(Some(Difference { text: format!("the call failed: {error}{help}"), fault }))
}

fn expects_error(case: &Case) -> bool {
    case.expect.as_ref().and_then(Expectation::ok) == Some(false)
}

/// What an author does about an example that cannot work in an empty world.
fn example_help(kind: ErrorType) -> String {
    format!(
        "give it what it needs with a case of the same `args` and a `given`; if the error is what it shows, write \
         \"exampleErrors\": [\"{kind}\"] in schema.json, or show the error below the example as its answer"
    )
}

async fn run_case(world: &LocalWorld, tool: &str, case: &Case) -> Option<Difference> {
    let mut session = match LocalSession::for_case(case, world).await {
        Ok(session) => session,
        Err(fault) => return Some(fault.into()),
    };
    let calls = match calls(case) {
        Ok(calls) => calls,
        Err(fault) => return Some(fault.into()),
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
        let made = Call { id: call.id, ..Call::new(tool, call.args) };
        let CallResult { response, fault, .. } = session.call(made, call.confirm).await;
        if let Some(difference) = compare(&call.expect, call.exact, &json!(*response)) {
            let place = if several { format!("call {}: ", index + 1) } else { String::new() };
            return Some(Difference { text: format!("{place}{difference}"), fault });
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
