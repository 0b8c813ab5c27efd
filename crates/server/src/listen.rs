//! Accepts connections within limits, serves them, and drains them at shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::app::App;
use crate::caller::Peer;
use crate::refusals::Refusals;
use crate::routes;

const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 100;
/// Bytes that may wait in the socket's send buffer: a third of a second of audio.
const MAX_UNSENT_BYTES: u32 = 16 << 10;

/// How long a client may read nothing before its connection is closed.
#[cfg(target_os = "linux")]
const UNREAD_TIMEOUT: Duration = Duration::from_secs(300);

/// Serves until `stop` completes, then drains for at most [`crate::Settings::drain`].
pub async fn serve(app: Arc<App>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let router = routes::router(app.clone());
    let slots = Arc::new(Semaphore::new(app.settings.max_connections));
    let refusals = Refusals::default();
    let (draining, drain) = watch::channel(false);
    let mut stop = std::pin::pin!(stop);
    app.sample_metrics();
    app.evaluate_alarms();
    let mut sampling = std::pin::pin!(app.sample_metrics_periodically());
    loop {
        // Without a free slot, connections wait in the operating system's queue.
        let accepted = tokio::select! {
            () = &mut stop => break,
            () = &mut sampling => continue,
            accepted = accept(&listener, &slots) => accepted,
        };
        let (stream, peer, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let address_permit = match app.admission.admit_connection(peer.ip()) {
            Ok(permit) => permit,
            Err(_) => {
                refusals.refuse(stream, permit);
                continue;
            }
        };
        let (router, drain) = (router.clone(), drain.clone());
        tokio::spawn(async move {
            serve_connection(router, stream, peer, drain).await;
            drop((permit, address_permit));
        });
    }
    drop(listener);
    app.admission.begin_drain();
    if let Some(mcp) = &app.mcp {
        mcp.close();
    }
    let _ = draining.send(true);
    let max = u32::try_from(app.settings.max_connections).unwrap_or(u32::MAX);
    // A call outlives the connection it was upgraded from.
    let all = async { tokio::join!(slots.acquire_many(max), app.end_calls()) };
    if tokio::time::timeout(app.settings.drain, all).await.is_err() {
        let open = app.settings.max_connections - slots.available_permits() + app.admission.open_calls();
        tracing::warn!(open, "connections still open after the drain timeout");
    }
    app.sample_metrics();
    app.charts.save();
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> io::Result<Accepted> {
    let permit = slots.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    configure(&stream)?;
    Ok((stream, peer, permit))
}

/// Sends small writes at once, and keeps unsent audio where it can still be dropped.
fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // On a slow network the kernel would buffer megabytes, which play on after an interruption.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES)?;
    // A client that reads nothing must not hold its slot and its buffers for ever.
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(UNREAD_TIMEOUT))?;
    Ok(())
}

async fn serve_connection(
    router: Router,
    stream: TcpStream,
    peer: SocketAddr,
    mut drain: watch::Receiver<bool>,
) {
    let routes = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        routes.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .half_close(false);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = &mut connection => served,
        () = wait_for_drain(&mut drain) => {
            // The current request is answered; no further one is read.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = %error, "connection ended early");
    }
}

async fn wait_for_drain(drain: &mut watch::Receiver<bool>) {
    // A dropped sender means shutdown too.
    let _ = drain.wait_for(|draining| *draining).await;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;

    #[tokio::test]
    async fn unsent_bytes_stay_out_of_the_send_buffer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4 << 10).unwrap();
        let _client = client.connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        configure(&stream).unwrap();
        let mut taken = 0;
        while tokio::time::timeout(Duration::from_millis(200), stream.writable()).await.is_ok() {
            taken += stream.try_write(&[0; 1_000]).unwrap_or_default();
        }
        assert!(taken < 64 << 10, "the kernel has buffered {taken} unread bytes");
    }
}
