//! The socket that a server listens on: its own, or one that a service manager holds for it.
//!
//! A socket that systemd listens on (`LISTEN_FDS`, socket activation) outlives the server's process. Connections that arrive
//! while the server is restarted wait in that socket's queue, where they would otherwise be refused.

use std::net::{SocketAddr, TcpListener as StdListener};

use anyhow::{Context, ensure};
use listenfd::ListenFd;
use tokio::net::TcpListener;

/// The socket that was handed to this process, with the address that it listens on.
pub(crate) struct InheritedSocket {
    listener: StdListener,
    pub(crate) address: SocketAddr,
}

impl InheritedSocket {
    /// `None` where no socket was handed over. Child processes do not inherit it, nor the variables that announce it, so this
    /// is called before there are any threads.
    pub(crate) fn take() -> anyhow::Result<Option<Self>> {
        let mut sockets = ListenFd::from_env();
        ensure!(
            sockets.len() <= 1,
            "LISTEN_FDS hands over {} sockets, and the server listens on one\n\
             help: leave one `ListenStream=` in the socket unit",
            sockets.len()
        );
        let taken = sockets.take_tcp_listener(0).context(
            "the socket of LISTEN_FDS is not a TCP socket; give `ListenStream=` of the socket unit an address with a port",
        )?;
        let Some(listener) = taken else { return Ok(None) };
        let address = listener.local_addr().context("the socket of LISTEN_FDS has no address")?;
        Ok(Some(Self { listener, address }))
    }

    fn into_listener(self) -> anyhow::Result<TcpListener> {
        self.listener.set_nonblocking(true)?;
        Ok(TcpListener::from_std(self.listener)?)
    }
}

/// The inherited socket, or a new one at this address.
pub(crate) async fn open(
    inherited: Option<InheritedSocket>,
    address: SocketAddr,
) -> anyhow::Result<TcpListener> {
    if let Some(socket) = inherited {
        return socket.into_listener();
    }
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}; stop what listens there, or choose another address with `--listen`"
        )
    })
}
