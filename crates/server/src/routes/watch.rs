//! `GET /api/watch`: what has become of saved files, for pages of this machine while the server follows its folders.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::sync::watch::Receiver;

use super::openapi::{Media, Operation};
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::origin::Origin;
use crate::stream::feed_body::{KEEP_ALIVE_INTERVAL, Next, NextEvent, respond};
use crate::stream::write_json;
use crate::watch_feed::{WatchFeed, WatchStatus};

const STREAM: &str = "\
data: {\"registry\":\"1.0.287d0f29\",\"reloads\":1,\"changes\":[\"~ kb_search changed\",\"    the handler changed\"],\
\"problems\":[]}\n\n";

/// What a caller may be told of saved files: source lines are in it, so only this machine's own pages and programs are.
pub(super) fn feed_for<'a>(app: &'a App, caller: &Caller) -> Option<&'a WatchFeed> {
    let is_this_machine = caller.source.is_direct && caller.source.address.is_loopback();
    app.operations.watch.as_ref().filter(|_| is_this_machine && !app.settings.has_proxy())
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let is_own = Origin::of(&headers, "/api/watch", &app.settings) == Origin::Own;
    let Some(receiver) = feed_for(&app, &caller).filter(|_| is_own).map(WatchFeed::follow) else {
        return Err(ApiError::not_found(
            "Saved files are reported to pages of this machine, by a server that was started with `--watch`.",
        ));
    };
    let permit = app.admission.admit_live_feed()?;
    Ok(respond(wait(app, receiver), permit))
}

fn wait(app: Arc<App>, mut receiver: Receiver<Arc<WatchStatus>>) -> NextEvent {
    Box::pin(async move {
        let mut out = Vec::new();
        tokio::select! {
            changed = receiver.changed() => match changed {
                Ok(()) => {
                    let status = receiver.borrow_and_update().clone();
                    write_json(&mut out, &*status);
                }
                Err(_) => return Next::Stop,
            },
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => out.extend_from_slice(b": keep-alive\n\n"),
            () = app.admission.wait_for_drain() => return Next::Stop,
        }
        Next::Send(out, wait(app, receiver))
    })
}

pub(super) fn describe() -> Operation {
    Operation::new("followWatch", "operation", "Follow saved files")
        .description(
            "Server-sent events without end, only of a server that was started with `--watch`, and only for this \
             machine: what is live at once, and again after each save.",
        )
        .response(200, "The events.", vec![Media::events::<WatchStatus>(STREAM)])
        .errors(&[404])
}
