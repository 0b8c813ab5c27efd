//! A folder that is followed: each sound save becomes the base, and what it replaces is retired without an operator.

use std::sync::Arc;

use serde_json::json;

use super::VersionAdmin;
use crate::registry::{Bundle, Snapshot, VersionError};

impl VersionAdmin {
    /// Loads what a folder has become, and puts it in the place of the base. If it cannot be loaded, nothing changes.
    ///
    /// It is never refused because too many versions are loaded: the oldest retiring ones give way. A stored session of
    /// such a version is pinned anew when it is resumed.
    pub async fn succeed_base(&self, bundle: Bundle) -> Result<Arc<Snapshot>, VersionError> {
        let digest = bundle.digest().to_owned();
        self.check_allowed(&digest)?;
        let changing = self.changing.lock().await;
        let snapshot = match self.registry.find_pinned(&digest, "") {
            Some(loaded) => loaded,
            None => self.prepare_beyond_limit(bundle).await?,
        };
        let dropped = self.registry.change(|versions| {
            versions.succeed_base(snapshot.clone());
            versions.drop_excess(self.max_loaded)
        });
        for digest in dropped {
            self.audit("version_dropped", json!({ "digest": digest }));
        }
        drop(changing);
        // It is live either way, and the next look will find out.
        if let Err(error) = self.drop_unheld().await {
            tracing::error!(error = %error, "retired versions could not be looked at");
        }
        Ok(snapshot)
    }
}
