//! The address of a database, as given and as meant.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use url::form_urlencoded;

/// A commit takes a fraction of a millisecond of the server's time, so more connections only wait there instead of here.
const DEFAULT_POOL_SIZE: usize = 16;
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const DEFAULT_STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A line that is silent for so long is asked whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVE_RETRIES: u32 = 3;
/// What was sent and is not acknowledged for so long is lost.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);

/// How to reach a database. Its `Debug` shows no password.
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresSettings {
    pub(crate) config: Config,
    /// Where connections go that must reach the server itself.
    pub(crate) direct: Config,
    pub(crate) encryption: Encryption,
    /// How many connections there may be at a time, dedicated ones aside.
    pub pool_size: usize,
    /// How long a call waits for a free connection.
    pub wait_timeout: Duration,
    /// How long a statement may take. It is cancelled then, and its connection thrown away.
    pub statement_timeout: Duration,
    /// How long reaching one address may take.
    pub connect_timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Encryption {
    Disabled,
    /// The server must prove its name, by the web's roots or by those in a file.
    Verified {
        roots: Option<PathBuf>,
    },
}

/// Why an address cannot be used. It never shows the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresUrlError {
    #[error("the address of the database must begin with postgres://")]
    Scheme,
    #[error("the address of the database cannot be read: {0}")]
    Invalid(String),
    /// A part of the password could pass for a host or an option, and be shown.
    #[error(
        "the address of the database has an `@` too many; write `@`, `?`, `/` and `%` of a user or password as %40, %3F, %2F \
         and %25"
    )]
    Unescaped,
    #[error("the address of the database names no host; write postgres://USER@HOST/DATABASE")]
    NoHost,
    #[error("the address of the database names no user; write postgres://USER@HOST/DATABASE")]
    NoUser,
    #[error("the address of the database names no database; write postgres://USER@HOST/DATABASE")]
    NoDatabase,
    #[error(
        "sslmode={0} would let an attacker on the line read along; use sslmode=require, which verifies the server, \
         or sslmode=disable on a network of your own"
    )]
    Unverified(String),
    #[error("`{name}` of the database's address is not one of {expected}")]
    Value { name: &'static str, expected: &'static str },
}

impl PostgresSettings {
    /// Reads `postgres://user:password@host:port/database?sslmode=require&…`.
    ///
    /// Several hosts are separated by commas, and the one that can be written to is used. A host that begins with `/`, here
    /// as `%2F`, or in `?host=`, is a folder with a socket. `sslmode` is `require`, which verifies the server's certificate
    /// and name, by the file `sslrootcert` if one is given, or `disable`. Without it, sockets and loopback are not encrypted
    /// and everything else is. `pool_size` and `statement_timeout` (in milliseconds) may stand there too. Where the host is a
    /// pooler in transaction mode, `direct=HOST:PORT` names the server itself, for the one connection that listens.
    pub fn from_url(url: &str) -> Result<Self, PostgresUrlError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(PostgresUrlError::Scheme);
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        if base.matches('@').count() > 1 || query.contains('@') {
            return Err(PostgresUrlError::Unescaped);
        }
        let own = OwnParameters::read(url)?;
        let OwnParameters { theirs, mode, roots, pool_size, statement_timeout, direct } = own;
        let mut config: Config = theirs.parse().map_err(invalid)?;
        if config.get_hosts().is_empty() {
            return Err(PostgresUrlError::NoHost);
        }
        config.get_user().ok_or(PostgresUrlError::NoUser)?;
        config.get_dbname().ok_or(PostgresUrlError::NoDatabase)?;
        let encryption = encryption(mode.as_deref(), roots, config.get_hosts())?;
        set_defaults(&mut config, &encryption);
        let direct = match direct {
            Some(hosts) => {
                let mut direct: Config = with_hosts(&theirs, &hosts).parse().map_err(invalid)?;
                set_defaults(&mut direct, &encryption);
                direct
            }
            None => config.clone(),
        };
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(DEFAULT_CONNECT_TIMEOUT);
        Ok(Self {
            config,
            direct,
            encryption,
            pool_size: pool_size.unwrap_or(DEFAULT_POOL_SIZE),
            wait_timeout: DEFAULT_WAIT_TIMEOUT,
            statement_timeout: statement_timeout.unwrap_or(DEFAULT_STATEMENT_TIMEOUT),
            connect_timeout,
        })
    }

    /// The address without user and password, for logs and messages.
    pub fn address(&self) -> String {
        let mut address = String::from("postgres://");
        let ports = self.config.get_ports();
        for (n, host) in self.config.get_hosts().iter().enumerate() {
            let separator = if n == 0 { "" } else { "," };
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            // Writing to a string does not fail.
            let _ = match host {
                Host::Tcp(name) => write!(address, "{separator}{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(folder) => write!(address, "{separator}[{}]:{port}", folder.display()),
            };
        }
        let _ = write!(address, "/{}", self.config.get_dbname().unwrap_or_default());
        address
    }

    /// How long a connection may take to be made, whichever host answers.
    pub(crate) fn whole_connect_timeout(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(1).max(1);
        // Names may have several addresses, and the server has a word to say after the line is up.
        self.connect_timeout.saturating_mul(hosts).saturating_add(self.connect_timeout)
    }
}

impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSettings")
            .field("address", &self.address())
            .field("encryption", &self.encryption)
            .field("pool_size", &self.pool_size)
            .finish_non_exhaustive()
    }
}

/// What the address says to us, and the rest, which the client reads.
struct OwnParameters {
    theirs: String,
    mode: Option<String>,
    roots: Option<PathBuf>,
    pool_size: Option<usize>,
    statement_timeout: Option<Duration>,
    direct: Option<String>,
}

impl OwnParameters {
    fn read(url: &str) -> Result<Self, PostgresUrlError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut own = Self {
            theirs: base.to_owned(),
            mode: None,
            roots: None,
            pool_size: None,
            statement_timeout: None,
            direct: None,
        };
        let mut separator = '?';
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = form_urlencoded::parse(pair.as_bytes()).next().unwrap_or_default();
            match name.as_ref() {
                "sslmode" => own.mode = Some(value.into_owned()),
                "direct" => own.direct = Some(value.into_owned()),
                "sslrootcert" => own.roots = Some(PathBuf::from(value.as_ref())),
                "pool_size" => own.pool_size = Some(number(&value, "pool_size", "1 to 1000", 1000)?),
                "statement_timeout" => {
                    let expected = "1 to 600000 milliseconds";
                    let limit = number(&value, "statement_timeout", expected, 600_000)?;
                    own.statement_timeout = Some(Duration::from_millis(limit as u64));
                }
                _ => {
                    own.theirs.push(separator);
                    own.theirs.push_str(pair);
                    separator = '&';
                }
            }
        }
        Ok(own)
    }
}

fn number(
    value: &str,
    name: &'static str,
    expected: &'static str,
    most: usize,
) -> Result<usize, PostgresUrlError> {
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or(PostgresUrlError::Value { name, expected })
}

fn invalid(error: tokio_postgres::Error) -> PostgresUrlError {
    // It names options, never values.
    let reason =
        error.into_source().map_or_else(|| "it is malformed".to_owned(), |source| source.to_string());
    PostgresUrlError::Invalid(reason)
}

fn encryption(
    mode: Option<&str>,
    roots: Option<PathBuf>,
    hosts: &[Host],
) -> Result<Encryption, PostgresUrlError> {
    match mode {
        Some("disable") => Ok(Encryption::Disabled),
        Some("require" | "verify-ca" | "verify-full") => Ok(Encryption::Verified { roots }),
        Some(mode @ ("allow" | "prefer")) => Err(PostgresUrlError::Unverified(mode.to_owned())),
        Some(_) => Err(PostgresUrlError::Value { name: "sslmode", expected: "require, disable" }),
        None if roots.is_none() && hosts.iter().all(is_on_this_machine) => Ok(Encryption::Disabled),
        None => Ok(Encryption::Verified { roots }),
    }
}

fn is_on_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// The same address with other hosts.
fn with_hosts(url: &str, hosts: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let start = base.find("://").map_or(0, |colon| colon + 3);
    let start = base[start..].find('@').map_or(start, |at| start + at + 1);
    let end = base[start..].find('/').map_or(base.len(), |slash| start + slash);
    let kept = query.split('&').filter(|pair| !pair.starts_with("host=") && !pair.starts_with("port="));
    let kept: Vec<_> = kept.filter(|pair| !pair.is_empty()).collect();
    format!("{}{hosts}{}?{}", &base[..start], &base[end..], kept.join("&"))
}

/// What the address did not say.
fn set_defaults(config: &mut Config, encryption: &Encryption) {
    config.ssl_mode(match encryption {
        Encryption::Disabled => SslMode::Disable,
        Encryption::Verified { .. } => SslMode::Require,
    });
    let untouched = Config::new();
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(DEFAULT_CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    if config.get_keepalives_idle() == untouched.get_keepalives_idle() {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
    if config.get_application_name().is_none() {
        config.application_name("quarterdeck");
    }
    // A standby answers, and can do nothing for us.
    if config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}
