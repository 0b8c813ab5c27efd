//! `[calendar.smtp]`: the mail server that takes invitations.

use std::path::PathBuf;

use quarterdeck_calendar::CalendarConfig;
use quarterdeck_invitations::{Credentials, Encryption, SmtpConfig, SmtpConfigError};
use quarterdeck_transports::Secret;

use super::kinds::{choice, choices, file, line, whole};
use super::reader::{Reader, settings};

choices! { for Encryption { Tls = "tls", StartTls = "starttls", None = "none", } }

/// More certificates than this are no file of one organisation.
const MAX_CA_BYTES: u64 = 1 << 20;

pub(super) fn smtp(from: &mut Reader, config: &CalendarConfig) -> Option<SmtpConfig> {
    from.table("calendar.smtp", "The mail server that takes invitations. Without one, none is sent.");
    let host = from.optional("host", line(), "Its name, as its certificate has it");
    let about = "Its port [default: 465 for TLS, 587 for STARTTLS, 25 without encryption]";
    let port = from.optional("port", whole(1, 65_535), about);
    let mut encryption = Encryption::default();
    settings! { from;
        "encryption": choice() => encryption,
            "How the connection is protected; \"none\" is for a server on this machine";
    }
    let user = from.optional("user", line(), "Who we are to it; without one we do not sign in");
    let (password, _) = from.secret(
        "password",
        &["QUARTERDECK_SMTP_PASSWORD"],
        "A file that holds the password; the variable QUARTERDECK_SMTP_PASSWORD wins over it",
        "set QUARTERDECK_SMTP_PASSWORD, or name a file that holds it in `calendar.smtp.password_file`",
    );
    let about = "Who invitations are from, such as Calendar <calendar@example.com> [default: the owner]";
    let sender = from.optional("from", line(), about);
    let about = "Certificates in PEM that are trusted beside the web's, for a server of your own";
    let ca_file = from.optional("ca_file", file(), about);

    let host = host?;
    if config.owner.email.is_empty() {
        let message = "`calendar.owner.email` is needed: an invitation names its organiser".into();
        from.add_problem("calendar.smtp.host", message, None);
        return None;
    }
    let owner = match config.owner.name.replace(['"', '\\'], "").as_str() {
        "" => config.owner.email.clone(),
        name => format!("\"{name}\" <{}>", config.owner.email),
    };
    let smtp = SmtpConfig {
        host,
        port,
        encryption,
        credentials: credentials(from, user, password),
        from: sender.unwrap_or(owner),
        ca_pem: ca_file.and_then(|path| certificates(from, path)),
        time_zone: config.time_zone.clone(),
    };
    if let Err(error) = smtp.validate() {
        let key = match error {
            SmtpConfigError::From(_) => "calendar.smtp.from",
            SmtpConfigError::Unencrypted => "calendar.smtp.encryption",
            SmtpConfigError::Certificates => "calendar.smtp.ca_file",
            _ => "calendar.smtp.host",
        };
        from.add_problem(key, format!("`{key}`: {error}"), None);
        return None;
    }
    Some(smtp)
}

fn credentials(from: &mut Reader, user: Option<String>, password: Option<Secret>) -> Option<Credentials> {
    let user = user?;
    let Some(password) = password else {
        let message = "`calendar.smtp.user` needs a password".into();
        let help =
            "set QUARTERDECK_SMTP_PASSWORD, or name a file that holds it in `calendar.smtp.password_file`";
        from.add_serve_problem("calendar.smtp.user", message, Some(help.into()));
        return None;
    };
    Some(Credentials::new(user, password.expose().to_owned()))
}

fn certificates(from: &mut Reader, path: PathBuf) -> Option<String> {
    let key = "calendar.smtp.ca_file";
    let is_small = std::fs::metadata(&path).is_ok_and(|file| file.len() <= MAX_CA_BYTES);
    match std::fs::read_to_string(&path) {
        Ok(pem) if is_small && pem.contains("BEGIN CERTIFICATE") => Some(pem),
        Ok(_) => {
            from.add_serve_problem(key, format!("`{key}` names a file without certificates in PEM"), None);
            None
        }
        Err(error) => {
            from.add_serve_problem(key, format!("`{key}` names a file that cannot be read: {error}"), None);
            None
        }
    }
}
