//! One conversation with a mail server. Every recipient has an outcome of their own.

use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::Mechanism;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::timeout;

use crate::config::{Encryption, MailServer};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// For a whole conversation.
pub(crate) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// The server need not know what our machine is called.
const HELLO_NAME: &str = "localhost";

/// What came of a message for one recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Accepted,
    /// The server will never take it.
    Refused,
    /// It may take it later.
    Deferred,
}

/// Why a message was delivered to none. The text holds no address and nothing that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MailError {
    pub(crate) message: &'static str,
    /// The code of the server's answer, if it is one.
    pub(crate) code: Option<u16>,
}

impl MailServer {
    /// Sends one message to several recipients; their outcomes are in the same order.
    pub(crate) async fn deliver(&self, to: &[Address], message: &[u8]) -> Result<Vec<Delivery>, MailError> {
        match timeout(DELIVERY_TIMEOUT, self.converse(to, message)).await {
            Ok(result) => result,
            Err(_) => Err(MailError { message: "the mail server took too long", code: None }),
        }
    }

    async fn converse(&self, to: &[Address], message: &[u8]) -> Result<Vec<Delivery>, MailError> {
        let mut connection = self.connect().await?;
        let result = self.transact(&mut connection, to, message).await;
        // Says goodbye, also after a failure.
        connection.abort().await;
        result
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, MailError> {
        let hello = ClientId::Domain(HELLO_NAME.into());
        let wrapped = (self.encryption == Encryption::Tls).then(|| self.tls.clone());
        let address = (self.host.as_str(), self.port);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(address, Some(CONNECT_TIMEOUT), &hello, wrapped, None)
                .await
                .map_err(failed("no connection to the mail server"))?;
        if self.encryption == Encryption::StartTls {
            if !connection.can_starttls() {
                connection.abort().await;
                let message = "the mail server does not offer STARTTLS; nothing was sent";
                return Err(MailError { message, code: None });
            }
            let upgraded = connection.starttls(self.tls.clone(), &hello).await;
            upgraded.map_err(failed("the connection to the mail server could not be encrypted"))?;
        }
        if let Some(credentials) = &self.credentials {
            let authenticated = connection.auth(&[Mechanism::Plain, Mechanism::Login], credentials).await;
            authenticated.map_err(failed("the mail server refused user and password"))?;
        }
        Ok(connection)
    }

    async fn transact(
        &self,
        connection: &mut AsyncSmtpConnection,
        to: &[Address],
        message: &[u8],
    ) -> Result<Vec<Delivery>, MailError> {
        let begun = connection.command(Mail::new(Some(self.from.email.clone()), Vec::new())).await;
        begun.map_err(failed("the mail server refused the sender"))?;
        let mut deliveries = Vec::with_capacity(to.len());
        for address in to {
            let answer = connection.command(Rcpt::new(address.clone(), Vec::new())).await;
            deliveries.push(match answer {
                Ok(_) => Delivery::Accepted,
                Err(error) if error.is_permanent() => Delivery::Refused,
                Err(error) if error.is_transient() => Delivery::Deferred,
                Err(error) => return Err(failed("the connection to the mail server broke")(error)),
            });
        }
        if !deliveries.contains(&Delivery::Accepted) {
            return Ok(deliveries);
        }
        connection.command(Data).await.map_err(failed("the mail server refused the message"))?;
        match connection.message(message).await {
            Ok(_) => Ok(deliveries),
            Err(error) if error.is_permanent() => {
                tracing::warn!(code = code(&error), "mail server refused an invitation");
                Ok(vec![Delivery::Refused; to.len()])
            }
            Err(error) => Err(failed("the mail server did not take the message")(error)),
        }
    }
}

fn failed(message: &'static str) -> impl Fn(Error) -> MailError {
    move |error| MailError { message, code: code(&error) }
}

fn code(error: &Error) -> Option<u16> {
    error.status().map(u16::from)
}
