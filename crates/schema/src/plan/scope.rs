//! Dynamic scopes: which resources a way through a document has entered, as far as that decides what a `$dynamicRef`
//! leads to.

use std::collections::{BTreeMap, HashMap};

use crate::document::Document;

/// A scope's number. That of a way that has entered nothing is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(usize);

/// For each contested anchor, the base of the outermost resource that has it.
type Scope<'d> = BTreeMap<&'d str, &'d str>;

/// All scopes that were met. In a document without contested anchors there is one.
pub(super) struct Scopes<'d> {
    contested: Vec<(&'d str, &'d [String])>,
    all: Vec<Scope<'d>>,
    ids: HashMap<Scope<'d>, ScopeId>,
}

impl<'d> Scopes<'d> {
    pub(super) fn new(document: &'d Document<'_>) -> Self {
        let ids = HashMap::from([(Scope::new(), ScopeId(0))]);
        Self { contested: document.contested_anchors().collect(), all: vec![Scope::new()], ids }
    }

    /// The scope after entering the resource with that base.
    pub(super) fn enter(&mut self, scope: ScopeId, base: &str) -> ScopeId {
        let mut inner: Option<Scope<'d>> = None;
        for (anchor, bases) in &self.contested {
            if let (false, Some(base)) =
                (self.all[scope.0].contains_key(anchor), bases.iter().find(|known| *known == base))
            {
                inner.get_or_insert_with(|| self.all[scope.0].clone()).insert(anchor, base);
            }
        }
        let Some(inner) = inner else { return scope };
        let next = ScopeId(self.all.len());
        let id = *self.ids.entry(inner.clone()).or_insert(next);
        if id == next {
            self.all.push(inner);
        }
        id
    }

    /// The base of the resource whose anchor of that name counts, where there is a choice.
    pub(super) fn provider(&self, scope: ScopeId, anchor: &str) -> Option<&'d str> {
        self.all[scope.0].get(anchor).copied()
    }
}
