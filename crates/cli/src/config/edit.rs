//! Changes the configuration file as an operator would, by lines, so that everything else in it stays as it is.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};

use super::file::parse_text;
use super::mcp::TABLE;
use super::problem::Problems;
use super::raw::RawConfig;
use super::{LocalConfig, load_local};
use crate::environment;

/// The text of the file, empty if there is none.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// What a text of the file means.
pub(crate) fn check_text(path: &Path, text: &str) -> Result<LocalConfig, Problems> {
    let mut raw = RawConfig::default();
    parse_text(&path.display().to_string(), text, &mut raw).map_err(Problems::new)?;
    load_local(raw, environment::variables())
}

/// Replaces the file, whole or not at all, with the permissions that it had.
pub(crate) fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    // A link to the file stays one.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut partial = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    partial.write_all(text.as_bytes()).with_context(cannot)?;
    if let Ok(metadata) = fs::metadata(&target) {
        partial.as_file().set_permissions(metadata.permissions()).with_context(cannot)?;
    }
    partial.as_file().sync_all().with_context(cannot)?;
    partial.persist(&target).map_err(|failure| failure.error).with_context(cannot)?;
    Ok(())
}

/// The text with a table at its end.
pub(crate) fn append_table(text: &str, table: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{table}")
}

/// The text without the table of a server and the tables below it. `None` if there is no such table.
///
/// # Errors
///
/// The server stands there in another form, which is for the operator to remove.
pub(crate) fn remove_server(path: &Path, text: &str, name: &str) -> anyhow::Result<Option<String>> {
    let table = format!("{TABLE}.{name}");
    let is_below = |key: &str| key == table || key.starts_with(&format!("{table}."));
    let mut expected = keys(path, text)?;
    let before = expected.len();
    expected.retain(|(key, _)| !is_below(key));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut kept = String::new();
    let mut rest = &lines[..];
    while let Some((line, after)) = rest.split_first() {
        match header(line).filter(|table| is_below(table)) {
            Some(_) => rest = &after[table_length(after)..],
            None => {
                kept.push_str(line);
                rest = after;
            }
        }
    }
    if kept == text && before == expected.len() {
        return Ok(None);
    }
    // A line that only looks like a header, in a text of several lines, would be found here.
    if keys(path, &kept).ok() != Some(expected) {
        bail!(
            "[{table}] in {} is not a table of its own that ends where the next begins\nhelp: remove its lines by hand",
            path.display()
        );
    }
    Ok(Some(kept))
}

/// How many lines belong to a table: up to the next header, without the comment above that one.
fn table_length(lines: &[&str]) -> usize {
    let end = lines.iter().position(|line| header(line).is_some()).unwrap_or(lines.len());
    if end == lines.len() {
        return end;
    }
    let comment = lines[..end].iter().rev().take_while(|line| line.trim_start().starts_with('#')).count();
    end - comment
}

/// The name in the header of a table. A header may be quoted in ways that are not understood here; then it is another one.
fn header(line: &str) -> Option<String> {
    let inner = line.trim().strip_prefix('[')?;
    let (name, _) = inner.trim_start_matches('[').split_once(']')?;
    let parts: Vec<_> = name.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect();
    Some(parts.join("."))
}

fn keys(path: &Path, text: &str) -> anyhow::Result<Vec<(String, super::value::Value)>> {
    let mut raw = RawConfig::default();
    parse_text(&path.display().to_string(), text, &mut raw).map_err(Problems::new)?;
    Ok(raw.keys.into_iter().map(|(key, raw)| (key, raw.value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Ours.\n[server]\nlisten = \"127.0.0.1:1\" # here\n\n# Tells the time.\n[mcp.servers.time]\ncommand = \"uvx\"\n\
                        [mcp.servers.time.env]\nTZ = \"UTC\"\n\n# Searches.\n[mcp.servers.time2]\nurl = \"https://a.example/mcp\"\n";

    fn removed(text: &str, name: &str) -> anyhow::Result<Option<String>> {
        remove_server(Path::new("quarterdeck.toml"), text, name)
    }

    #[test]
    fn a_server_is_removed_with_its_tables_and_nothing_else_changes() {
        let left = removed(FILE, "time").unwrap().unwrap();
        assert_eq!(
            left,
            "# Ours.\n[server]\nlisten = \"127.0.0.1:1\" # here\n\n# Tells the time.\n# Searches.\n[mcp.servers.time2]\n\
             url = \"https://a.example/mcp\"\n"
        );
        assert_eq!(removed(FILE, "tim").unwrap(), None);
        assert_eq!(removed(&removed(FILE, "time2").unwrap().unwrap(), "time2").unwrap(), None);
    }

    #[test]
    fn a_server_in_another_form_is_left_to_the_operator() {
        for text in [
            "mcp.servers.time.command = \"uvx\"\n",
            "[mcp.servers]\ntime = { command = \"uvx\" }\n",
            "[mcp.servers.time]\ncommand = \"\"\"\n[mcp.servers.time]\n\"\"\"\n[server]\nlisten = \"\"\"\n[mcp.servers.time]\nx\"\"\"\n",
        ] {
            let error = removed(text, "time").unwrap_err().to_string();
            assert!(error.contains("remove its lines by hand"), "{error}");
        }
    }

    #[test]
    fn a_table_is_added_after_an_empty_line() {
        assert_eq!(append_table("", "[a]\n"), "[a]\n");
        assert_eq!(append_table("x = 1", "[a]\n"), "x = 1\n\n[a]\n");
        assert_eq!(append_table("x = 1\n", "[a]\n"), "x = 1\n\n[a]\n");
        assert_eq!(append_table("x = 1\n\n", "[a]\n"), "x = 1\n\n[a]\n");
    }
}
