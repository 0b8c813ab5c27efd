//! `[store]` and `[cluster]`: where rows are kept, and this node among those that share them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quarterdeck_store::SealingKeys;
use quarterdeck_transports::Secret;
use serde_json::json;

use super::audit::{AuditConfig, audit};
use super::kinds::{base_url, choice, choices, file, millis, node_name, seconds, store_url, whole};
use super::origin::Origin;
use super::reader::{Reader, settings};
use crate::environment;
use crate::store_url::StoreUrl;

/// Where rows are kept.
#[derive(Debug, Clone)]
pub(crate) struct StoreConfig {
    /// `None` for the file in the data folder.
    pub(crate) url: Option<StoreUrl>,
    /// Of the database, for URLs that have none.
    password: Option<Secret>,
    root_certificates: Option<PathBuf>,
    pub(crate) pool_size: usize,
    pub(crate) statement_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) migrate: MigrateSchema,
    /// How long a server waits at its start until the database can be reached.
    pub(crate) wait: Duration,
    /// The audit trail, whose head is in the store.
    pub(crate) audit: AuditConfig,
    /// What conversations in it are encrypted with.
    pub(crate) keys: SealingKeys,
}

choices! {
    /// Who brings the schema of a database up to date.
    enum MigrateSchema {
        /// `serve`, when it starts.
        Auto = "auto",
        /// The operator, with `quarterdeck store migrate`.
        Manual = "manual",
    }
}

/// This node among those that share a store.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    /// Its name; unique among the nodes and the same after a restart.
    pub(crate) node: String,
    /// What other nodes reach it by, without a slash at the end; `None` for the address that it listens on.
    pub(crate) address: Option<String>,
    /// What the nodes sign their requests with; `None` for one that is generated in the store.
    pub(crate) secret: Option<Secret>,
}

impl StoreConfig {
    /// Whether several nodes may use it at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.url, Some(StoreUrl::Postgres(_)))
    }

    /// A URL with the password and the root certificates of the configuration, where it has none of its own.
    pub(crate) fn complete(&self, url: StoreUrl) -> StoreUrl {
        let url = self.password.iter().fold(url, StoreUrl::with_password);
        let roots = self.root_certificates.iter().map(|file| file.display().to_string());
        roots.fold(url, |url, file| url.with_parameter("sslrootcert", &file))
    }
}

impl Cluster {
    /// What other nodes reach this one by, once it listens.
    pub(crate) fn address_of(&self, listening: SocketAddr) -> String {
        self.address.clone().unwrap_or_else(|| format!("http://{listening}"))
    }
}

pub(super) fn store(from: &mut Reader) -> StoreConfig {
    from.table(
        "store",
        "Where sessions, calls, confirmations and everything else are kept that outlives a process.",
    );
    let about = "A database that several nodes share, such as postgres://quarterdeck@db.example/quarterdeck, or a file, as \
                 sqlite:///PATH [default: the file quarterdeck.db in the data folder]. A password belongs into \
                 `store.password_file` or a variable";
    let url = from.optional("url", store_url(), about);
    let password = password(from, url.as_ref());
    let mut config = StoreConfig {
        url: None,
        password,
        root_certificates: None,
        pool_size: 16,
        statement_timeout: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(3),
        migrate: MigrateSchema::Auto,
        wait: Duration::from_secs(30),
        audit: AuditConfig::default(),
        keys: SealingKeys::default(),
    };
    settings! { from;
        "pool_size": whole(2, 1_000) => config.pool_size,
            "Connections to the database that one node may have open, besides one that listens";
        "statement_timeout_ms": millis(100, 600_000) => config.statement_timeout,
            "How long one statement may take in the database";
        "connect_timeout_ms": millis(100, 60_000) => config.connect_timeout,
            "How long making a connection to the database may take";
        "wait_seconds": seconds(0, 3_600) => config.wait,
            "How long a server that starts waits until the database can be reached";
        "migrate": choice() => config.migrate,
            "Who brings the schema of the database up to date: a server that starts, or `quarterdeck store migrate` alone";
    }
    config.root_certificates = root_certificates(from);
    config.url = url.map(|url| config.complete(url));
    config.audit = audit(from);
    config
}

fn root_certificates(from: &mut Reader) -> Option<PathBuf> {
    let about = "A file of root certificates in PEM that the database's certificate is checked against, as `sslrootcert` in \
                 the URL [default: the well-known ones]";
    from.optional("root_certificates_file", file(), about)
}

fn password(from: &mut Reader, url: Option<&StoreUrl>) -> Option<Secret> {
    let way_out = "set QUARTERDECK_STORE_PASSWORD, or name a file that holds it in `store.password_file`";
    let about = "A file that holds the password of the database; the variable QUARTERDECK_STORE_PASSWORD wins over it, and \
                 a password in QUARTERDECK_STORE__URL over both";
    let (password, _) = from.secret("password", &["QUARTERDECK_STORE_PASSWORD"], about, way_out);
    let is_in_file = matches!(from.origin("store.url"), Origin::File { .. });
    if is_in_file && url.is_some_and(StoreUrl::has_password) {
        let message = "`store.url` holds a password, and secrets do not belong in this file".to_owned();
        let help = format!("leave it out of the URL, and {way_out}; or set QUARTERDECK_STORE__URL");
        from.add_problem("store.url", message, Some(help));
    }
    password
}

pub(super) fn cluster(from: &mut Reader, listen: SocketAddr, is_shared: bool) -> Cluster {
    from.table("cluster", "This node, where `store.url` is a database that several of them share.");
    let about = "Its name, unique among the nodes and the same after a restart [default: the name of the machine and the \
                 port of `server.listen`]";
    let named = from.optional("node", node_name(), about);
    let about = "What the other nodes reach this one by, such as http://10.0.0.5:8080 [default: `server.listen`, where that \
                 is one address]";
    let address = from.optional("address", base_url(&["http"]), about);
    let (secret, _) = from.secret(
        "secret",
        &["QUARTERDECK_CLUSTER_SECRET"],
        "A file that holds the secret with which the nodes sign what they send each other; the variable \
         QUARTERDECK_CLUSTER_SECRET wins over it [default: one that is generated in the database]",
        "set QUARTERDECK_CLUSTER_SECRET, or name a file that holds it in `cluster.secret_file`",
    );
    from.check_strength("cluster.secret", secret.as_ref(), 32);
    from.set_fallback("cluster.secret", "generated");
    let node = named.unwrap_or_else(|| default_name(listen.port()));
    if is_shared {
        from.set_effective("cluster.node", json!(node), None);
        if address.is_none() && listen.ip().is_unspecified() {
            from.add_serve_problem(
                "cluster.address",
                format!("the other nodes cannot reach this one by {listen}, so `cluster.address` is needed"),
                Some(format!(
                    "set it to what they reach this machine by, such as http://10.0.0.5:{}",
                    listen.port()
                )),
            );
        }
    }
    Cluster { node, address, secret }
}

/// The same after each start on this machine.
fn default_name(port: u16) -> String {
    const MAX_HOST_CHARS: usize = 48;
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let host: String =
        environment::host_name().to_ascii_lowercase().chars().filter(is_plain).take(MAX_HOST_CHARS).collect();
    let host = host.trim_matches(['-', '_', '.']);
    format!("{}-{port}", if host.is_empty() { "node" } else { host })
}
