//! Secrets go to one declared host, in one place that can carry them.

use quarterdeck_contracts::{SecretPlace, SecretUse, can_carry_secret, is_secret_name};
use serde_json::Value;

use super::Subject;
use crate::rules::{self, Rule};
use crate::source::child;
use crate::{Diagnostic, nearest};

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let Some(secrets) = subject.field("secrets").and_then(Value::as_object) else { return };
    let mut taken: Vec<(&str, SecretUse)> = Vec::new();
    for (name, value) in secrets {
        let pointer = child("/secrets", name);
        if !is_secret_name(name) {
            let message = format!("\"{name}\" cannot be the name of a secret");
            let help = "write capital letters, digits and single underscores, such as \"API_KEY\"";
            problems.push(
                Diagnostic::new(&rules::SECRET_NAME, message, help).at(subject.json.place_of_key(&pointer)),
            );
        }
        // What is not even an entry is the business of the check of fields.
        let Ok(entry) = serde_json::from_value::<SecretUse>(value.clone()) else { continue };
        check_host(subject, &pointer, &entry, problems);
        check_place(subject, &pointer, &entry, problems);
        if let Some((other, _)) = taken.iter().find(|(_, other)| is_same_place(other, &entry)) {
            let message = format!("{name} and {other} go to the same place of the same host");
            let help = "give each secret a place of its own, or remove one";
            problems.push(problem(subject, &pointer, &rules::SECRET_PLACE, message, help));
        }
        taken.push((name, entry));
    }
}

fn check_host(subject: &Subject<'_>, pointer: &str, entry: &SecretUse, problems: &mut Vec<Diagnostic>) {
    let host = &entry.host;
    if subject.strings("network").any(|(_, declared)| declared.eq_ignore_ascii_case(host)) {
        return;
    }
    let declared = subject.strings("network").map(|(_, declared)| declared);
    let help = match nearest(host, declared) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("add \"{host}\" to `network`, or name a host that is there"),
    };
    let message = format!("`network` does not name \"{host}\"");
    let at = format!("{pointer}/host");
    problems.push(problem(subject, &at, &rules::SECRET_HOST, message, &help));
}

fn check_place(subject: &Subject<'_>, pointer: &str, entry: &SecretUse, problems: &mut Vec<Diagnostic>) {
    match entry.place() {
        None => {
            let message = "a secret has either a `header` or a `query`".into();
            let help = "write one of them: `\"header\": \"Authorization\"` or `\"query\": \"key\"`";
            problems.push(problem(subject, pointer, &rules::SECRET_PLACE, message, help));
        }
        Some(SecretPlace::Header(header)) if !can_carry_secret(header) => {
            let message = format!("the header \"{header}\" cannot carry a secret");
            let at = format!("{pointer}/header");
            let help = "name the header that the interface asks for, such as \"Authorization\"";
            problems.push(problem(subject, &at, &rules::SECRET_HEADER, message, help));
        }
        Some(_) => {}
    }
    if !entry.has_sound_format() {
        let message = "`format` does not have `{}` exactly once among visible ASCII characters".into();
        let at = format!("{pointer}/format");
        let help = "write `{}` where the secret goes, such as \"Bearer {}\", or leave `format` out";
        problems.push(problem(subject, &at, &rules::SECRET_FORMAT, message, help));
    }
}

fn is_same_place(one: &SecretUse, other: &SecretUse) -> bool {
    let same = match (one.place(), other.place()) {
        (Some(SecretPlace::Header(one)), Some(SecretPlace::Header(other))) => one.eq_ignore_ascii_case(other),
        (Some(SecretPlace::Query(one)), Some(SecretPlace::Query(other))) => one == other,
        _ => false,
    };
    same && one.host.eq_ignore_ascii_case(&other.host)
}

fn problem(subject: &Subject<'_>, at: &str, rule: &'static Rule, message: String, help: &str) -> Diagnostic {
    Diagnostic::new(rule, message, help).at(subject.json.place(at))
}
