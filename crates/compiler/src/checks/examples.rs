//! Example calls in the documentation are calls that the tool would take.

use quarterdeck_schema::Schema;
use serde_json::Value;

use super::Subject;
use crate::documentation::Example;
use crate::{Diagnostic, rules};

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let (Some(documentation), Some(parameters)) = (subject.documentation, subject.field("parameters")) else {
        return;
    };
    if documentation.examples.is_empty() {
        return;
    }
    // A schema that does not compile has been reported already, and nothing can be said about examples then.
    let Ok(schema) = Schema::compile(parameters) else { return };
    let found = documentation.examples.iter().filter_map(|example| judge(example, &schema));
    problems.extend(found.map(|problem| match documentation.is_older_form {
        true => problem.as_warning(),
        false => problem,
    }));
}

fn judge(example: &Example, schema: &Schema) -> Option<Diagnostic> {
    let mut args: Value = match serde_json::from_str(example.text()) {
        Ok(args) => args,
        Err(error) => {
            let help = "an example is the arguments of a call, as JSON; mark anything else as `text`";
            let told = error.to_string();
            let message =
                format!("the example is not JSON: {}", told.split(" at line ").next().unwrap_or(&told));
            let place = example.place_of(error.line(), error.column());
            return Some(Diagnostic::new(&rules::EXAMPLE_NOT_JSON, message, help).at(place));
        }
    };
    // An envelope shows what comes back, not what is called.
    if args.get("ok").is_some() {
        return None;
    }
    let violations = schema.admit(&mut args).err()?;
    let messages: Vec<_> = violations.into_iter().map(|violation| violation.message).collect();
    Some(
        Diagnostic::new(
            &rules::EXAMPLE_REFUSED,
            format!("the tool would refuse this example: {}", messages.join("; ")),
            "correct the example or the schema; put “Response:” above a block that shows an answer",
        )
        .at(example.place()),
    )
}
