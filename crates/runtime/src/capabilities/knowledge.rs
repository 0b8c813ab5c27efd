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
            // Personal records need a sign-in.
            let mut readable = Namespaces::from([Namespace::Studio, Namespace::Public]);
            if request.scope.client().is_authenticated {
                readable.insert(Namespace::Personal);
            }
            answer_knowledge(&*knowledge, &readable, &request.method, &request.args).await
        })
    }
}
