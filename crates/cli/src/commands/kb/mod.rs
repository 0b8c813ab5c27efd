//! `quarterdeck kb`.

mod build;
mod eval;
mod import;
mod search;

use anyhow::anyhow;
use quarterdeck_contracts::{Knowledge, KnowledgeRecord, Namespace, Namespaces, RecordKind};
use quarterdeck_knowledge::{KnowledgeBase, read_folder};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::knowledge::{
    KbCheckOptions, KbCommand, KbFolder, KbGetOptions, KbStatsOptions, KindChoice, NamespaceChoice,
};
use crate::arguments::operator::DataFolder;
use crate::config::LocalConfig;
use crate::terminal::{count, info, paint, plain, print, titled_table};
use crate::{ExitStatus, environment, wire};

pub(crate) fn run(command: &KbCommand) -> anyhow::Result<ExitStatus> {
    match command {
        KbCommand::Build(options) => build::build(options),
        KbCommand::Model(command) => build::model(command),
        KbCommand::Check(options) => check(options),
        KbCommand::Search(options) => search::search(options),
        KbCommand::Get(options) => get(options),
        KbCommand::Stats(options) => stats(options),
        KbCommand::Export(options) => export(options),
        KbCommand::Eval(options) => eval::evaluate(options),
        KbCommand::Import(options) => import::import(options),
    }
}

fn check(options: &KbCheckOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    let folder = wire::kb_folder(options.kb.or(&config))?;
    let (records, problems) = read_folder(folder);
    for problem in &problems {
        info(&format!("{}/{problem}", folder.display()));
    }
    info(&format!("{}, {}", count(records.len(), "sound record"), count(problems.len(), "problem")));
    Ok(if problems.is_empty() { ExitStatus::Success } else { ExitStatus::Problems })
}

fn get(options: &KbGetOptions) -> anyhow::Result<ExitStatus> {
    let everything = Namespaces::from(Namespace::ALL);
    let records = wire::block_on(async {
        let base = open(&options.kb, &options.data).await?;
        base.get(vec![options.id.clone()], everything).await.map_err(|error| anyhow!(error))
    })??;
    for record in &records {
        match options.format {
            Format::Json => print(&format!("{:#}\n", json!(record)))?,
            Format::Human => print(&format_record(record))?,
        }
    }
    Ok(ExitStatus::Success)
}

fn format_record(record: &KnowledgeRecord) -> String {
    let style = environment::style_of_stdout();
    let mut text = format!(
        "{}\n{} in {}",
        paint(&plain(&record.title), "1", style),
        plain(&record.id),
        record.namespace.as_str()
    );
    if let Some(day) = &record.last_updated {
        text.push_str(&format!(", last changed on {}", plain(day)));
    }
    if !record.tags.is_empty() {
        text.push_str(&format!(", filed under {}", plain(&record.tags.join(", "))));
    }
    text.push_str("\n\n");
    for line in record.text.lines() {
        text.push_str(&plain(line));
        text.push('\n');
    }
    for source in record.sources.iter().chain(&record.url) {
        text.push_str(&format!("\nsource: {}", plain(source)));
    }
    text.push('\n');
    text
}

fn stats(options: &KbStatsOptions) -> anyhow::Result<ExitStatus> {
    let stats = wire::block_on(open(&options.kb, &options.data))??.stats();
    let rows = stats.by_kind.iter().map(|(namespace, kind, count)| {
        vec![namespace.as_str().into(), kind.as_str().into(), count.to_string()]
    });
    print(&titled_table(&["namespace", "type", "records"], rows))?;
    info(&format!("{}, {}", count(stats.records, "record"), count(stats.terms, "word")));
    Ok(ExitStatus::Success)
}

fn export(options: &KbStatsOptions) -> anyhow::Result<ExitStatus> {
    for record in wire::block_on(open(&options.kb, &options.data))??.records() {
        print(&format!("{}\n", json!(record)))?;
    }
    Ok(ExitStatus::Success)
}

async fn open(folder: &KbFolder, data: &DataFolder) -> anyhow::Result<KnowledgeBase> {
    let config = LocalConfig::load()?;
    wire::knowledge(&config, folder.or(&config), data.or(&config)).await
}

impl From<NamespaceChoice> for Namespace {
    fn from(choice: NamespaceChoice) -> Self {
        match choice {
            NamespaceChoice::Studio => Self::Studio,
            NamespaceChoice::Personal => Self::Personal,
            NamespaceChoice::Public => Self::Public,
        }
    }
}

impl From<KindChoice> for RecordKind {
    fn from(choice: KindChoice) -> Self {
        match choice {
            KindChoice::Project => Self::Project,
            KindChoice::Person => Self::Person,
            KindChoice::Process => Self::Process,
            KindChoice::Link => Self::Link,
            KindChoice::Doc => Self::Doc,
        }
    }
}
