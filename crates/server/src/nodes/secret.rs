//! Secrets that all nodes share, kept where all of them find them.

use quarterdeck_contracts::{Commit, CommitError, Store, StoreError, Table};
use quarterdeck_runtime::random_hex;
use serde_json::json;

const SECRET_BYTES: usize = 32;
/// Several nodes may start at the same time, and the first one's secret counts.
const MAX_ATTEMPTS: usize = 8;

/// A secret of the nodes that share a store, by name: `nodes` signs what they send each other, `cookie` signs cookies,
/// tickets and session tokens. The first node that asks for one creates it.
pub async fn shared_secret(store: &dyn Store, name: &str) -> Result<String, StoreError> {
    let key = format!("secret/{name}");
    for _ in 0..MAX_ATTEMPTS {
        let row = store.get(Table::Nodes, &key).await?;
        if let Some(secret) = row.and_then(|row| row.value["secret"].as_str().map(str::to_owned)) {
            return Ok(secret);
        }
        let Some(secret) = random_hex(SECRET_BYTES) else {
            return Err(StoreError::Failed("no random numbers for a secret".to_owned()));
        };
        let created = Commit::default().check(Table::Nodes, key.clone(), None).put(
            Table::Nodes,
            key.clone(),
            json!({ "secret": secret }),
        );
        match store.commit(created).await {
            // Read again, also where it is not known who was first.
            Ok(_) | Err(CommitError::Conflict { .. } | CommitError::Unknown(_)) => {}
            Err(error) => return Err(error.into_store_error()),
        }
    }
    Err(StoreError::Failed(format!(
        "the row `{key}` of the nodes holds no secret; delete it to get another one"
    )))
}

#[cfg(test)]
mod tests {
    use quarterdeck_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn all_nodes_get_the_secret_of_the_first() {
        let store = MemoryStore::default();
        let first = shared_secret(&store, "nodes").await.unwrap();
        assert_eq!(first.len(), 2 * SECRET_BYTES);
        assert_eq!(shared_secret(&store, "nodes").await, Ok(first.clone()));
        assert_ne!(shared_secret(&store, "cookie").await.unwrap(), first);
        store.commit(Commit::default().put(Table::Nodes, "secret/nodes", json!(7))).await.unwrap();
        let error = shared_secret(&store, "nodes").await.unwrap_err();
        assert!(error.to_string().contains("secret/nodes"), "{error}");
    }
}
