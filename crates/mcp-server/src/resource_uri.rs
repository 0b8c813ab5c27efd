//! `kb://namespace/type/slug`: the address of a knowledge record, one for each record.
//!
//! A record's id is `type:slug` as a rule, and the slug of its address is that slug. An id of any other form (`17`,
//! `team:crew` of a record of the type `doc`) stands whole behind a `~`. So that templates work, whose values clients
//! percent-encode, the mark is a letter that no client encodes.

use std::fmt;

use quarterdeck_contracts::{KnowledgeRecord, Namespace, RecordKind};

/// The template of every address.
pub const KNOWLEDGE_URI_TEMPLATE: &str = "kb://{namespace}/{type}/{slug}";

/// Longer than the address of any record: an id has at most 200 characters, each of at most twelve in an address.
const MAX_URI_BYTES: usize = 4_096;
const SCHEME: &str = "kb://";
const WHOLE_ID_MARK: char = '~';

/// Where a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUri {
    pub namespace: Namespace,
    pub kind: RecordKind,
    /// The record's whole id.
    pub id: String,
}

/// Why a text is not the address of a record. Clients are told the same as of a record that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address of a record is kb://namespace/type/slug")]
pub struct InvalidResourceUri;

impl ResourceUri {
    pub fn of(record: &KnowledgeRecord) -> Self {
        Self { namespace: record.namespace, kind: record.kind, id: record.id.clone() }
    }

    pub fn parse(uri: &str) -> Result<Self, InvalidResourceUri> {
        Self::parse_parts(uri).ok_or(InvalidResourceUri)
    }

    fn parse_parts(uri: &str) -> Option<Self> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        // A scheme and a host are the same in any case; some clients change them.
        let (scheme, rest) = uri.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return None;
        }
        let mut parts = rest.splitn(3, '/');
        let namespace = find_namespace(&parts.next()?.to_ascii_lowercase())?;
        let kind = find_kind(parts.next()?)?;
        let slug = percent_decode(parts.next()?)?;
        let id = id_of_slug(kind, &slug)?;
        Some(Self { namespace, kind, id })
    }

    /// What stands for `{slug}`, before a client encodes it.
    pub fn slug(&self) -> String {
        match self.id.strip_prefix(self.kind.as_str()).and_then(|rest| rest.strip_prefix(':')) {
            Some(slug) if !slug.is_empty() && !slug.starts_with(WHOLE_ID_MARK) => slug.to_owned(),
            _ => format!("{WHOLE_ID_MARK}{}", self.id),
        }
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}/{}/", self.namespace.as_str(), self.kind.as_str())?;
        for byte in self.slug().bytes() {
            if is_unreserved(byte) {
                write!(formatter, "{}", char::from(byte))?;
            } else {
                write!(formatter, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

pub(crate) fn find_namespace(name: &str) -> Option<Namespace> {
    Namespace::ALL.into_iter().find(|namespace| namespace.as_str() == name)
}

pub(crate) fn find_kind(name: &str) -> Option<RecordKind> {
    RecordKind::ALL.into_iter().find(|kind| kind.as_str() == name)
}

/// The inverse of [`ResourceUri::slug`]. Of the two spellings that an id could have, only the one that we write is taken:
/// a record has one address.
fn id_of_slug(kind: RecordKind, slug: &str) -> Option<String> {
    if slug.is_empty() || slug.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
        return None;
    }
    let id = match slug.strip_prefix(WHOLE_ID_MARK) {
        Some(id) => id.to_owned(),
        None => format!("{}:{slug}", kind.as_str()),
    };
    let has_own_slug = ResourceUri { namespace: Namespace::default(), kind, id: id.clone() }.slug() == slug;
    (!id.is_empty() && has_own_slug).then_some(id)
}

/// RFC 3986, 2.3: what is never encoded.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Decodes a path. A query or a fragment is no part of an address.
fn percent_decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                decoded.push((high * 16 + low) as u8);
            }
            b'?' | b'#' => return None,
            other => decoded.push(other),
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uri(namespace: Namespace, kind: RecordKind, id: &str) -> ResourceUri {
        ResourceUri { namespace, kind, id: id.to_owned() }
    }

    #[test]
    fn an_address_names_namespace_type_and_slug() {
        let written = [
            ("kb://studio/doc/sledges", "doc:sledges"),
            ("kb://studio/doc/trips%2F1893", "doc:trips/1893"),
            ("kb://studio/doc/%C3%A5sen", "doc:åsen"),
            ("kb://studio/doc/~17", "17"),
            ("kb://studio/doc/~team%3Acrew", "team:crew"),
            ("kb://studio/doc/~doc%3A~odd", "doc:~odd"),
            ("kb://studio/doc/~doc%3A", "doc:"),
        ];
        for (address, id) in written {
            let parsed = uri(Namespace::Studio, RecordKind::Doc, id);
            assert_eq!(parsed.to_string(), address);
            assert_eq!(ResourceUri::parse(address), Ok(parsed), "{address}");
        }
    }

    #[test]
    fn spellings_that_clients_make_of_an_address_are_the_same_address() {
        let meant = uri(Namespace::Personal, RecordKind::Person, "person:a/b");
        for spelt in
            ["kb://personal/person/a/b", "KB://Personal/person/a%2fb", "kb://personal/person/%61%2Fb"]
        {
            assert_eq!(ResourceUri::parse(spelt), Ok(meant.clone()), "{spelt}");
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused() {
        let long = format!("kb://studio/doc/{}", "a".repeat(5_000));
        let refused = [
            "",
            "kb:",
            "kb://",
            "kb://studio",
            "kb://studio/doc",
            "kb://studio/doc/",
            "kb://studio//a",
            "kb://secret/doc/a",
            "kb://studio/poem/a",
            "kb://studio/Doc/a",
            "kb://user@studio/doc/a",
            "kb://studio:80/doc/a",
            "kb://studio/doc/a?x=1",
            "kb://studio/doc/a#b",
            "kb://studio/doc/a%",
            "kb://studio/doc/a%4",
            "kb://studio/doc/a%zz",
            "kb://studio/doc/%+1",
            "kb://studio/doc/%FF",
            "kb://studio/doc/%00",
            "kb://studio/doc/a%20b",
            "kb://studio/doc/a b",
            "kb://studio/doc/~",
            "file:///etc/passwd",
            "kbé//studio/doc/a",
            "kb://studio/doc/~doc%3Asledges",
            long.as_str(),
        ];
        for text in refused {
            assert_eq!(ResourceUri::parse(text), Err(InvalidResourceUri), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_record_has_an_address_that_leads_back_to_it(
            namespace in prop::sample::select(&Namespace::ALL[..]),
            kind in prop::sample::select(&RecordKind::ALL[..]),
            id in prop_oneof!["[^\\s\\p{Cc}]{1,200}", "(doc|person)?:?~{0,2}[a-z:/%]{1,9}"],
        ) {
            let address = uri(namespace, kind, &id);
            prop_assert_eq!(ResourceUri::parse(&address.to_string()), Ok(address));
        }

        #[test]
        fn whatever_is_read_as_an_address_has_one_canonical_spelling(text in "(kb://(studio|public)/(doc|link)/)?\\PC{0,40}") {
            if let Ok(parsed) = ResourceUri::parse(&text) {
                prop_assert_eq!(ResourceUri::parse(&parsed.to_string()), Ok(parsed));
            }
        }
    }
}
