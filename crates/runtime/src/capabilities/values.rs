//! `store`: small durable values of one tool for one client.

use quarterdeck_contracts::handler::{
    BoxFuture, CapabilityError, CapabilityErrorCode, CapabilityProvider, CapabilityRequest, CapabilityScope,
};
use quarterdeck_contracts::{Capability, CapabilitySpec, StoreError, Table, built_in};
use serde_json::Value;

use super::invalid;
use crate::store_keys::value_prefix;

const MAX_KEY_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 64 * 1024;
const MAX_VALUES: usize = 1_000;

pub(super) struct ValuesProvider;

impl CapabilityProvider for ValuesProvider {
    fn spec(&self) -> CapabilitySpec {
        built_in::STORE
    }

    fn call(&self, request: CapabilityRequest) -> BoxFuture<Result<Value, CapabilityError>> {
        Box::pin(async move {
            let scope = &*request.scope;
            match request.method.as_str() {
                "get" => {
                    let value = scope.overlay().get(Table::Values, &key(scope, &request.arg(0))?).await;
                    Ok(value.map_err(failed)?.unwrap_or_default())
                }
                "put" => put(scope, &request.arg(0), request.arg(1)).await,
                "delete" => {
                    scope.require_writes("store.delete")?;
                    scope.overlay().delete(Table::Values, key(scope, &request.arg(0))?);
                    Ok(Value::Null)
                }
                _ => Err(CapabilityError::not_available(&Capability::STORE)),
            }
        })
    }
}

async fn put(scope: &dyn CapabilityScope, name: &Value, value: Value) -> Result<Value, CapabilityError> {
    scope.require_writes("store.put")?;
    if value.to_string().len() > MAX_VALUE_BYTES {
        return Err(invalid("a value has at most 64 KiB"));
    }
    let key = key(scope, name)?;
    let overlay = scope.overlay();
    if overlay.get(Table::Values, &key).await.map_err(failed)?.is_none() {
        let kept = overlay.scan(Table::Values, &prefix(scope), MAX_VALUES).await.map_err(failed)?;
        if kept.len() >= MAX_VALUES {
            return Err(invalid("a tool keeps at most 1,000 values for a client; delete some"));
        }
    }
    overlay.put(Table::Values, key, value);
    Ok(Value::Null)
}

fn key(scope: &dyn CapabilityScope, name: &Value) -> Result<String, CapabilityError> {
    match name.as_str().filter(|name| (1..=MAX_KEY_BYTES).contains(&name.len())) {
        Some(name) => Ok(format!("{}{name}", prefix(scope))),
        None => Err(invalid("a key is a text of 1 to 256 bytes")),
    }
}

fn prefix(scope: &dyn CapabilityScope) -> String {
    value_prefix(&scope.client().id, &scope.tool_id())
}

fn failed(error: StoreError) -> CapabilityError {
    tracing::error!(error = %error, "store failed during a capability call");
    CapabilityError::new(CapabilityErrorCode::Timeout, "the store is not available")
}
