//! Who else may read or replace the server's files and secrets.
//!
//! A folder or a file that is wider than its owner is warned about, with what mends it, and served all the same:
//! platforms hand out volumes with such modes (an `emptyDir` has 0777, a mounted secret 0644, a user's private group
//! may write by default), and the process often has no right to change them. A secret that *every user* may write is
//! refused: no platform makes one, and the user who wrote it last can be any client, and an operator.

use std::path::PathBuf;

/// A file that holds a secret, and what it is for.
pub(crate) struct SecretFile {
    /// The secret's name in the configuration.
    pub(crate) key: String,
    pub(crate) path: PathBuf,
    /// Whether we made it, so that a link or a foreign owner means that another did.
    pub(crate) is_ours: bool,
}

#[cfg(unix)]
pub(crate) use unix::check;

/// Elsewhere a file has the permissions of its folder.
#[cfg(not(unix))]
pub(crate) fn check(_: &crate::node_data::NodeData, _: &[SecretFile]) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(unix)]
mod unix {
    use std::fs::Metadata;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use anyhow::bail;

    use super::SecretFile;
    use crate::data;
    use crate::node_data::NodeData;
    use crate::store_url::StoreUrl;
    use crate::terminal::warn;

    const GROUP_OR_OTHERS: u32 = 0o077;
    const GROUP_OR_OTHERS_WRITE: u32 = 0o022;
    const OTHERS_WRITE: u32 = 0o002;
    /// Files of others in the folder cannot be replaced.
    const STICKY: u32 = 0o1000;

    /// Warns of what others may read or write, and refuses a secret that every user may write.
    pub(crate) fn check(node: &NodeData, secrets: &[SecretFile]) -> anyhow::Result<()> {
        let data = &node.folder;
        let us = own_user(data);
        check_folder(data, us);
        for secret in secrets {
            check_secret(secret, us)?;
        }
        let store = match &node.url {
            StoreUrl::Sqlite(file) => file.clone(),
            StoreUrl::Postgres(_) => data::store_file(data),
        };
        for file in [store, data::audit_file(data), data::knowledge_file(data)] {
            if let Ok(found) = file.metadata()
                && mode(&found) & GROUP_OR_OTHERS != 0
            {
                warn(&format!(
                    "{} can be used by others (mode {:04o}), and holds what users wrote: `chmod 600 {0}` mends it",
                    file.display(),
                    mode(&found)
                ));
            }
        }
        Ok(())
    }

    fn check_folder(data: &Path, us: Option<u32>) {
        let Ok(found) = data.metadata() else { return };
        let mode = mode(&found);
        let shown = data.display();
        if mode & GROUP_OR_OTHERS_WRITE != 0 && mode & STICKY == 0 {
            warn(&format!(
                "others may write to the data folder {shown} (mode {mode:04o}), and so replace the store, the audit trail \
                 and the secret that signs the cookies: `chmod 700 {shown}` mends it"
            ));
        } else if mode & GROUP_OR_OTHERS != 0 {
            warn(&format!(
                "others may look into the data folder {shown} (mode {mode:04o}): `chmod 700 {shown}` mends it"
            ));
        }
        warn_of_owner(data, &found, us);
    }

    fn check_secret(secret: &SecretFile, us: Option<u32>) -> anyhow::Result<()> {
        let SecretFile { key, path, is_ours } = secret;
        let shown = path.display();
        let Ok(found) = path.metadata() else { return Ok(()) };
        let mode = mode(&found);
        if mode & OTHERS_WRITE != 0 {
            bail!(
                "{shown}, which holds `{key}`, can be written by every user (mode {mode:04o}): it cannot be known whose \
                 secret it is\n\
                 help: put a new secret into it, or remove it where it is made by us, and `chmod 600 {shown}`"
            );
        }
        if mode & GROUP_OR_OTHERS != 0 {
            warn(&format!(
                "{shown}, which holds `{key}`, can be used by others (mode {mode:04o}): `chmod 600 {shown}` mends it, \
                 and a new secret if it may have been read"
            ));
        }
        if *is_ours {
            if path.symlink_metadata().is_ok_and(|link| link.is_symlink()) {
                warn(&format!(
                    "{shown} is a symbolic link, which is not how it was made: the user who made the link knows `{key}`; \
                     remove it, and a new secret is made"
                ));
            }
            warn_of_owner(path, &found, us);
        }
        Ok(())
    }

    /// The owner can change the mode, and so everything. Root can anyway.
    fn warn_of_owner(path: &Path, found: &Metadata, us: Option<u32>) {
        if us.is_some_and(|us| found.uid() != us && found.uid() != 0) {
            warn(&format!(
                "{} belongs to another user (uid {}), who can read and replace it: `chown` it to the user of the server",
                path.display(),
                found.uid()
            ));
        }
    }

    /// As whom we make files. `None` where none can be made, which is told elsewhere.
    fn own_user(data: &Path) -> Option<u32> {
        Some(tempfile::tempfile_in(data).ok()?.metadata().ok()?.uid())
    }

    fn mode(found: &Metadata) -> u32 {
        found.permissions().mode() & 0o7777
    }
}
