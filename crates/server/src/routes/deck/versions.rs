//! `/api/deck/versions`: the loaded versions of the registry side by side, loading another one, and retiring one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_contracts::ErrorType;
use quarterdeck_runtime::{
    AllowedDigests, Audience, Bundle, MAX_BUNDLE_BYTES, Rollout, VersionAdmin, VersionCounters, VersionError,
    VersionState, VersionView,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rollout::RolloutShape;
use super::{Operator, Shared, operation};
use crate::app::App;
use crate::error::ApiError;
use crate::input::{self, Id};
use crate::routes::openapi::Operation;
use crate::routes::openapi::envelope::nullable_object;

/// The artifact is deeper in the body than a message of a client may be.
const BUNDLE_JSON_DEPTH: usize = 128;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionList {
    /// The loaded versions, the oldest first.
    versions: Vec<VersionRow>,
    /// Digests of versions that are stored and not loaded, the latest first.
    stored: Vec<String>,
    /// The rules by which new sessions get their versions.
    #[schemars(with = "RolloutShape")]
    rollout: Rollout,
    /// How many versions are loaded at the most; null if they cannot be changed.
    max_loaded: Option<usize>,
    /// The digests that may be loaded; null if any may.
    allowed: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionRow {
    version: String,
    digest: String,
    commit: Option<String>,
    tools: usize,
    /// A retiring version takes no new sessions, and is dropped when its last one ends.
    #[schemars(with = "VersionStateShape")]
    state: VersionState,
    /// Whether the server was started with it.
    is_base: bool,
    /// Whether sessions get it that no rule is about.
    is_rest: bool,
    /// Open sessions of this process.
    sessions: u64,
    #[schemars(with = "VersionCountersShape")]
    counters: VersionCounters,
}

#[derive(JsonSchema)]
#[schemars(inline, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum VersionStateShape {
    Active,
    Retiring,
}

/// Counts since the start; milliseconds and tokens per answer are of the last thousand answers.
#[derive(JsonSchema)]
#[schemars(rename = "VersionCounters", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct VersionCountersShape {
    sessions: u64,
    calls: u64,
    errors: u64,
    refused: u64,
    /// Steps of confirmations: `requested`, `approved`, `denied`, `expired` and others.
    confirmations: BTreeMap<String, u64>,
    /// Ratings of answers that stand: `up` and `down`.
    feedback: BTreeMap<String, u64>,
    average: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    /// Of all answers.
    tokens: u64,
    tokens_average: u64,
    tokens_p95: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "VersionActivation")]
struct ActivationRequest {
    /// The content hash of the artifact, as `quarterdeck build` prints it.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    digest: String,
    /// The artifact with its handlers' files in base64. Left out for a version that is stored.
    #[serde(default)]
    #[schemars(schema_with = "nullable_object")]
    bundle: Option<Value>,
    /// Loads the version and leaves the rollout as it is. Otherwise all new sessions get it.
    #[serde(default)]
    only_load: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct ActivatedVersion {
    version: String,
    digest: String,
    tools: usize,
    #[schemars(with = "RolloutShape")]
    rollout: Rollout,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct RetiredVersion {
    version: String,
    digest: String,
    /// False while sessions have it.
    is_dropped: bool,
}

pub(super) async fn list(State(app): Shared, _: Operator) -> Json<VersionList> {
    let admin = app.operations.versions.as_ref();
    let (sessions, counters) =
        (app.orchestrator.sessions_by_version(), app.orchestrator.metrics().versions());
    let row = |view: VersionView| {
        let snapshot = &view.snapshot;
        VersionRow {
            version: snapshot.version().to_owned(),
            digest: snapshot.content_hash().to_owned(),
            commit: snapshot.commit().map(str::to_owned),
            tools: snapshot.len(),
            state: view.state,
            is_base: view.is_base,
            is_rest: view.is_rest,
            sessions: sessions.get(snapshot.content_hash()).copied().unwrap_or_default(),
            counters: counters.get(snapshot.version()).cloned().unwrap_or_default(),
        }
    };
    Json(VersionList {
        versions: app.registry.versions().into_iter().map(row).collect(),
        stored: admin.map(|admin| admin.stored()).unwrap_or_default(),
        rollout: app.registry.rollout(),
        max_loaded: admin.map(|admin| admin.max_loaded()),
        allowed: admin.and_then(|admin| match admin.allowed() {
            AllowedDigests::Any => None,
            AllowedDigests::Listed(digests) => Some(digests.iter().cloned().collect()),
        }),
    })
}

pub(super) async fn post(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<ActivatedVersion>, ApiError> {
    let admin = admin(&app)?;
    let value = input::json_within(body, MAX_BUNDLE_BYTES, BUNDLE_JSON_DEPTH).await?;
    let request: ActivationRequest = input::typed(value)?;
    let bundle = match request.bundle {
        Some(bundle) => Some(
            super::blocking("bundle not read", move || Ok(Bundle::from_value(bundle)))
                .await?
                .map_err(|error| refused(error.into()))?,
        ),
        None => None,
    };
    let audience = if request.only_load { Audience::Unchanged } else { Audience::Everyone };
    let activated = admin.activate(&request.digest, bundle, audience).await.map_err(refused)?;
    let (version, digest) = (activated.version().to_owned(), activated.content_hash().to_owned());
    let details = json!({ "registryVersion": version, "digest": digest, "onlyLoad": request.only_load });
    operator.record(&app, "activate_version", details);
    let (tools, rollout) = (activated.len(), app.registry.rollout());
    Ok(Json(ActivatedVersion { version, digest, tools, rollout }))
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(name): Id,
) -> Result<Json<RetiredVersion>, ApiError> {
    let retired = admin(&app)?.retire(&name).await.map_err(refused)?;
    let details = json!({ "registryVersion": retired.version, "digest": retired.digest });
    operator.record(&app, "retire_version", details);
    let quarterdeck_runtime::Retired { version, digest, is_dropped } = retired;
    Ok(Json(RetiredVersion { version, digest, is_dropped }))
}

pub(super) fn admin(app: &App) -> Result<Arc<VersionAdmin>, ApiError> {
    app.operations.versions.clone().ok_or_else(|| ApiError::not_found("This server has one version only."))
}

/// The response to a change that was not made.
pub(super) fn refused(error: VersionError) -> ApiError {
    let message = error.to_string();
    match error {
        VersionError::Unknown { .. } | VersionError::NotStored { .. } => ApiError::not_found(message),
        VersionError::Store(_) => ApiError::transient(message, 2),
        VersionError::NotADigest { .. } => ApiError::validation(message),
        // A well-formed request that does not fit what is loaded, or does not fit together.
        _ => ApiError::new(ErrorType::Conflict, message).with_status(StatusCode::CONFLICT),
    }
}

pub(super) fn describe_list() -> Operation {
    operation("listVersions", "List the versions of the registry").json_response::<VersionList>(
        200,
        "The versions.",
        None,
    )
}

pub(super) fn describe_post() -> Operation {
    let digest = "287d0f294a1adbde214ec2740252bbd0e398933917caffac21b1377724247a3a";
    operation("activateVersion", "Activate a version of the registry")
        .description(
            "Loads an artifact beside the others, for new sessions; sessions keep the version that they have. A locked \
             server takes only the digests that it was started with. The body may have 32 MiB.",
        )
        .body::<ActivationRequest>(&[("stored", json!({ "digest": digest }))])
        .json_response::<ActivatedVersion>(200, "The version is loaded.", None)
        .errors(&[404, 409])
}

pub(super) fn describe_delete() -> Operation {
    operation("retireVersion", "Retire a version of the registry")
        .description("It takes no new sessions, and is dropped when its last session ends.")
        .path_id("The version, its digest, or the beginning of it.", "1.0.287d0f29")
        .json_response::<RetiredVersion>(200, "The version takes no new sessions.", None)
        .errors(&[404, 409])
}
