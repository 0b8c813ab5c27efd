//! A bounded pool of connections, and calls that end in time.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use quarterdeck_time_limit::within;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::dedicated::Dedicated;
use crate::error::{ConnectError, DatabaseError};
use crate::settings::PostgresSettings;
use crate::tls;

/// Telling the server to give up on a statement is a courtesy.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// What a call does with its connection.
pub type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send + 'c>>;

/// A database, through a bounded pool. Cheap to clone; the clones share the pool. Everything that awaits needs a tokio
/// runtime.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Pool,
    settings: PostgresSettings,
    tls: MakeRustlsConnect,
    address: String,
}

impl Database {
    /// Makes the pool. Connections are made when they are needed.
    pub fn connect(settings: PostgresSettings) -> Result<Self, ConnectError> {
        let tls = tls::connector(&settings.encryption)?;
        let mut config = settings.config.clone();
        config.connect_timeout(settings.connect_timeout);
        // A look at the connection, not a question to the server: a dead one is found by the statement that it loses.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, tls.clone(), recycling))
            .max_size(settings.pool_size.max(1))
            .create_timeout(Some(settings.whole_connect_timeout()))
            .recycle_timeout(Some(settings.connect_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| ConnectError::Pool(error.to_string()))?;
        let address = settings.address();
        Ok(Self { shared: Arc::new(Shared { pool, settings, tls, address }) })
    }

    /// A connection of the pool, given back when it is dropped. The caller keeps time; [`Database::call`] does it for one statement.
    pub async fn client(&self) -> Result<Object, DatabaseError> {
        self.shared.pool.get().await.map_err(|error| DatabaseError::of_pool(error, &self.shared.address))
    }

    /// Runs a statement, within the time-out for statements. A connection that was lost or ran out of time is thrown away.
    ///
    /// Statements must not leave anything behind in the connection; `query_typed` leaves nothing.
    pub async fn call<T, W>(&self, work: W) -> Result<T, DatabaseError>
    where
        W: for<'c> FnOnce(&'c Client) -> Work<'c, T> + Send,
    {
        let settings = &self.shared.settings;
        self.call_within(settings.wait_timeout, settings.statement_timeout, work).await
    }

    /// The same, with other limits on the wait for a connection and on the statement.
    pub async fn call_within<T, W>(
        &self,
        wait: Duration,
        limit: Duration,
        work: W,
    ) -> Result<T, DatabaseError>
    where
        W: for<'c> FnOnce(&'c Client) -> Work<'c, T> + Send,
    {
        let Ok(client) = within(wait, self.client()).await else {
            return Err(DatabaseError::of_pool(PoolError::Timeout(TimeoutType::Wait), &self.shared.address));
        };
        let client = client?;
        let Ok(result) = within(limit, work(&client)).await else {
            self.cancel(&client);
            drop(Object::take(client));
            let reason = format!("no answer within {} ms", limit.as_millis());
            return Err(DatabaseError::Lost { address: self.shared.address.clone(), reason });
        };
        result.map_err(|error| {
            let error = DatabaseError::of_statement(&error, &self.shared.address);
            if matches!(error, DatabaseError::Lost { .. }) {
                drop(Object::take(client));
            }
            error
        })
    }

    /// A connection of its own, past the pool, which also hears notifications.
    pub async fn dedicated(&self) -> Result<Dedicated, DatabaseError> {
        let Shared { settings, tls, address, .. } = &*self.shared;
        let mut config = settings.direct.clone();
        config.connect_timeout(settings.connect_timeout);
        let connecting = timeout(settings.whole_connect_timeout(), config.connect(tls.clone()));
        match connecting.await {
            Ok(Ok((client, connection))) => Ok(Dedicated::new(client, connection)),
            Ok(Err(error)) => Err(DatabaseError::of_connecting(&error, address)),
            Err(_) => Err(DatabaseError::NoConnection {
                address: address.clone(),
                reason: "it does not answer".to_owned(),
                is_final: false,
            }),
        }
    }

    /// What came of a statement on a connection that [`Database::client`] or [`Database::dedicated`] gave.
    pub fn error_of(&self, error: &tokio_postgres::Error) -> DatabaseError {
        DatabaseError::of_statement(error, &self.shared.address)
    }

    /// Connections of the pool that are in use, and calls that wait for one.
    pub fn pool_use(&self) -> (usize, usize) {
        let status = self.shared.pool.status();
        (status.size.saturating_sub(status.available), status.waiting)
    }

    pub fn settings(&self) -> &PostgresSettings {
        &self.shared.settings
    }

    /// The address without user and password.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    fn cancel(&self, client: &Client) {
        let (token, tls) = (client.cancel_token(), self.shared.tls.clone());
        tokio::spawn(async move { drop(timeout(CANCEL_TIMEOUT, token.cancel_query(tls)).await) });
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Database").field(&self.shared.address).finish()
    }
}
