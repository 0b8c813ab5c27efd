//! `quarterdeck transcripts`: what operators may read of conversations, and what got no answer.

use std::io::Write;

use anyhow::bail;
use quarterdeck_agents::transcripts::{
    ConversationSummary, TranscriptCall, TranscriptPart, TranscriptTurn, UnansweredQuestion, export_cases,
    export_records, find_conversation, list_conversations, list_unanswered,
};
use quarterdeck_contracts::Mode;
use quarterdeck_store::SealedStore;
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::transcripts::{
    ExportForm, TranscriptsCommand, TranscriptsExportOptions, TranscriptsListOptions, TranscriptsShowOptions,
    TranscriptsUnansweredOptions,
};
use crate::config::LocalConfig;
use crate::operator::OperatorSession;
use crate::output::Output;
use crate::terminal::{count, info, plain, print, titled_table};
use crate::times::{now_ms, show_ms};
use crate::{ExitStatus, wire};

const COLUMNS: [&str; 7] = ["session", "client", "mode", "turns", "unanswered", "began", "last turn"];
const QUESTION_COLUMNS: [&str; 4] = ["asked", "why", "session", "question"];

pub(crate) fn run(command: &TranscriptsCommand) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let Some(retention) = config.policy.transcript_retention else {
        bail!(
            "conversations are not kept\nhelp: set `keep = \"on\"` under `[transcripts]` and a key in \
             QUARTERDECK_TRANSCRIPTS__KEY (`openssl rand -base64 32` makes one), restart the server, and tell your users"
        );
    };
    let since_ms = now_ms().saturating_sub(retention.as_millis() as u64);
    wire::block_on(async {
        match command {
            TranscriptsCommand::List(options) => list(&config, options, since_ms).await,
            TranscriptsCommand::Show(options) => show(&config, options, since_ms).await,
            TranscriptsCommand::Unanswered(options) => unanswered(&config, options, since_ms).await,
            TranscriptsCommand::Export(options) => export(&config, options, since_ms).await,
        }
    })?
}

async fn list(
    config: &LocalConfig,
    options: &TranscriptsListOptions,
    since_ms: u64,
) -> anyhow::Result<ExitStatus> {
    let store = wire::find_store(&options.data.node(config)).await?;
    let found = list_conversations(&*store, options.client.as_deref(), since_ms, options.limit).await?;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!(found)))?,
        Format::Human if found.conversations.is_empty() => info("no conversation is kept"),
        Format::Human => print(&titled_table(&COLUMNS, found.conversations.iter().map(row)))?,
    }
    if !found.is_complete && options.format == Format::Human {
        info("only the latest are shown; `--limit` shows more, `--client` those of one client");
    }
    Ok(ExitStatus::Success)
}

fn row(conversation: &ConversationSummary) -> Vec<String> {
    vec![
        plain(&conversation.session_id),
        plain(&conversation.client_id),
        if conversation.mode == Mode::Voice { "voice".into() } else { "text".into() },
        conversation.turns.to_string(),
        conversation.unanswered.to_string(),
        show_ms(conversation.began_ms),
        show_ms(conversation.last_ms),
    ]
}

async fn show(
    config: &LocalConfig,
    options: &TranscriptsShowOptions,
    since_ms: u64,
) -> anyhow::Result<ExitStatus> {
    let session = &options.session;
    let operator = OperatorSession::open(&options.data.node(config)).await?;
    let store = SealedStore::new(operator.store(), config.store.keys.clone());
    let Some(turns) = find_conversation(&store, session, since_ms).await? else {
        info(&format!("nothing is kept of {}; `quarterdeck transcripts list` shows what is", plain(session)));
        return Ok(ExitStatus::Problems);
    };
    let client = turns.first().map(|turn| turn.client_id.clone());
    let details = json!({ "sessionId": session, "clientId": client, "turns": turns.len() });
    operator.record("open_conversation", details).await?;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!({ "sessionId": session, "turns": turns })))?,
        Format::Human => print(&turns.iter().map(turn_text).collect::<String>())?,
    }
    Ok(ExitStatus::Success)
}

/// A turn as it is read on a terminal.
fn turn_text(turn: &TranscriptTurn) -> String {
    let mut text = format!("turn {}, {}\n", turn.turn, show_ms(turn.at_ms));
    if !turn.user.is_empty() {
        text.push_str(&format!("  user: {}\n", lines(&turn.user)));
    }
    for part in &turn.parts {
        match part {
            TranscriptPart::Text { text: said } => text.push_str(&format!("  agent: {}\n", lines(said))),
            TranscriptPart::Call(call) => text.push_str(&format!("  {}\n", call_text(call))),
        }
    }
    if let Some(heard) = &turn.heard {
        let cut = if heard.is_interrupted { ", interrupted" } else { "" };
        text.push_str(&format!("  heard: {} of {} words{cut}\n", heard.words, heard.of_words));
    }
    if let Some(feedback) = &turn.feedback {
        let comment = feedback.comment.as_deref().map(|comment| format!(": {}", lines(comment)));
        text.push_str(&format!("  rated {}{}\n", feedback.rating.as_str(), comment.unwrap_or_default()));
    }
    text
}

fn call_text(call: &TranscriptCall) -> String {
    let outcome = match &call.error_type {
        Some(kind) => kind.as_str(),
        None if call.is_empty => "found nothing",
        None if call.ok => "done",
        None => "no outcome",
    };
    format!("{} {}: {outcome}", plain(&call.tool), plain(&call.id))
}

/// Words of a user or a model, which must not steer the terminal.
fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n        ")
}

async fn unanswered(
    config: &LocalConfig,
    options: &TranscriptsUnansweredOptions,
    since_ms: u64,
) -> anyhow::Result<ExitStatus> {
    let operator = OperatorSession::open(&options.data.node(config)).await?;
    let store = SealedStore::new(operator.store(), config.store.keys.clone());
    let found = list_unanswered(&store, since_ms, options.limit).await?;
    operator.record("list_unanswered", json!({ "questions": found.questions.len() })).await?;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!(found)))?,
        Format::Human if found.questions.is_empty() => info("every question got an answer"),
        Format::Human => print(&titled_table(&QUESTION_COLUMNS, found.questions.iter().map(question_row)))?,
    }
    if !found.is_complete && options.format == Format::Human {
        info("only the latest are shown; `--limit` shows more");
    }
    Ok(ExitStatus::Success)
}

fn question_row(question: &UnansweredQuestion) -> Vec<String> {
    let words: Vec<&str> = question.question.split_whitespace().collect();
    vec![
        show_ms(question.at_ms),
        question.reason.as_str().to_owned(),
        plain(&question.session_id),
        plain(&words.join(" ")),
    ]
}

async fn export(
    config: &LocalConfig,
    options: &TranscriptsExportOptions,
    since_ms: u64,
) -> anyhow::Result<ExitStatus> {
    let mut out = Output::to(options.out.as_deref())?;
    let operator = OperatorSession::open(&options.data.node(config)).await?;
    let store = SealedStore::new(operator.store(), config.store.keys.clone());
    let questions = list_unanswered(&store, since_ms, options.limit).await?.questions;
    if questions.is_empty() {
        info("every question got an answer, so there is nothing to export");
        return Ok(ExitStatus::Success);
    }
    operator.record("export_unanswered", json!({ "questions": questions.len() })).await?;
    let file = match options.form {
        ExportForm::Records => export_records(&questions),
        ExportForm::Cases => export_cases(&questions),
    };
    out.write_all(file.text.as_bytes())?;
    out.finish()?;
    if let Some(file) = &options.out {
        let next = match options.form {
            ExportForm::Records => "write the answers into it, then `quarterdeck kb import` adds it",
            ExportForm::Cases => "in the folder of `kb_search`, `quarterdeck test` runs them",
        };
        info(&format!("{} from {}; {next}", file.display(), count(questions.len(), "question")));
    }
    Ok(ExitStatus::Success)
}
