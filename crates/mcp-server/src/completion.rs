//! Completion of the arguments of resource templates and prompts. It offers what the client may read and use, nothing
//! else.

use quarterdeck_contracts::{Knowledge, Namespace, Namespaces, RecordKind, RecordListing, RecordPage};
use quarterdeck_runtime::Session;
use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionContext, CompletionInfo, Reference};

use crate::guide::Guide;
use crate::prompts;
use crate::resource_uri::{KNOWLEDGE_URI_TEMPLATE, ResourceUri, find_kind, find_namespace};
use crate::resources;
use crate::server::Shared;

/// How many pages are looked through for ids that are not `type:slug`.
const MAX_PAGES: usize = 20;

impl Shared {
    /// `completion/complete`.
    pub(crate) async fn complete(
        &self,
        session: &Session,
        params: CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let argument = (params.argument.name.as_str(), params.argument.value.as_str());
        match params.r#ref {
            Reference::Resource(template) => {
                let knowledge = self.parts.knowledge.as_deref();
                let readable = session.readable_namespaces();
                complete_resource(knowledge, readable, &template.uri, argument, params.context.as_ref()).await
            }
            Reference::Prompt(prompt) => complete_prompt(prompts::find(session, &prompt.name), argument),
            _ => Err(ErrorData::invalid_params("Only templates and prompts are completed.", None)),
        }
    }
}

/// Values for an argument of the template of knowledge records. What was chosen for the others is in `context`.
async fn complete_resource(
    knowledge: Option<&dyn Knowledge>,
    readable: Namespaces,
    template: &str,
    argument: (&str, &str),
    context: Option<&CompletionContext>,
) -> Result<CompleteResult, ErrorData> {
    if template != KNOWLEDGE_URI_TEMPLATE {
        let message = "There is no such template. List them with resources/templates/list.";
        return Err(ErrorData::invalid_params(message, None));
    }
    let chosen = |name: &str| context.and_then(|context| context.get_argument(name)).map(String::as_str);
    let readable = match chosen("namespace").map(find_namespace) {
        None => readable,
        Some(namespace) => readable.into_iter().filter(|readable| namespace == Some(*readable)).collect(),
    };
    let kinds = match chosen("type").map(find_kind) {
        None => RecordKind::ALL.to_vec(),
        Some(kind) => kind.into_iter().collect(),
    };
    let (name, prefix) = argument;
    let records = Records { knowledge, readable };
    match name {
        "namespace" => {
            Ok(among(records.readable.iter().map(|it: &Namespace| it.as_str().to_owned()), prefix))
        }
        "type" => {
            let mut known = Vec::new();
            for kind in kinds {
                if records.has(kind).await? {
                    known.push(kind.as_str().to_owned());
                }
            }
            Ok(among(known.into_iter(), prefix))
        }
        "slug" => records.all_slugs(&kinds, prefix).await,
        _ => Err(ErrorData::invalid_params(
            "The arguments of the template are namespace, type and slug.",
            None,
        )),
    }
}

/// Values for an argument of a prompt.
fn complete_prompt(guide: Option<Guide<'_>>, argument: (&str, &str)) -> Result<CompleteResult, ErrorData> {
    let guide = guide.ok_or_else(prompts::not_found)?;
    let (name, prefix) = argument;
    let Some(argument) = guide.find_argument(name) else {
        let message = "The prompt has no such argument. List the prompts with prompts/list.";
        return Err(ErrorData::invalid_params(message, None));
    };
    Ok(among(argument.known_values().into_iter(), prefix))
}

/// Those that begin with what was typed, in any case.
fn among(known: impl Iterator<Item = String>, prefix: &str) -> CompleteResult {
    let prefix = prefix.to_lowercase();
    let values: Vec<_> = known.filter(|value| value.to_lowercase().starts_with(&prefix)).collect();
    let total = values.len();
    result(values, Some(total), false)
}

fn result(mut values: Vec<String>, total: Option<usize>, has_more: bool) -> CompleteResult {
    let has_more = has_more || values.len() > CompletionInfo::MAX_VALUES;
    values.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::default();
    completion.values = values;
    completion.total = total.and_then(|total| u32::try_from(total).ok());
    completion.has_more = Some(has_more);
    CompleteResult::new(completion)
}

/// The records that a completion may offer.
struct Records<'a> {
    knowledge: Option<&'a dyn Knowledge>,
    readable: Namespaces,
}

#[derive(Default)]
struct Slugs {
    values: Vec<String>,
    has_more: bool,
}

impl Records<'_> {
    async fn all_slugs(&self, kinds: &[RecordKind], prefix: &str) -> Result<CompleteResult, ErrorData> {
        let mut all = Slugs::default();
        for kind in kinds {
            let missing = CompletionInfo::MAX_VALUES - all.values.len().min(CompletionInfo::MAX_VALUES);
            let found = self.slugs(*kind, prefix, missing).await?;
            all.has_more |= found.has_more;
            all.values.extend(found.values);
        }
        // Two types may have the same slug.
        let mut seen = std::collections::HashSet::new();
        all.values.retain(|slug| seen.insert(slug.clone()));
        let total = (!all.has_more).then_some(all.values.len());
        Ok(result(all.values, total, all.has_more))
    }

    async fn has(&self, kind: RecordKind) -> Result<bool, ErrorData> {
        Ok(!self.page(kind, "", None, 1).await?.records.is_empty())
    }

    /// Ids that are `type:slug` first, then the others, whose slugs begin with a mark.
    async fn slugs(&self, kind: RecordKind, prefix: &str, limit: usize) -> Result<Slugs, ErrorData> {
        let mut slugs = Slugs::default();
        let is_marked = prefix.starts_with('~');
        if !is_marked {
            self.gather(kind, &format!("{}:{prefix}", kind.as_str()), false, limit, &mut slugs).await?;
        }
        if is_marked || (prefix.is_empty() && !slugs.has_more) {
            let id_prefix = prefix.strip_prefix('~').unwrap_or_default();
            self.gather(kind, id_prefix, true, limit, &mut slugs).await?;
        }
        Ok(slugs)
    }

    async fn gather(
        &self,
        kind: RecordKind,
        id_prefix: &str,
        marked: bool,
        limit: usize,
        slugs: &mut Slugs,
    ) -> Result<(), ErrorData> {
        let mut after = None;
        for _ in 0..MAX_PAGES {
            let page = self.page(kind, id_prefix, after, CompletionInfo::MAX_VALUES).await?;
            let found = page.records.iter().map(|record| ResourceUri::of(record).slug());
            for slug in found.filter(|slug| slug.starts_with('~') == marked) {
                if slugs.values.len() >= limit {
                    slugs.has_more = true;
                    return Ok(());
                }
                slugs.values.push(slug);
            }
            if !page.has_more {
                return Ok(());
            }
            after = page.records.last().map(|record| record.id.clone());
        }
        slugs.has_more = true;
        Ok(())
    }

    async fn page(
        &self,
        kind: RecordKind,
        id_prefix: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<RecordPage, ErrorData> {
        let Some(knowledge) = self.knowledge else { return Ok(RecordPage::default()) };
        let (readable, id_prefix) = (self.readable.clone(), id_prefix.to_owned());
        let listing = RecordListing { readable, kind: Some(kind), id_prefix, after, limit };
        knowledge.list(listing).await.map_err(|error| resources::unavailable(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use quarterdeck_knowledge::KnowledgeBase;
    use quarterdeck_testkit::block_on;
    use serde_json::json;

    use super::*;
    use crate::sample_records::{base, record, small_base, visitor};

    fn complete(base: &KnowledgeBase, argument: (&str, &str), chosen: &[(&str, &str)]) -> CompletionInfo {
        let chosen: HashMap<_, _> = chosen.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let context = CompletionContext::with_arguments(chosen);
        let template = KNOWLEDGE_URI_TEMPLATE;
        let completing = complete_resource(Some(base), visitor(), template, argument, Some(&context));
        block_on(completing).unwrap().completion
    }

    #[test]
    fn the_parts_of_an_address_are_completed_one_after_another() {
        let base = small_base();
        assert_eq!(complete(&base, ("namespace", ""), &[]).values, ["studio", "public"]);
        assert_eq!(complete(&base, ("namespace", "ST"), &[]).values, ["studio"]);
        assert_eq!(complete(&base, ("type", ""), &[("namespace", "studio")]).values, ["doc"]);
        let in_studio = [("namespace", "studio"), ("type", "doc")];
        assert_eq!(complete(&base, ("slug", "sl"), &in_studio).values, ["sledges"]);
        let in_public = [("namespace", "public"), ("type", "doc")];
        assert_eq!(complete(&base, ("slug", ""), &in_public).values, ["~17"]);
        assert_eq!(complete(&base, ("slug", "~1"), &in_public).values, ["~17"]);
        assert_eq!(complete(&base, ("slug", ""), &[]).values, ["sledges", "~17"]);
    }

    #[test]
    fn what_may_not_be_read_is_not_offered() {
        let base = small_base();
        let nothing = complete(&base, ("slug", "nothing"), &[]);
        assert_eq!(complete(&base, ("slug", "tu"), &[]), nothing);
        assert_eq!(complete(&base, ("slug", "tu"), &[("namespace", "personal")]), nothing);
        assert_eq!(complete(&base, ("type", ""), &[("namespace", "personal")]), nothing);
        assert_eq!(complete(&base, ("namespace", "pers"), &[]), nothing);
        assert_eq!(complete(&base, ("type", ""), &[]).values, ["doc"]);
    }

    #[test]
    fn at_most_a_hundred_values_are_offered_and_the_rest_is_told() {
        let records = (0..250).map(|at| record(Namespace::Studio, RecordKind::Doc, &format!("doc:{at:03}")));
        let base = base(records.collect());
        let first = complete(&base, ("slug", ""), &[]);
        assert_eq!((first.values.len(), first.total, first.has_more), (100, None, Some(true)));
        let some = complete(&base, ("slug", "24"), &[]);
        assert_eq!((some.values.len(), some.total, some.has_more), (10, Some(10), Some(false)));
    }

    #[test]
    fn an_unknown_template_or_argument_is_an_invalid_parameter() {
        let refused = |template: &str, argument: &str| {
            let completing = complete_resource(None, visitor(), template, (argument, ""), None);
            block_on(completing).unwrap_err().code.0
        };
        assert_eq!(refused("file:///{path}", "path"), -32602);
        assert_eq!(refused(KNOWLEDGE_URI_TEMPLATE, "path"), -32602);
        let without_base = complete_resource(None, visitor(), KNOWLEDGE_URI_TEMPLATE, ("slug", ""), None);
        assert!(block_on(without_base).unwrap().completion.values.is_empty());
    }

    #[test]
    fn values_that_the_schema_names_are_offered_for_a_prompt() {
        let parameters = json!({ "properties": {
            "size": { "enum": ["small", "large"] }, "who": { "type": "string" }, "all": { "type": "boolean" } } });
        let guide = Guide { name: "book", summary: "", text: "", parameters: &parameters, sensitive: &[] };
        let values = |argument| complete_prompt(Some(guide), argument).unwrap().completion.values;
        assert_eq!(values(("size", "")), ["small", "large"]);
        assert_eq!(values(("size", "L")), ["large"]);
        assert_eq!(values(("all", "t")), ["true"]);
        assert_eq!(values(("who", "A")), Vec::<String>::new());
        assert_eq!(complete_prompt(Some(guide), ("whom", "")).unwrap_err().code.0, -32602);
        assert_eq!(complete_prompt(None, ("size", "")).unwrap_err().code.0, -32602);
    }
}
