//! The command as it is used: exit code, standard output, standard error.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "tests hand their environment on to the command")]

mod access;
mod approval;
mod audit;
mod audit_tampering;
mod caldav;
mod call;
mod commands;
mod config;
mod data;
mod disk_faults;
mod duplicate_keys;
mod earlier_release;
mod five_mistakes;
mod hostile_arguments;
mod images;
mod kb_model;
mod knowledge;
mod knowledge_file;
mod locked;
mod named_files;
mod older_tools;
mod operator;
mod permissions;
mod permissive_modes;
mod privacy;
mod provider;
mod quarantines;
mod readme;
mod scaffold;
mod secrets;
mod security_page;
mod serve;
mod signed_in;
mod simulate;
mod site;
mod small_site;
mod store_loss;
mod tasks;
mod terminal;
mod unread;
mod versions;
mod voice;
mod watch;
