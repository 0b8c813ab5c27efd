//! `[mcp.servers.NAME]`: the MCP servers whose tools are imported, how each is reached and with which credentials.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use quarterdeck_host_mcp::{
    HttpConfig, OAuthConfig, ServerName, StdioConfig, UpstreamConfig, UpstreamLimits, UpstreamTransport,
};
use quarterdeck_outbound::SecretText;

use super::kinds::{
    base_url, folder, line, list, private_host, seconds, secret_file, server_url, text_value, variable, whole,
};
use super::problem::Problem;
use super::reader::{OpenTable, Reader};

/// The servers by name.
pub(crate) type McpServers = BTreeMap<ServerName, UpstreamConfig>;

/// The table that holds the servers' tables.
pub(crate) const TABLE: &str = "mcp.servers";

pub(super) fn servers(from: &mut Reader) -> McpServers {
    let about = "An MCP server whose tools are imported; NAME is what `handler.mcp.json` calls it.";
    let form = OpenTable {
        form: "`command = \"PROGRAM\"` with `args = [\"…\"]` and `cwd = \"DIR\"` starts a process, with an empty environment but for \
               `env`; `url = \"https://…\"` reaches a server over HTTP, with `headers`. `quarterdeck mcp add` writes either.\n\n\
               `env.VARIABLE` and `headers.NAME` take a text, or `{ env = \"VARIABLE\" }` or `{ file = \"PATH\" }` where the value \
               is a secret or this machine's own; `prefix = \"Bearer \"` beside them stands before the value. A text is refused where \
               the name sounds like a secret.\n\n\
               `oauth.client_id`, `oauth.client_secret = { env = \"VARIABLE\" }`, `oauth.scopes` and `oauth.token_url` obtain a token \
               by client credentials. `private_hosts = [\"HOST:PORT\", …]` opens hosts beyond the public internet to the URL.\n\n\
               `start_timeout_seconds` [30], `max_message_bytes` [4194304], `max_tools` [512] and `max_concurrent_calls` [64] \
               limit it.",
        example: "[mcp.servers.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\nenv.PATH = { env = \"PATH\" }",
        is_template: true,
    };
    from.open_table("mcp.servers.NAME", about, form);
    let mut servers = McpServers::new();
    for written in server_names(from) {
        match ServerName::parse(&written) {
            Ok(name) => {
                if let Some(config) = server(from, &name) {
                    servers.insert(name, config);
                }
            }
            Err(error) => reject(from, &written, error.to_string()),
        }
    }
    servers
}

fn server_names(from: &mut Reader) -> BTreeSet<String> {
    let prefix = format!("{TABLE}.");
    let name_in = |key: &str| key.strip_prefix(&prefix)?.split('.').next().map(String::from);
    let tables = from.raw.tables.iter().filter_map(|(table, _)| name_in(table));
    let keys = from.raw.keys.keys().filter(|key| key.matches('.').count() > 2).filter_map(|key| name_in(key));
    let names: BTreeSet<String> = keys.chain(tables).collect();
    for name in &names {
        for below in ["", ".env", ".headers", ".oauth"] {
            from.open.push(format!("{TABLE}.{name}{below}"));
        }
    }
    names
}

fn reject(from: &mut Reader, name: &str, reason: String) {
    let table = format!("{TABLE}.{name}");
    let is_below = |key: &str| key == table || key.starts_with(&format!("{table}."));
    let of_table = from.raw.tables.iter().find(|(key, _)| *key == table).map(|(_, origin)| origin.clone());
    let of_key = from.raw.keys.iter().find(|(key, _)| is_below(key)).map(|(_, raw)| raw.origin.clone());
    from.raw.keys.retain(|key, _| !is_below(key));
    let origin = of_table.or(of_key).unwrap_or(super::origin::Origin::Default);
    from.problems.push(Problem { origin, message: format!("[{table}]: {reason}"), help: None });
}

fn server(from: &mut Reader, name: &ServerName) -> Option<UpstreamConfig> {
    let keys = Keys { table: format!("{TABLE}.{name}") };
    // A way that is given and refused has been told.
    let is_given = ["command", "url"].iter().any(|key| from.raw_origin(&keys.of(key)).is_some());
    let command = from.optional_key(&keys.of("command"), line(), "The program that is started");
    let url = from.optional_key(&keys.of("url"), server_url(), "Where the server is");
    let stdio = keys.stdio(from);
    let http = keys.http(from);
    let transport = match (command, url) {
        (Some(command), None) => UpstreamTransport::Stdio(StdioConfig { command, ..stdio }),
        (None, Some(url)) => UpstreamTransport::Http(HttpConfig { url, ..http? }),
        (command, _) => {
            let message = match command {
                Some(_) => "has both `command` and `url`",
                None if is_given => return None,
                None => "has neither `command` nor `url`",
            };
            let tables = from.raw.tables.iter().find(|(table, _)| *table == keys.table);
            let origin = tables.map_or_else(|| from.origin(&keys.of("url")), |(_, origin)| origin.clone());
            let message = format!("[{}] {message}", keys.table);
            let help = Some("a server is reached in one of the two ways".into());
            from.problems.push(Problem { origin, message, help });
            return None;
        }
    };
    let limits = keys.limits(from);
    Some(UpstreamConfig { name: name.clone(), transport, limits })
}

/// The keys of one server.
struct Keys {
    table: String,
}

impl Keys {
    fn of(&self, key: &str) -> String {
        format!("{}.{key}", self.table)
    }

    /// All but the command.
    fn stdio(&self, from: &mut Reader) -> StdioConfig {
        let args = from.optional_key(&self.of("args"), list(text_value()), "The program's arguments");
        let cwd: Option<PathBuf> = from.optional_key(&self.of("cwd"), folder(), "Where it is started");
        StdioConfig {
            command: String::new(),
            args: args.unwrap_or_default(),
            env: self.values(from, "env"),
            cwd,
        }
    }

    /// All but the URL; nothing where OAuth is incomplete.
    fn http(&self, from: &mut Reader) -> Option<HttpConfig> {
        let headers = self.values(from, "headers");
        let headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let about = "Hosts beyond the public internet that the URL may lead to";
        let private_hosts = from.optional_key(&self.of("private_hosts"), list(private_host()), about);
        let oauth = self.oauth(from)?;
        // Replaced by the caller, who has it.
        let url = url::Url::parse("https://localhost").ok()?;
        Some(HttpConfig { url, headers, oauth, private_hosts: private_hosts.unwrap_or_default() })
    }

    /// `None` where it is incomplete, which has been said.
    fn oauth(&self, from: &mut Reader) -> Option<Option<OAuthConfig>> {
        let client_id =
            from.optional_key(&self.of("oauth.client_id"), line(), "Who we are to the token issuer");
        let secret = self.value(from, "oauth", "client_secret");
        let scopes = from.optional_key(&self.of("oauth.scopes"), list(line()), "What the token is for");
        let about = "Where tokens are issued; the server's metadata says it otherwise";
        let token_url = from.optional_key(&self.of("oauth.token_url"), base_url(&["https", "http"]), about);
        match (client_id, secret) {
            (Some(client_id), Some(client_secret)) => Some(Some(OAuthConfig {
                client_id,
                client_secret,
                scopes: scopes.unwrap_or_default(),
                token_url: token_url.and_then(|url| url::Url::parse(&url).ok()),
            })),
            (None, None) => Some(None),
            (Some(_), None) => {
                let message = format!("`{}` needs a client secret", self.of("oauth.client_id"));
                let help =
                    format!("write `oauth.client_secret = {{ env = \"VARIABLE\" }}` into [{}]", self.table);
                from.add_serve_problem(&self.of("oauth.client_id"), message, Some(help));
                Some(None)
            }
            (None, Some(_)) => {
                let message = format!("[{}] has a client secret and no `oauth.client_id`", self.table);
                from.add_problem(&self.of("oauth.client_id"), message, None);
                None
            }
        }
    }

    /// The values of a table whose names the operator chooses.
    fn values(&self, from: &mut Reader, table: &str) -> BTreeMap<String, SecretText> {
        let prefix = format!("{}.{table}.", self.table);
        let names = from.raw.keys.keys().filter_map(|key| key.strip_prefix(&prefix)?.split('.').next());
        let names: BTreeSet<String> = names.map(String::from).collect();
        let mut values = BTreeMap::new();
        for name in names {
            if let Some(value) = self.value(from, table, &name) {
                values.insert(name, value);
            }
        }
        values
    }

    /// One value: a text, or a reference to a variable or a file.
    fn value(&self, from: &mut Reader, table: &str, name: &str) -> Option<SecretText> {
        let key = self.of(&format!("{table}.{name}"));
        if from.raw_origin(&key).is_some() {
            return self.plain(from, &key, table, name);
        }
        let (env_key, file_key) = (format!("{key}.env"), format!("{key}.file"));
        let env = from.optional_key(&env_key, variable(), "The variable that holds the value");
        let file = from.optional_key(&file_key, secret_file(), "The file that holds the value");
        let prefix =
            from.optional_key(&format!("{key}.prefix"), text_value(), "What stands before the value");
        if env.is_none() && file.is_none() {
            return None;
        }
        if env.is_some() && file.is_some() {
            let message = format!("`{key}` has both `env` and `file`");
            from.add_problem(&env_key, message, Some("leave one out".into()));
        }
        let variables: Vec<&str> = env.as_deref().into_iter().collect();
        let way_out = "write `{ env = \"VARIABLE\" }` or `{ file = \"PATH\" }`";
        let secret = from.take_secret(&key, &variables, (&file_key, file.as_deref()), way_out);
        if secret.is_none() && env.is_some() {
            // It may be the secret itself, so it is not repeated.
            from.set_effective(&env_key, "(not set)", None);
            let help = "set that variable; write its name here, not the secret itself";
            let message = format!("`{env_key}` names a variable that is not set");
            from.add_serve_problem(&env_key, message, Some(help.into()));
        }
        let secret = secret?;
        Some(SecretText::from(&*format!("{}{}", prefix.unwrap_or_default(), secret.expose())))
    }

    fn plain(&self, from: &mut Reader, key: &str, table: &str, name: &str) -> Option<SecretText> {
        if table == "oauth" || sounds_secret(name) {
            let origin = from.raw.keys.remove(key).map(|raw| raw.origin)?;
            let message = format!("`{key}` is a secret, and secrets do not belong in this file");
            let help = Some("write `{ env = \"VARIABLE\" }` or `{ file = \"PATH\" }`".into());
            from.problems.push(Problem { origin, message, help });
            return None;
        }
        let value = from.optional_key(key, text_value(), "Its value")?;
        Some(SecretText::from(&*value))
    }

    fn limits(&self, from: &mut Reader) -> UpstreamLimits {
        let mut limits = UpstreamLimits::default();
        let about = "Until it has listed its tools";
        if let Some(timeout) = from.optional_key(&self.of("start_timeout_seconds"), seconds(1, 600), about) {
            limits.start_timeout = timeout;
        }
        let sizes = [
            (
                "max_message_bytes",
                &mut limits.max_message_bytes,
                1_024,
                64 << 20,
                "The largest message from the server",
            ),
            ("max_tools", &mut limits.max_tools, 1, 4_096, "The most tools that it may list"),
            ("max_concurrent_calls", &mut limits.max_concurrent_calls, 1, 4_096, "Calls at the same time"),
        ];
        for (key, limit, min, max, about) in sizes {
            if let Some(value) = from.optional_key(&self.of(key), whole(min, max), about) {
                *limit = value;
            }
        }
        limits
    }
}

/// Whether a variable or a header of this name holds a secret.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let words = [
        "token",
        "secret",
        "password",
        "passwd",
        "credential",
        "credentials",
        "authorization",
        "cookie",
        "key",
        "pat",
    ];
    name.split('_').any(|word| words.contains(&word)) || name.ends_with("apikey") || name.ends_with("token")
}
