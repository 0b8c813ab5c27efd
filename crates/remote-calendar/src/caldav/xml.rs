//! XML as a small tree, within limits. Document types, and with them entities of their own, are refused.

use quick_xml::NsReader;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;

/// Answers of servers have about ten levels.
const MAX_DEPTH: usize = 32;
const MAX_ELEMENTS: usize = 300_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespace {
    /// `DAV:`
    Dav,
    /// `urn:ietf:params:xml:ns:caldav`
    CalDav,
    Other,
}

#[derive(Debug)]
pub(super) struct Element {
    namespace: Namespace,
    name: String,
    pub(super) text: String,
    children: Vec<Element>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not well-formed XML, or too large")]
pub(super) struct XmlError;

impl Element {
    pub(super) fn is(&self, namespace: Namespace, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// The first child of a name.
    pub(super) fn child(&self, namespace: Namespace, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.is(namespace, name))
    }

    pub(super) fn children<'a>(
        &'a self,
        namespace: Namespace,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.is(namespace, name))
    }

    /// The text of a child, without white space around it.
    pub(super) fn text_of(&self, namespace: Namespace, name: &str) -> Option<&str> {
        self.child(namespace, name).map(|child| child.text.trim())
    }

    /// Whether an element of a name stands anywhere below.
    pub(super) fn contains(&self, namespace: Namespace, name: &str) -> bool {
        self.children.iter().any(|child| child.is(namespace, name) || child.contains(namespace, name))
    }
}

/// Reads a document to its root element. The stack is ours, so no input makes this recurse.
pub(super) fn parse(text: &str) -> Result<Element, XmlError> {
    let mut reader = NsReader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut elements = 0;
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|_| XmlError)?;
        match event {
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                elements += 1;
                if open.len() >= MAX_DEPTH || elements > MAX_ELEMENTS {
                    return Err(XmlError);
                }
                let name = std::str::from_utf8(tag.local_name().into_inner()).map_err(|_| XmlError)?;
                let element = Element {
                    namespace: namespace_of(&namespace),
                    name: name.to_owned(),
                    text: String::new(),
                    children: Vec::new(),
                };
                match event {
                    Event::Start(_) => open.push(element),
                    _ if open.is_empty() => return Ok(element),
                    _ => add_child(&mut open, element)?,
                }
            }
            Event::End(_) => {
                let closed = open.pop().ok_or(XmlError)?;
                if open.is_empty() {
                    return Ok(closed);
                }
                add_child(&mut open, closed)?;
            }
            Event::Text(text) => add_text(&mut open, &text.decode().map_err(|_| XmlError)?),
            Event::CData(text) => add_text(&mut open, &text.decode().map_err(|_| XmlError)?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(|_| XmlError)? {
                Some(c) => add_text(&mut open, c.encode_utf8(&mut [0; 4])),
                None => add_text(&mut open, entity(&reference.decode().map_err(|_| XmlError)?)?),
            },
            Event::DocType(_) | Event::Eof => return Err(XmlError),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
        }
    }
}

fn namespace_of(resolved: &ResolveResult<'_>) -> Namespace {
    match resolved {
        ResolveResult::Bound(namespace) if namespace.as_ref() == b"DAV:" => Namespace::Dav,
        ResolveResult::Bound(namespace) if namespace.as_ref() == b"urn:ietf:params:xml:ns:caldav" => {
            Namespace::CalDav
        }
        _ => Namespace::Other,
    }
}

fn add_child(open: &mut [Element], child: Element) -> Result<(), XmlError> {
    open.last_mut().ok_or(XmlError)?.children.push(child);
    Ok(())
}

/// Text outside of every element is white space.
fn add_text(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn entity(name: &str) -> Result<&'static str, XmlError> {
    Ok(match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return Err(XmlError),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_known_by_their_namespace_and_not_by_their_prefix() {
        let root = parse(
            r#"<?xml version="1.0"?><x:a xmlns:x="DAV:"><b xmlns="DAV:">1 &lt;&#x20AC;<![CDATA[&]]></b></x:a>"#,
        );
        let root = root.unwrap();
        assert!(root.is(Namespace::Dav, "a"));
        assert_eq!(root.text_of(Namespace::Dav, "b"), Some("1 <€&"));
        assert_eq!(root.text_of(Namespace::CalDav, "b"), None);
    }

    #[test]
    fn document_types_and_unknown_entities_are_refused() {
        assert_eq!(parse("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>").err(), Some(XmlError));
        assert_eq!(parse("<a>&x;</a>").err(), Some(XmlError));
    }

    #[test]
    fn depth_and_incomplete_documents_are_refused() {
        let deep = "<a>".repeat(40) + &"</a>".repeat(40);
        for text in [deep.as_str(), "", "<a>", "<a></b>", "text", "</a>"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[<>/a-c&;:=\"' !\\[\\]?-]{0,200}") {
            let _ = parse(&text);
        }
    }
}
