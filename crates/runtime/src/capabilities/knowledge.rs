//! `kb`: the knowledge base.

use std::sync::Arc;

use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityProvider, CapabilityRequest};
use quarterdeck_contracts::{CapabilitySpec, Knowledge, Namespace, Namespaces, answer_knowledge, built_in};
use serde_json::Value;

pub(super) struct KnowledgeProvider(pub(super) Arc<dyn Knowledge>);

impl CapabilityProvider for KnowledgeProvider {
    fn spec(&self) -> CapabilitySpec {
        built_in::KB
    }

    fn call(&self, request: CapabilityRequest) -> BoxFuture<Result<Value, CapabilityError>> {
        let knowledge = self.0.clone();
        Box::pin(async move {
            let readable = readable(request.scope.client().is_authenticated);
            answer_knowledge(&*knowledge, &readable, &request.method, &request.args).await
        })
    }
}

/// The parts of the base that a client may read: personal records need a sign-in.
pub(crate) fn readable(is_authenticated: bool) -> Namespaces {
    let mut readable = Namespaces::from([Namespace::Studio, Namespace::Public]);
    if is_authenticated {
        readable.insert(Namespace::Personal);
    }
    readable
}
