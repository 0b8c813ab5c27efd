//! A tool is found where its name says, and nowhere else.

use std::collections::BTreeMap;

use quarterdeck_contracts::ToolId;

use super::Subject;
use crate::rules;
use crate::tree::Folder;
use crate::{Diagnostic, Place};

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    check_folder_name(subject, problems);
    if let Some(version) = subject.text("version")
        && let Err(error) = semver::Version::parse(version)
    {
        problems.push(
            Diagnostic::new(
                &rules::BAD_VERSION,
                format!("\"{version}\" is not a semantic version: {error}"),
                "write three numbers, such as \"1.0.0\"",
            )
            .at(subject.json.place("/version")),
        );
    }
}

fn check_folder_name(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let folder = &subject.folder.name;
    match ToolId::from_folder(folder) {
        Err(error) => problems.push(
            Diagnostic::new(
                &rules::BAD_FOLDER_NAME,
                format!("the folder `{folder}` cannot name a tool: {error}"),
                "rename the folder: letters, digits, dashes and underscores, a letter first",
            )
            .at(Place::Path(folder.clone())),
        ),
        Ok(expected) => {
            if let Some(id) = subject.text("toolId")
                && id != expected.as_str()
            {
                problems.push(
                    Diagnostic::new(
                        &rules::ID_MISMATCH,
                        format!("`toolId` is \"{id}\", but the folder is `{folder}`"),
                        format!("set `toolId` to \"{expected}\", or rename the folder"),
                    )
                    .at(subject.json.place("/toolId")),
                );
            }
        }
    }
}

/// Two folders that stand for one id: the later one is told about the earlier.
pub(super) fn across(folders: &[Folder]) -> Vec<Diagnostic> {
    let mut first_with: BTreeMap<String, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for folder in folders {
        let id = folder.name.replace('-', "_");
        match first_with.get(&id) {
            None => {
                first_with.insert(id, &folder.name);
            }
            Some(first) => problems.push(
                Diagnostic::new(
                    &rules::DUPLICATE_ID,
                    format!("`{}` and `{first}` both stand for the tool `{id}`", folder.name),
                    "rename one of the two folders",
                )
                .at(Place::Path(folder.name.clone()))
                .of(&folder.name),
            ),
        }
    }
    problems
}
