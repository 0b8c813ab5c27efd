//! The components of a file that matter: events and the names of time zones.

use std::collections::BTreeMap;

use super::line::{Line, lines};
use super::{IcsError, MAX_EVENTS, MAX_ICS_BYTES};

/// Files have four levels.
const MAX_DEPTH: usize = 16;

/// What is between `BEGIN:VEVENT` and its end, without what is nested in it.
#[derive(Debug)]
pub(super) struct Component {
    /// Where it begins in the file.
    pub(super) line: usize,
    name: String,
    lines: Vec<Line>,
}

impl Component {
    pub(super) fn find(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Line> {
        self.lines.iter().filter(move |line| line.name == name)
    }
}

#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) events: Vec<Component>,
    /// The IANA names that the file itself gives for its own names of zones.
    pub(super) zones: BTreeMap<String, String>,
}

pub(super) fn read(text: &str) -> Result<Contents, IcsError> {
    if text.len() > MAX_ICS_BYTES {
        return Err(IcsError::TooLarge { bytes: text.len() });
    }
    let mut contents = Contents::default();
    let mut open: Vec<Component> = Vec::new();
    let mut seen_calendar = false;
    let mut last = 1;
    for line in lines(text) {
        let line = line?;
        last = line.number;
        match line.name.as_str() {
            "BEGIN" => {
                let name = line.value.trim().to_ascii_uppercase();
                if open.is_empty() && name != "VCALENDAR" {
                    return Err(IcsError::at(last, format!("BEGIN:{name} stands outside a VCALENDAR")));
                }
                if open.len() >= MAX_DEPTH {
                    return Err(IcsError::at(
                        last,
                        format!("components nest deeper than {MAX_DEPTH} levels"),
                    ));
                }
                seen_calendar = true;
                open.push(Component { line: last, name, lines: Vec::new() });
            }
            "END" => {
                let name = line.value.trim().to_ascii_uppercase();
                match open.pop() {
                    Some(closed) if closed.name == name => add_component(closed, &mut contents)?,
                    Some(closed) => {
                        let began = format!("{} of line {}", closed.name, closed.line);
                        return Err(IcsError::at(last, format!("END:{name} does not close the {began}")));
                    }
                    None => return Err(IcsError::at(last, format!("END:{name} closes nothing"))),
                }
            }
            _ => match open.last_mut() {
                Some(component) => component.lines.push(line),
                None => return Err(IcsError::at(last, "the file does not begin with BEGIN:VCALENDAR")),
            },
        }
    }
    match open.pop() {
        Some(component) => {
            Err(IcsError::at(component.line, format!("the {} is never closed", component.name)))
        }
        None if !seen_calendar => Err(IcsError::at(last, "the file does not begin with BEGIN:VCALENDAR")),
        None => Ok(contents),
    }
}

fn add_component(component: Component, contents: &mut Contents) -> Result<(), IcsError> {
    match component.name.as_str() {
        "VEVENT" if contents.events.len() >= MAX_EVENTS => return Err(IcsError::TooManyEvents),
        "VEVENT" => contents.events.push(component),
        "VTIMEZONE" => {
            if let (Some(name), Some(place)) = (component.find("TZID"), component.find("X-LIC-LOCATION")) {
                contents.zones.insert(name.value.clone(), place.value.clone());
            }
        }
        _ => {}
    }
    Ok(())
}
