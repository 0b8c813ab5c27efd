//! Knowledge records as resources. What a client may not read does not exist for it: not in a list, not in a completion,
//! and reading it is answered like reading what was never there.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{Knowledge, KnowledgeRecord, Namespaces, RecordListing};
use quarterdeck_runtime::Session;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, MetaObject, PaginatedRequestParams,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

use crate::cursor::PagedList;
use crate::resource_uri::{KNOWLEDGE_URI_TEMPLATE, ResourceUri};
use crate::server::Shared;

const PAGE_RECORDS: usize = 100;
const MAX_DESCRIPTION_CHARS: usize = 200;
const RECORD_TYPE: &str = "text/markdown";
/// What a client may keep: records change when the base is built again, which no notification tells.
const RECORD_TTL_MS: u64 = 60_000;
/// Templates change with a new release only.
const TEMPLATE_TTL_MS: u64 = 3_600_000;
/// The rest of a record, beside its text.
const RECORD_META_KEY: &str = "quarterdeck/record";

impl Shared {
    pub(crate) async fn list_resources(
        &self,
        session: &Session,
        params: Option<PaginatedRequestParams>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let Some(knowledge) = &self.parts.knowledge else { return Ok(ListResourcesResult::default()) };
        let cursor = params.and_then(|params| params.cursor);
        list(&**knowledge, session.readable_namespaces(), cursor.as_deref()).await
    }

    pub(crate) fn list_resource_templates(&self) -> ListResourceTemplatesResult {
        match self.parts.knowledge {
            Some(_) => list_templates(),
            None => ListResourceTemplatesResult::default(),
        }
    }

    pub(crate) async fn read_resource(
        &self,
        session: &Session,
        uri: &str,
    ) -> Result<ReadResourceResult, ErrorData> {
        let Some(knowledge) = &self.parts.knowledge else { return Err(not_found(uri)) };
        read(&**knowledge, session.readable_namespaces(), uri).await
    }
}

/// `resources/list`.
async fn list(
    knowledge: &dyn Knowledge,
    readable: Namespaces,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let after = cursor.map(|cursor| PagedList::Resources.read_cursor(cursor)).transpose();
    let after = after.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    let listing =
        RecordListing { readable, kind: None, id_prefix: String::new(), after, limit: PAGE_RECORDS };
    let page = knowledge.list(listing).await.map_err(|error| unavailable(&error))?;
    let last = page.records.last().filter(|_| page.has_more);
    let next_cursor = last.map(|record| PagedList::Resources.cursor_after(&record.id));
    let resources = page.records.iter().map(resource).collect();
    let result = ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) };
    // Private: another client may read others.
    Ok(result.with_ttl_ms(RECORD_TTL_MS).with_cache_scope(CacheScope::Private))
}

/// `resources/templates/list`.
fn list_templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(KNOWLEDGE_URI_TEMPLATE, "knowledge_record")
        .with_title("Knowledge record")
        .with_description(
            "A record of the knowledge base. `namespace`, `type` and `slug` can be completed; a record's id is \
             `type:slug`.",
        )
        .with_mime_type(RECORD_TYPE);
    ListResourceTemplatesResult::with_all_items(vec![template])
        .with_ttl_ms(TEMPLATE_TTL_MS)
        .with_cache_scope(CacheScope::Public)
}

/// `resources/read`. The answer about a record elsewhere than at its address, about one that may not be read and about
/// something that is no address is the same.
async fn read(
    knowledge: &dyn Knowledge,
    readable: Namespaces,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let asked = uri;
    let uri = ResourceUri::parse(uri).map_err(|_| not_found(asked))?;
    let found = knowledge.get(vec![uri.id.clone()], readable).await;
    let record = match found {
        Ok(mut records) => records.pop().filter(|record| ResourceUri::of(record) == uri),
        Err(error) if error.code == CapabilityErrorCode::NotFound => None,
        Err(error) => return Err(unavailable(&error)),
    };
    let record = record.ok_or_else(|| not_found(asked))?;
    let contents = ResourceContents::text(document(&record), uri.to_string())
        .with_mime_type(RECORD_TYPE)
        .with_meta(record_meta(&record));
    let result = ReadResourceResult::new(vec![contents]);
    Ok(result.with_ttl_ms(RECORD_TTL_MS).with_cache_scope(CacheScope::Private))
}

/// With the address as the client gave it, so that a client which reads several at once knows which one is meant.
fn not_found(uri: &str) -> ErrorData {
    let message = "There is no such resource. List what you may read with resources/list.";
    ErrorData::invalid_params(message, Some(json!({ "uri": uri })))
}

pub(crate) fn unavailable(error: &CapabilityError) -> ErrorData {
    tracing::warn!(%error, "knowledge base failed");
    ErrorData::internal_error("The knowledge base does not answer. Try again later.", None)
}

fn resource(record: &KnowledgeRecord) -> Resource {
    let resource = Resource::new(ResourceUri::of(record).to_string(), record.id.clone())
        .with_title(record.title.clone())
        .with_mime_type(RECORD_TYPE)
        .with_size(document(record).len() as u64);
    match description(record) {
        Some(description) => resource.with_description(description),
        None => resource,
    }
}

/// The record's first paragraph, shortened.
fn description(record: &KnowledgeRecord) -> Option<String> {
    let lines = record.text.lines().map(str::trim);
    let paragraph: Vec<&str> = lines
        .skip_while(|line| line.is_empty() || line.starts_with('#'))
        .take_while(|line| !line.is_empty())
        .collect();
    let paragraph = paragraph.join(" ");
    match paragraph.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        _ if paragraph.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", paragraph[..end].trim_end())),
        None => Some(paragraph),
    }
}

/// The record as Markdown, with its title on top.
fn document(record: &KnowledgeRecord) -> String {
    if record.text.starts_with("# ") {
        return record.text.clone();
    }
    format!("# {}\n\n{}", record.title, record.text)
}

fn record_meta(record: &KnowledgeRecord) -> MetaObject {
    let KnowledgeRecord { id, kind, namespace, title, tags, url, source_type, .. } = record;
    let fields = json!({
        "id": id, "type": kind, "namespace": namespace, "title": title, "tags": tags, "url": url,
        "sourceType": source_type, "lastUpdated": record.last_updated, "metadata": record.metadata,
        "sources": record.sources,
    });
    let mut meta = MetaObject::default();
    meta.0.insert(RECORD_META_KEY.to_owned(), fields);
    meta
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;
    use quarterdeck_contracts::{Namespace, RecordKind};
    use quarterdeck_testkit::block_on;

    use super::*;
    use crate::sample_records::{base, record, small_base, visitor};

    #[test]
    fn a_list_holds_the_records_that_the_client_may_read() {
        let listed = block_on(list(&small_base(), visitor(), None)).unwrap();
        expect![[r##"
            {
              "resultType": "complete",
              "ttlMs": 60000,
              "cacheScope": "private",
              "resources": [
                {
                  "uri": "kb://public/doc/~17",
                  "name": "17",
                  "title": "About 17",
                  "mimeType": "text/markdown",
                  "size": 12
                },
                {
                  "uri": "kb://studio/doc/sledges",
                  "name": "doc:sledges",
                  "title": "About doc:sledges",
                  "description": "Five sledges were built of ash.",
                  "mimeType": "text/markdown",
                  "size": 55
                }
              ]
            }"##]]
        .assert_eq(&serde_json::to_string_pretty(&listed).unwrap());
    }

    #[test]
    fn a_record_is_read_as_markdown_with_the_rest_of_it_beside() {
        let answer = block_on(read(&small_base(), visitor(), "kb://studio/doc/sledges")).unwrap();
        expect![[r##"
            {
              "resultType": "complete",
              "ttlMs": 60000,
              "cacheScope": "private",
              "contents": [
                {
                  "uri": "kb://studio/doc/sledges",
                  "mimeType": "text/markdown",
                  "text": "# Sledges\n\nFive sledges were built\nof ash.\n\nLater more.",
                  "_meta": {
                    "quarterdeck/record": {
                      "id": "doc:sledges",
                      "type": "doc",
                      "namespace": "studio",
                      "title": "About doc:sledges",
                      "tags": [
                        "ice"
                      ],
                      "url": null,
                      "sourceType": "note",
                      "lastUpdated": null,
                      "metadata": {},
                      "sources": []
                    }
                  }
                }
              ]
            }"##]]
        .assert_eq(&serde_json::to_string_pretty(&answer).unwrap());
    }

    #[test]
    fn a_forbidden_record_is_answered_like_one_that_does_not_exist() {
        let base = small_base();
        let everything = Namespaces::from(Namespace::ALL);
        assert!(block_on(read(&base, everything, "kb://personal/person/tuva")).is_ok());
        let refused = |uri: &str| block_on(read(&base, visitor(), uri)).unwrap_err();
        let forbidden = refused("kb://personal/person/tuva");
        assert_eq!(forbidden.code.0, -32602);
        assert_eq!(forbidden.data, Some(json!({ "uri": "kb://personal/person/tuva" })));
        let others = [
            "kb://personal/person/tuvo",
            "kb://studio/doc/none",
            "kb://studio/person/sledges",
            "kb://public/doc/sledges",
            "kb://studio/doc/17",
            "https://example.com",
            "",
        ];
        for uri in others {
            let data = Some(json!({ "uri": uri }));
            assert_eq!(refused(uri), ErrorData { data, ..forbidden.clone() }, "{uri}");
        }
    }

    #[test]
    fn a_long_base_is_listed_in_pages() {
        let records = (0..250).map(|at| record(Namespace::Studio, RecordKind::Doc, &format!("doc:{at:03}")));
        let base = base(records.collect());
        let (mut names, mut cursor) = (Vec::new(), None);
        for expected in [100, 100, 50] {
            let page = block_on(list(&base, visitor(), cursor.as_deref())).unwrap();
            assert_eq!(page.resources.len(), expected);
            names.extend(page.resources.into_iter().map(|resource| resource.name));
            cursor = page.next_cursor;
        }
        assert_eq!(cursor, None);
        assert!(names.into_iter().eq((0..250).map(|at| format!("doc:{at:03}"))));
        let refused = block_on(list(&base, visitor(), Some("next"))).unwrap_err();
        assert_eq!(refused.code.0, -32602);
    }

    proptest! {
        #[test]
        fn what_a_client_lists_is_what_it_can_read(
            ids in prop::collection::btree_map("(doc:)?[a-z~/é]{1,6}", (0..3_usize, 0..5_usize), 0..12),
            readable in prop::collection::btree_set(0..3_usize, 0..=3),
        ) {
            let records = ids.iter().map(|(id, (namespace, kind))| {
                record(Namespace::ALL[*namespace], RecordKind::ALL[*kind], id)
            });
            let all: Vec<_> = records.collect();
            let base = base(all.clone());
            let readable: Namespaces = readable.iter().map(|at| Namespace::ALL[*at]).collect();
            let listed = block_on(list(&base, readable.clone(), None)).unwrap().resources;
            let listed: Vec<_> = listed.into_iter().map(|resource| resource.uri).collect();
            for record in &all {
                let uri = ResourceUri::of(record).to_string();
                let is_readable = readable.contains(&record.namespace);
                prop_assert_eq!(listed.contains(&uri), is_readable);
                prop_assert_eq!(block_on(read(&base, readable.clone(), &uri)).is_ok(), is_readable);
            }
        }
    }
}
