//! Which server takes our mail, and how it is spoken to.

use std::fmt;
use std::net::IpAddr;

use jiff::tz::TimeZone;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, TlsParameters};

/// How the connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encryption {
    /// From the first byte, on port 465.
    Tls,
    /// The connection is upgraded before anything of worth is sent, on port 587. A server that cannot is not used.
    #[default]
    StartTls,
    /// For a server on this machine, on port 25.
    None,
}

#[derive(Debug, Clone)]
pub struct SmtpConfig {
    pub host: String,
    /// The usual port of the encryption, if none is named.
    pub port: Option<u16>,
    pub encryption: Encryption,
    /// User and password. They do not print themselves.
    pub credentials: Option<Credentials>,
    /// Who the messages are from: `Calendar <calendar@example.com>`.
    pub from: String,
    /// Certificates in PEM that are trusted beside the web's own, for a server with one of its organisation.
    pub ca_pem: Option<String>,
    /// IANA name of the zone in which the text of a message tells its time.
    pub time_zone: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SmtpConfigError {
    #[error("{0:?} is not the name of a mail server; write it like mail.example.com")]
    Host(String),
    #[error("mail travels unencrypted to a server on loopback only; use TLS or STARTTLS")]
    Unencrypted,
    #[error("{0:?} is not an e-mail address; write it like `Calendar <calendar@example.com>`")]
    From(String),
    #[error("{0:?} is not a known IANA time zone; write it like Europe/Berlin")]
    TimeZone(String),
    #[error("the certificates are not in PEM")]
    Certificates,
    #[error("TLS could not be set up")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// A checked [`SmtpConfig`].
pub(crate) struct MailServer {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) encryption: Encryption,
    pub(crate) tls: TlsParameters,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) from: Mailbox,
}

impl fmt::Debug for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailServer")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl SmtpConfig {
    /// Says what is wrong with it, before a server starts with it.
    pub fn validate(&self) -> Result<(), SmtpConfigError> {
        self.check().map(|_| ())
    }

    pub(crate) fn check(&self) -> Result<MailServer, SmtpConfigError> {
        let host = self.host.trim().to_owned();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
        if host.is_empty() || host.len() > 253 || !host.chars().all(is_name) {
            return Err(SmtpConfigError::Host(host));
        }
        if self.encryption == Encryption::None && !is_loopback(&host) {
            return Err(SmtpConfigError::Unencrypted);
        }
        if TimeZone::get(&self.time_zone).is_err() {
            return Err(SmtpConfigError::TimeZone(self.time_zone.clone()));
        }
        let from: Mailbox = self.from.parse().map_err(|_| SmtpConfigError::From(self.from.clone()))?;
        let mut tls = TlsParameters::builder(host.clone());
        if let Some(pem) = &self.ca_pem {
            let certificate = Certificate::from_pem(pem.as_bytes());
            tls = tls.add_root_certificate(certificate.map_err(|_| SmtpConfigError::Certificates)?);
        }
        let usual_port = match self.encryption {
            Encryption::Tls => 465,
            Encryption::StartTls => 587,
            Encryption::None => 25,
        };
        Ok(MailServer {
            host,
            port: self.port.unwrap_or(usual_port),
            encryption: self.encryption,
            tls: tls.build_rustls().map_err(SmtpConfigError::Tls)?,
            credentials: self.credentials.clone(),
            from,
        })
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(host: &str, encryption: Encryption) -> SmtpConfig {
        SmtpConfig {
            host: host.into(),
            port: None,
            encryption,
            credentials: Some(Credentials::new("user".into(), "mail-password".into())),
            from: "Calendar <calendar@example.com>".into(),
            ca_pem: None,
            time_zone: "UTC".into(),
        }
    }

    #[test]
    fn mail_travels_unencrypted_on_loopback_only() {
        for host in ["localhost", "127.0.0.1", "::1"] {
            assert_eq!(config(host, Encryption::None).check().unwrap().port, 25, "{host}");
        }
        for host in ["mail.example.com", "10.0.0.1", "localhost.example.com"] {
            let refused = config(host, Encryption::None).check();
            assert!(matches!(refused, Err(SmtpConfigError::Unencrypted)), "{host}");
        }
        assert_eq!(config("mail.example.com", Encryption::StartTls).check().unwrap().port, 587);
        assert_eq!(config("mail.example.com", Encryption::Tls).check().unwrap().port, 465);
    }

    #[test]
    fn what_cannot_be_a_server_or_a_sender_is_refused() {
        for host in ["", "mail example", "mail.example.com/x", "m\r\nRCPT"] {
            assert!(
                matches!(config(host, Encryption::Tls).check(), Err(SmtpConfigError::Host(_))),
                "{host:?}"
            );
        }
        let from = SmtpConfig { from: "calendar".into(), ..config("localhost", Encryption::None) };
        assert!(matches!(from.check(), Err(SmtpConfigError::From(_))));
    }

    #[test]
    fn the_password_is_not_printed() {
        let config = config("localhost", Encryption::None);
        let text = format!("{config:?} {:?}", config.check().unwrap());
        assert!(!text.contains("mail-password"), "{text}");
    }
}
