//! Accepts connections within limits, serves them, and drains them at shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};

use crate::app::App;
use crate::caller::Peer;
use crate::refusals::Refusals;
use crate::routes;

const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 100;
/// How long a connection without a request is kept open at shutdown. It was accepted a moment ago, so its request is on the way.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// How long answers that do not end by themselves have to end at the end of the drain, so that what was said is stored.
const STOPPED_TURNS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long after the start alarms are evaluated for the first time.
const FIRST_ALARMS_AFTER: Duration = Duration::from_millis(200);
/// Bytes that may wait in the socket's send buffer: a third of a second of audio.
const MAX_UNSENT_BYTES: u32 = 16 << 10;

/// How long a client may read nothing before its connection is closed.
#[cfg(target_os = "linux")]
const UNREAD_TIMEOUT: Duration = Duration::from_secs(300);

/// Serves until `stop` completes, then drains for at most [`crate::Settings::drain`].
///
/// What was accepted is answered, and nothing is accepted any more: if another process holds the socket too, connections
/// wait there for the next server.
pub async fn serve(app: Arc<App>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let router = routes::router(app.clone());
    let slots = Arc::new(Semaphore::new(app.settings.max_connections));
    let refusals = Refusals::default();
    let (draining, drain) = watch::channel(false);
    let mut stop = std::pin::pin!(stop);
    app.sample_metrics();
    tokio::spawn(evaluate_alarms_first(app.clone()));
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
    drain_connections(&app, &slots).await;
    app.sample_metrics();
    app.deck.charts.save();
}

/// After the first requests, and on a thread of its own: the clock of the exporter calibrates itself for some milliseconds.
async fn evaluate_alarms_first(app: Arc<App>) {
    tokio::time::sleep(FIRST_ALARMS_AFTER).await;
    let _ = tokio::task::spawn_blocking(move || app.evaluate_alarms()).await;
}

/// Waits for connections and calls. Answers that are still written towards the end are stopped, which stores what was said.
async fn drain_connections(app: &App, slots: &Semaphore) {
    let max = u32::try_from(app.settings.max_connections).unwrap_or(u32::MAX);
    // A call outlives the connection it was upgraded from.
    let mut all = std::pin::pin!(async { tokio::join!(slots.acquire_many(max), app.end_calls()) });
    let stopping = STOPPED_TURNS_TIMEOUT.min(app.settings.drain / 2);
    if tokio::time::timeout(app.settings.drain - stopping, &mut all).await.is_ok() {
        return;
    }
    app.text.stop_turns();
    if tokio::time::timeout(stopping, all).await.is_err() {
        let open = app.settings.max_connections - slots.available_permits() + app.admission.open_calls();
        tracing::warn!(open, "connections still open after the drain timeout");
    }
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
    let first_request = Arc::new(FirstRequest::default());
    let seen = first_request.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        seen.record();
        request.extensions_mut().insert(Peer(peer));
        routes.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        // A frame of a token is three short pieces, which are copied together in less time than the system takes for a list of them.
        .writev(false)
        .half_close(false);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = &mut connection => served,
        () = wait_for_drain(&mut drain) => {
            tokio::select! {
                // hyper closes a connection that has not sent anything yet, which would refuse its request.
                () = first_request.wait() => {}
                served = &mut connection => return report_end(served),
            }
            // The current request is answered; no further one is read.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    report_end(served);
}

fn report_end(served: hyper::Result<()>) {
    if let Err(error) = served {
        tracing::debug!(error = %error, "connection ended early");
    }
}

/// Whether a connection has sent a request.
#[derive(Default)]
struct FirstRequest {
    is_here: AtomicBool,
    arrived: Notify,
}

impl FirstRequest {
    fn record(&self) {
        if !self.is_here.swap(true, Ordering::Relaxed) {
            self.arrived.notify_one();
        }
    }

    /// Waits for it, but not for long.
    async fn wait(&self) {
        let _ = tokio::time::timeout(FIRST_REQUEST_TIMEOUT, self.arrived.notified()).await;
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
