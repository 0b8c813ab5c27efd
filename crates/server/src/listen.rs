//! Connections: accepted within limits, served, and drained at the end.

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
use crate::refused::Refusals;
use crate::routes;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// How large the head of a request may be.
const LARGEST_HEAD: usize = 64 << 10;
/// How many headers it may have.
const MOST_HEADERS: usize = 100;
/// How many bytes may wait in the system before they are sent: a third of a second of audio.
const MOST_UNSENT: u32 = 16 << 10;

/// How long a client may take nothing of what is sent to it before its connection is closed.
#[cfg(target_os = "linux")]
const UNREAD_TIMEOUT: Duration = Duration::from_secs(300);

/// Serves until `stop` ends, then lets answers that are being written finish for as long as the settings say.
pub async fn serve(app: Arc<App>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let router = routes::router(app.clone());
    let room = Arc::new(Semaphore::new(app.settings.max_connections));
    let refusals = Refusals::default();
    let (draining, drain) = watch::channel(false);
    let mut stop = std::pin::pin!(stop);
    app.take_figures();
    let mut figures = std::pin::pin!(app.watch_figures());
    loop {
        // Whoever comes when there is no room waits in the operating system's queue.
        let accepted = tokio::select! {
            () = &mut stop => break,
            () = &mut figures => continue,
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, peer, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let place = match app.admit_connection(peer.ip()) {
            Ok(place) => place,
            Err(_) => {
                refusals.refuse(stream, permit);
                continue;
            }
        };
        let (router, drain) = (router.clone(), drain.clone());
        tokio::spawn(async move {
            connection(router, stream, peer, drain).await;
            drop((permit, place));
        });
    }
    drop(listener);
    app.begin_drain();
    let _ = draining.send(true);
    let most = u32::try_from(app.settings.max_connections).unwrap_or(u32::MAX);
    // A call outlives the connection that it began on.
    let all = async { tokio::join!(room.acquire_many(most), app.end_calls()) };
    if tokio::time::timeout(app.settings.drain, all).await.is_err() {
        let open = app.settings.max_connections - room.available_permits() + app.open_lines();
        tracing::warn!(open, "connections were still open at the end of the drain");
    }
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> io::Result<Accepted> {
    let permit = room.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    suit(&stream)?;
    Ok((stream, peer, permit))
}

/// Words and audio are small, are wanted at once, and can be taken back until they are under way.
fn suit(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // On a slow network the system would hold megabytes, and a person who interrupts would hear them out.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(MOST_UNSENT)?;
    // A client that reads nothing at all does not hold its place, and what waits for it, for ever.
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(UNREAD_TIMEOUT))?;
    Ok(())
}

async fn connection(router: Router, stream: TcpStream, peer: SocketAddr, mut drain: watch::Receiver<bool>) {
    let routes = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        routes.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .half_close(false);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = &mut connection => served,
        () = asked_to_drain(&mut drain) => {
            // What is being answered is answered; nothing new is begun on this connection.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(error = %error, "a connection ended early");
    }
}

/// Waits until the server is about to stop.
async fn asked_to_drain(drain: &mut watch::Receiver<bool>) {
    // A sender that is gone has stopped too.
    let _ = drain.wait_for(|draining| *draining).await;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;

    #[tokio::test]
    async fn what_cannot_be_sent_yet_stays_where_it_can_be_taken_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let page = TcpSocket::new_v4().unwrap();
        page.set_recv_buffer_size(4 << 10).unwrap();
        let _page = page.connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        suit(&stream).unwrap();
        let mut taken = 0;
        while tokio::time::timeout(Duration::from_millis(200), stream.writable()).await.is_ok() {
            taken += stream.try_write(&[0; 1_000]).unwrap_or_default();
        }
        assert!(taken < 64 << 10, "the system has taken {taken} bytes that nobody reads");
    }
}
