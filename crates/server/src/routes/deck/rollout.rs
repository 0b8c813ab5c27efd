//! `POST /api/deck/rollout`: sets the rules by which new sessions get their versions.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use quarterdeck_runtime::Rollout;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::versions::{admin, refused};
use super::{Operator, Shared, operation};
use crate::error::ApiError;
use crate::input;
use crate::routes::openapi::Operation;

/// The rules, tried in this order; the first that fits counts. Versions are named by their digests.
#[derive(JsonSchema)]
#[schemars(rename = "Rollout", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct RolloutShape {
    /// API keys whose requests may name the version in the header `X-Quarterdeck-Version`.
    header_from: Vec<String>,
    claims: Vec<ClaimRuleShape>,
    organisations: Vec<OrganisationRuleShape>,
    /// Parts of all clients, by a stable hash of the client.
    shares: Vec<ShareShape>,
    /// What all others get; null for the artifact that the server was started with.
    rest: Option<String>,
}

/// The same, in which every field may be left out, and versions may be named by the beginning of a digest, or their
/// labels.
#[derive(JsonSchema)]
#[schemars(rename = "RolloutChange", rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RolloutChangeShape {
    #[schemars(default)]
    header_from: Vec<String>,
    #[schemars(default)]
    claims: Vec<ClaimRuleShape>,
    #[schemars(default)]
    organisations: Vec<OrganisationRuleShape>,
    #[schemars(default)]
    shares: Vec<ShareShape>,
    #[schemars(default)]
    rest: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct ClaimRuleShape {
    /// A claim of a verified token: its name, or `name=value`.
    claim: String,
    version: String,
}

#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OrganisationRuleShape {
    organisation: String,
    version: String,
}

#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct ShareShape {
    /// With at most two decimal places.
    #[schemars(range(min = 0.01, max = 100.0), extend("multipleOf" = 0.01))]
    percent: f64,
    version: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct RolloutResult {
    #[schemars(with = "RolloutShape")]
    rollout: Rollout,
}

pub(super) async fn post(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<RolloutResult>, ApiError> {
    let admin = admin(&app)?;
    let rollout: Rollout = input::typed_json(&app, body).await?;
    let rollout = admin.set_rollout(rollout).await.map_err(refused)?;
    operator.record(&app, "set_rollout", json!({ "rollout": rollout }));
    Ok(Json(RolloutResult { rollout }))
}

pub(super) fn describe() -> Operation {
    operation("setRollout", "Set the rollout")
        .description(
            "For new sessions; sessions keep the version that they have. The rules replace those before.",
        )
        .body::<RolloutChangeShape>(&[("header", json!({ "headerFrom": ["ci"] }))])
        .json_response::<RolloutResult>(200, "The rules, with whole digests.", None)
        .errors(&[404, 409])
}
