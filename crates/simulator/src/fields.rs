//! The fields of a file that somebody has written, each with the place where it stands.

mod place;

use std::time::Duration;

use serde_json::{Map, Value};

pub(crate) use self::place::Place;

/// The longest pause.
const LONGEST_PAUSE: u64 = 3_600_000;

/// Where something is wrong, and what.
pub(crate) type Fault = (Place, String);

/// A value and where it stands.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    pub(crate) value: &'a Value,
    pub(crate) place: Place,
}

/// An object all of whose fields are known.
pub(crate) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    pub(crate) place: Place,
}

impl<'a> Field<'a> {
    pub(crate) fn fault<T>(&self, wanted: &str) -> Result<T, Fault> {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Err((self.place.clone(), format!("must be {wanted}, is {found}")))
    }

    pub(crate) fn string(&self) -> Result<&'a str, Fault> {
        self.value.as_str().map_or_else(|| self.fault("a text"), Ok)
    }

    pub(crate) fn number(&self) -> Result<u64, Fault> {
        self.value.as_u64().map_or_else(|| self.fault("a whole number from 0 on"), Ok)
    }

    pub(crate) fn items(&self) -> Result<Vec<Field<'a>>, Fault> {
        let Some(items) = self.value.as_array() else { return self.fault("a list") };
        Ok(items
            .iter()
            .enumerate()
            .map(|(nth, value)| Field { value, place: self.place.item(nth) })
            .collect())
    }

    pub(crate) fn one_or_many(&self) -> Vec<Field<'a>> {
        self.items().unwrap_or_else(|_| vec![self.clone()])
    }

    pub(crate) fn object(&self, known: &[&str]) -> Result<Fields<'a>, Fault> {
        let Some(fields) = self.value.as_object() else { return self.fault("an object") };
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => {
                Err((self.place.field(unknown), format!("is not known; known are {}", known.join(", "))))
            }
            None => Ok(Fields { fields, place: self.place.clone() }),
        }
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn find(&self, name: &str) -> Option<Field<'a>> {
        self.fields.get(name).map(|value| Field { value, place: self.place.field(name) })
    }

    pub(crate) fn needed(&self, name: &str) -> Result<Field<'a>, Fault> {
        self.find(name).ok_or_else(|| (self.place.field(name), "is missing".into()))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.find(name).map(|field| field.string()).transpose()
    }

    pub(crate) fn pause(&self, name: &str) -> Result<Option<Duration>, Fault> {
        let Some(field) = self.find(name) else { return Ok(None) };
        match field.number()? {
            millis if millis <= LONGEST_PAUSE => Ok(Some(Duration::from_millis(millis))),
            _ => Err((field.place, "is over an hour".into())),
        }
    }

    pub(crate) fn wrong(&self, name: &str, problem: &str) -> Fault {
        (self.place.field(name), problem.to_owned())
    }
}
