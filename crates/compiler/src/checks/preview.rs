//! Placeholders of a preview name parameters.

use super::Subject;
use crate::{Diagnostic, nearest, rules};

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let (Some(preview), Some(parameters)) = (subject.text("preview"), subject.field("parameters")) else {
        return;
    };
    let Some(known) = parameters["properties"].as_object() else { return };
    for name in placeholders(preview).filter(|name| !known.contains_key(*name)) {
        let help = match nearest(name, known.keys().map(String::as_str)) {
            Some(meant) => format!("did you mean `{{{meant}}}`?"),
            None => "use a parameter's name in braces".into(),
        };
        problems.push(
            Diagnostic::new(&rules::PREVIEW_NOWHERE, format!("`{{{name}}}` names no parameter"), help)
                .at(subject.json.place("/preview")),
        );
    }
}

/// The parameters that a template names: `{attendees.length}` names `attendees`.
fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| {
        let (inside, _) = part.split_once('}')?;
        inside.split('.').next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_what_stands_in_braces() {
        let names: Vec<_> =
            placeholders("Create “{title}” with {attendees.length} people { unfinished").collect();
        assert_eq!(names, ["title", "attendees"]);
    }
}
