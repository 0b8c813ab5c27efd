//! `[tools.NAME]`: what an operator grants to one tool.

use std::collections::BTreeSet;

use quarterdeck_contracts::is_secret_name;
use quarterdeck_host_js::ToolGrants;
use quarterdeck_outbound::SecretText;

use super::kinds::{list, private_host, secret_file, variable};
use super::origin::{Origin, variable_of};
use super::problem::Problem;
use super::reader::{OpenTable, Reader};
use crate::handler_access::Grants;

/// What is shorter is found in texts that have nothing to do with it, and could not be hidden in answers.
const MIN_SECRET_CHARS: usize = 8;

const PRIVATE_HOSTS: &str =
    "Hosts beyond the public internet that the tool may reach, if its `network` names them";

pub(super) fn grants(from: &mut Reader) -> Grants {
    let about = "What one tool may use; NAME is the tool's id.";
    let form = OpenTable {
        form: "`private_hosts = [\"HOST:PORT\", …]` opens hosts beyond the public internet that the tool's `network` names: an \
               address as it is, `localhost` at loopback addresses, another name at addresses of private networks.\n\n\
               `secrets.SECRET = { env = \"VARIABLE\" }` or `secrets.SECRET = { file = \"PATH\" }` gives the tool a secret that \
               its `secrets` name; or the variable `QUARTERDECK_TOOLS__<NAME>__SECRETS__<SECRET>`, which holds the secret and \
               wins. It has 8 characters or more, and is added to requests outside the handler.",
        example: "[tools.weather]\nprivate_hosts = [\"localhost:8080\"]\nsecrets.API_KEY = { env = \"WEATHER_API_KEY\" }",
        is_template: true,
    };
    from.open_table("tools.NAME", about, form);
    let mut grants = Grants::new();
    for name in tool_names(from) {
        let granted = tool(from, &name);
        grants.insert(name.replace('-', "_"), granted);
    }
    grants
}

/// The tools that have a table. Keys of `[tools]` itself have been read.
fn tool_names(from: &mut Reader) -> BTreeSet<String> {
    let name_in = |key: &str| key.strip_prefix("tools.")?.split('.').next().map(String::from);
    let is_key = |name: &str| from.rows.iter().any(|row| row.key == format!("tools.{name}"));
    let deeper = from.raw.keys.keys().filter(|key| key.matches('.').count() > 1);
    let tables = from.raw.tables.iter().map(|(table, _)| table);
    let names: BTreeSet<String> =
        deeper.chain(tables).filter_map(|key| name_in(key)).filter(|name| !is_key(name)).collect();
    for name in &names {
        from.open.push(format!("tools.{name}"));
        from.open.push(format!("tools.{name}.secrets"));
    }
    names
}

fn tool(from: &mut Reader, name: &str) -> ToolGrants {
    let private_hosts =
        from.optional_key(&format!("tools.{name}.private_hosts"), list(private_host()), PRIVATE_HOSTS);
    let mut grants = ToolGrants { private_hosts: private_hosts.unwrap_or_default(), ..ToolGrants::default() };
    for written in secret_names(from, name) {
        // Variables have no capitals of their own.
        let secret_name = written.to_uppercase();
        if !is_secret_name(&secret_name) {
            reject_name(from, &format!("tools.{name}.secrets.{written}"));
        }
        if let Some(secret) = secret(from, name, &written) {
            grants.secrets.insert(secret_name, secret);
        }
    }
    grants
}

/// Before its keys are read, so that the problem has their place.
fn reject_name(from: &mut Reader, key: &str) {
    let raw = from.raw.keys.iter().find(|(each, _)| each.starts_with(key));
    let origin = raw.map_or(Origin::Default, |(_, raw)| raw.origin.clone());
    let help = "a secret has the name that `secrets` in the tool's schema.json gives it, such as API_KEY";
    from.problems.push(Problem {
        origin,
        message: format!("`{key}` cannot be a secret"),
        help: Some(help.into()),
    });
}

fn secret_names(from: &Reader, tool: &str) -> BTreeSet<String> {
    let prefix = format!("tools.{tool}.secrets.");
    let names = from.raw.keys.keys().filter_map(|key| key.strip_prefix(&prefix)?.split('.').next());
    names.map(String::from).collect()
}

fn secret(from: &mut Reader, tool: &str, name: &str) -> Option<SecretText> {
    let key = format!("tools.{tool}.secrets.{name}");
    let (env_key, file_key) = (format!("{key}.env"), format!("{key}.file"));
    let env = from.optional_key(&env_key, variable(), "The variable that holds the secret");
    let file = from.optional_key(&file_key, secret_file(), "The file that holds the secret");
    if env.is_some() && file.is_some() {
        let message = format!("`{key}` has both `env` and `file`");
        from.add_problem(&env_key, message, Some("leave one out".into()));
    }
    // The variable of the key itself holds the secret. In the file it would be one in the wrong place.
    let own_variable = match from.raw_origin(&key) {
        Some(Origin::Variable(variable)) => {
            from.raw.keys.remove(&key);
            variable
        }
        _ => variable_of(&key),
    };
    let variables: Vec<&str> = [own_variable.as_str()].into_iter().chain(env.as_deref()).collect();
    let way_out = "write `{ env = \"VARIABLE\" }` or `{ file = \"PATH\" }`";
    let secret = from.take_secret(&key, &variables, (&file_key, file.as_deref()), way_out);
    if secret.is_none() && env.is_some() {
        // It may be the secret itself, so it is not repeated.
        from.set_effective(&env_key, "(not set)", None);
        let help = "set that variable; write its name here, not the secret itself";
        from.add_serve_problem(
            &env_key,
            format!("`{env_key}` names a variable that is not set"),
            Some(help.into()),
        );
    }
    from.check_strength(&key, secret.as_ref(), MIN_SECRET_CHARS);
    secret.map(|secret| SecretText::from(secret.expose()))
}
