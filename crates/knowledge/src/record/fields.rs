//! From named fields to a record, whatever file they come from.

use quarterdeck_contracts::{KnowledgeRecord, Namespace, RecordKind};
use serde_json::{Map, Value};

use super::Fault;
use super::clean::{MAX_ID_CHARS, MAX_TAG_CHARS, MAX_TAGS, MAX_TITLE_CHARS, clean, clean_line};
use crate::day::Day;

/// What the path says about the records of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathDefaults {
    /// The first folder, when it is a namespace.
    pub namespace: Option<Namespace>,
    /// The second folder, when it is a type.
    pub kind: Option<RecordKind>,
    /// The name of the file without its ending.
    pub slug: Option<String>,
}

/// Fields as they are gathered; each setter says what is wrong with its value.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) id: Option<String>,
    pub(super) kind: Option<RecordKind>,
    pub(super) namespace: Option<Namespace>,
    pub(super) title: Option<String>,
    pub(super) text: Option<String>,
    tags: Vec<String>,
    url: Option<String>,
    source_type: Option<String>,
    last_updated: Option<String>,
    metadata: Map<String, Value>,
    sources: Vec<String>,
}

impl Fields {
    /// Takes one field. A null is a field that was not given.
    pub(super) fn set(&mut self, name: &str, value: Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match name {
            "id" | "_id" => self.id = Some(id(value)?),
            "type" => self.kind = Some(kind(&word(name, value)?)?),
            "namespace" => self.namespace = Some(namespace(&word(name, value)?)?),
            "title" => self.title = Some(title(&word(name, value)?)?),
            "text" => self.text = Some(clean(&word(name, value)?)),
            "tags" => self.tags = tags(value)?,
            "url" => self.url = Some(clean_line(&word(name, value)?)),
            "source_type" => self.source_type = Some(clean_line(&word(name, value)?)),
            "last_updated" => self.last_updated = Some(date(&word(name, value)?)?),
            "sources" => self.sources = words(name, value)?.iter().map(|source| clean_line(source)).collect(),
            "metadata" => match value {
                Value::Object(map) => self.metadata = map,
                _ => return Err("`metadata` is a mapping".to_owned()),
            },
            unknown => {
                return Err(format!("`{unknown}` is not a field of a record; put it under `metadata`"));
            }
        }
        Ok(())
    }

    /// The record, with what its path says where nothing else does.
    pub(super) fn record(self, path: &PathDefaults, line: usize) -> Result<KnowledgeRecord, Fault> {
        let fail = |message: String| Fault::new(line, message);
        let of_id =
            self.id.as_deref().and_then(|id| id.split_once(':')).and_then(|(kind, _)| find_kind(kind));
        let kind = self.kind.or(path.kind).or(of_id).unwrap_or(RecordKind::Doc);
        let id = match (self.id, &path.slug) {
            (Some(id), _) => id,
            (None, Some(slug)) => format!("{}:{slug}", kind.as_str()),
            (None, None) => return Err(fail("a record has an `id`: `type:slug`".to_owned())),
        };
        if of_id.is_some_and(|of_id| of_id != kind) {
            return Err(fail(format!("the id `{id}` does not agree with the type `{}`", kind.as_str())));
        }
        let Some(title) = self.title.filter(|title| !title.is_empty()) else {
            return Err(fail("a record has a `title`, or a first heading `# …`".to_owned()));
        };
        Ok(KnowledgeRecord {
            id,
            kind,
            namespace: self.namespace.or(path.namespace).unwrap_or_default(),
            title,
            text: self.text.unwrap_or_default(),
            tags: self.tags,
            url: self.url,
            source_type: self.source_type.unwrap_or_default(),
            last_updated: self.last_updated,
            metadata: self.metadata,
            sources: self.sources,
        })
    }
}

pub(super) fn find_kind(name: &str) -> Option<RecordKind> {
    RecordKind::ALL.into_iter().find(|kind| kind.as_str() == name)
}

pub(super) fn find_namespace(name: &str) -> Option<Namespace> {
    Namespace::ALL.into_iter().find(|namespace| namespace.as_str() == name)
}

fn kind(name: &str) -> Result<RecordKind, String> {
    let known = RecordKind::ALL.map(RecordKind::as_str).join(", ");
    find_kind(name).ok_or_else(|| format!("`type` is one of {known}"))
}

fn namespace(name: &str) -> Result<Namespace, String> {
    let known = Namespace::ALL.map(Namespace::as_str).join(", ");
    find_namespace(name).ok_or_else(|| format!("`namespace` is one of {known}"))
}

fn id(value: Value) -> Result<String, String> {
    let id = match value {
        Value::String(id) => id,
        Value::Number(id) => id.to_string(),
        _ => return Err("`id` is text: `type:slug`".to_owned()),
    };
    let is_sound = |letter: char| !letter.is_control() && !letter.is_whitespace() && !"()[]".contains(letter);
    if id.is_empty() || id.chars().count() > MAX_ID_CHARS || !id.chars().all(is_sound) {
        return Err(format!(
            "`id` has 1 to {MAX_ID_CHARS} characters, without spaces, brackets and control characters"
        ));
    }
    Ok(id)
}

fn title(text: &str) -> Result<String, String> {
    let title = clean_line(text);
    if title.chars().count() > MAX_TITLE_CHARS {
        return Err(format!("`title` is longer than {MAX_TITLE_CHARS} characters"));
    }
    Ok(title)
}

fn date(text: &str) -> Result<String, String> {
    match Day::parse(text) {
        Some(_) => Ok(text.trim().to_owned()),
        None => Err("`last_updated` is a day: 2025-03-14".to_owned()),
    }
}

fn tags(value: Value) -> Result<Vec<String>, String> {
    let mut tags = Vec::new();
    for tag in words("tags", value)? {
        let tag = clean_line(&tag);
        if tag.chars().count() > MAX_TAG_CHARS {
            return Err(format!("a tag is longer than {MAX_TAG_CHARS} characters"));
        }
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if tags.len() > MAX_TAGS { Err(format!("there are more than {MAX_TAGS} tags")) } else { Ok(tags) }
}

fn word(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("`{name}` is text")),
    }
}

fn words(name: &str, value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(list) => list.into_iter().map(|item| word(name, item)).collect(),
        Value::String(one) => Ok(vec![one]),
        _ => Err(format!("`{name}` is a list of words")),
    }
}
