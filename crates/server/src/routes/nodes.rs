//! `/api/nodes`: what nodes ask each other. The guard has verified the signature of each request.
//!
//! None of it is in the description of the API: no client can call it.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use serde::Serialize;

use crate::app::App;
use crate::error::ApiError;
use crate::input;
use crate::nodes::{
    ALIVE_PATH, CALLS_PATH, CallQuestion, CallStatus, FEED_PATH, RELEASE_PATH, ReleaseReply, ReleaseRequest,
};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(ALIVE_PATH, get(alive))
        .route(CALLS_PATH, post(is_in_call))
        .route(FEED_PATH, get(super::deck::follow_own_events))
        .route(RELEASE_PATH, post(release))
}

/// Which process answers.
#[derive(Serialize)]
struct Alive {
    node: String,
    boot: String,
}

/// Says that this process runs. It needs no store: a node whose database is slow is still alive.
async fn alive(State(app): State<Arc<App>>) -> Json<Alive> {
    let of = |what: Option<&str>| what.unwrap_or_default().to_owned();
    let nodes = app.nodes.as_ref();
    Json(Alive { node: of(nodes.map(|nodes| nodes.name())), boot: of(nodes.map(|nodes| nodes.boot())) })
}

/// Says whether a client is connected to a call here.
async fn is_in_call(State(app): State<Arc<App>>, body: Body) -> Result<Json<CallStatus>, ApiError> {
    let CallQuestion { client } = input::typed_json(&app, body).await?;
    let is_in_call = app.voice.as_ref().is_some_and(|voice| voice.is_in_call(&client));
    Ok(Json(CallStatus { is_in_call }))
}

/// Ends the call of a session, so that the node that asks can continue it.
async fn release(State(app): State<Arc<App>>, body: Body) -> Result<Json<ReleaseReply>, ApiError> {
    let ReleaseRequest { session } = input::typed_json(&app, body).await?;
    let is_released = match &app.voice {
        Some(voice) => voice.hand_over(&session).await,
        None => false,
    };
    Ok(Json(ReleaseReply { is_released }))
}
