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
use crate::arguments::operating::DataFolder;
use crate::config::Site;
use crate::terminal::{count, paint, plain, print, say, titled_table};
use crate::{Verdict, environment, wire};

pub(crate) fn run(command: &KbCommand) -> anyhow::Result<Verdict> {
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

fn check(options: &KbCheckOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let folder = wire::kb_folder(options.kb.or(&site))?;
    let (records, problems) = read_folder(folder);
    for problem in &problems {
        say(&format!("{}/{problem}", folder.display()));
    }
    say(&format!("{}, {}", count(records.len(), "sound record"), count(problems.len(), "problem")));
    Ok(if problems.is_empty() { Verdict::Fine } else { Verdict::Problems })
}

fn get(options: &KbGetOptions) -> anyhow::Result<Verdict> {
    let base = open(&options.kb, &options.data)?;
    let everything = Namespaces::from(Namespace::ALL);
    let records =
        wire::block_on(base.get(vec![options.id.clone()], everything))?.map_err(|error| anyhow!(error))?;
    for record in &records {
        match options.format {
            Format::Json => print(&format!("{:#}\n", json!(record)))?,
            Format::Human => print(&whole(record))?,
        }
    }
    Ok(Verdict::Fine)
}

fn whole(record: &KnowledgeRecord) -> String {
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

fn stats(options: &KbStatsOptions) -> anyhow::Result<Verdict> {
    let stats = open(&options.kb, &options.data)?.stats();
    let rows = stats.by_kind.iter().map(|(namespace, kind, count)| {
        vec![namespace.as_str().into(), kind.as_str().into(), count.to_string()]
    });
    print(&titled_table(&["namespace", "type", "records"], rows))?;
    say(&format!("{}, {}", count(stats.records, "record"), count(stats.terms, "word")));
    Ok(Verdict::Fine)
}

fn export(options: &KbStatsOptions) -> anyhow::Result<Verdict> {
    for record in open(&options.kb, &options.data)?.records() {
        print(&format!("{}\n", json!(record)))?;
    }
    Ok(Verdict::Fine)
}

/// The base of a folder. What is wrong with single records is told, and the rest is used.
fn open(folder: &KbFolder, data: &DataFolder) -> anyhow::Result<KnowledgeBase> {
    let site = Site::load()?;
    wire::knowledge(wire::kb_folder(folder.or(&site))?, data.or(&site))
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
