//! A capability that is registered by this test alone, from its declaration to what it commits.

use std::sync::Arc;

use quarterdeck_compiler::{Inspectors, NativeInspector, Options, Stamp, Tree, compile};
use quarterdeck_contracts::handler::{
    BoxFuture, CapabilityCall, CapabilityError, CapabilityProvider, CapabilityRequest, Context, NATIVE_KIND,
    NativeHandler,
};
use quarterdeck_contracts::{
    CapabilitySpec, Mode, Outcome, Store, Table, ToolError, ToolResponse, native_source_hash,
};
use quarterdeck_runtime::{
    Call, Client, Hosts, NativeHost, Orchestrator, Registry, Reply, RuntimeParts, Snapshot,
};
use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::tree;
use serde_json::{Value, json};

const WEATHER: CapabilitySpec = CapabilitySpec::new("weather", "The weather.", &["today", "report"]);
const HANDLER: &str = "pub async fn execute() {}";

struct WeatherProvider;

impl CapabilityProvider for WeatherProvider {
    fn spec(&self) -> CapabilitySpec {
        WEATHER
    }

    fn call(&self, request: CapabilityRequest) -> BoxFuture<Result<Value, CapabilityError>> {
        Box::pin(async move {
            let scope = &request.scope;
            match request.method.as_str() {
                "today" => {
                    Ok(json!({ "in": request.arg(0), "for": scope.client().id, "by": scope.tool_id() }))
                }
                "report" => {
                    scope.require_writes("weather.report")?;
                    scope.overlay().put(Table::Values, "weather", request.arg(0));
                    Ok(Value::Null)
                }
                _ => Err(CapabilityError::not_available(&WEATHER.capability())),
            }
        })
    }
}

async fn execute(args: Value, context: Arc<dyn Context>) -> Result<Value, ToolError> {
    let method = args["method"].as_str().unwrap_or_default().to_owned();
    let call = CapabilityCall { capability: WEATHER.capability(), method, args: vec![json!("Oslo")] };
    Ok(context.request(call).await?)
}

fn snapshot(side_effects: &str) -> Arc<Snapshot> {
    let files = tree("");
    let definition = json!({
        "toolId": "forecast", "version": "1.0.0", "description": "Tells the weather.", "category": "utility",
        "sideEffects": side_effects, "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 500, "capabilities": ["weather"], "availability": { "requires": ["weather"] },
        "parameters": { "type": "object", "additionalProperties": false, "properties": {
            "method": { "type": "string", "description": "Which method." } } },
    });
    files.write("forecast/schema.json", definition.to_string());
    files.write("forecast/guide.md", "# Forecast\n\nTells the weather.\n");
    files.write("forecast/handler.rs", HANDLER);
    let hash = native_source_hash([("handler.rs", HANDLER)]);
    let inspector = NativeInspector::new([("forecast".to_owned(), hash.clone())]);
    let mut options = Options::new(
        Inspectors::default().with(NATIVE_KIND, Arc::new(inspector)),
        Stamp { timestamp: "2026-01-13T09:00:00Z".into(), commit: None },
    );
    options.capabilities.push(WEATHER);
    let compilation = compile(&Tree::read(files.path(), &options.inspectors).unwrap(), &options);
    let artifact = compilation.artifact.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let handler = NativeHandler::new("forecast", Box::leak(hash.into_boxed_str()), execute);
    let hosts = Hosts::default().with(NATIVE_KIND, Arc::new(NativeHost::new([handler])));
    Registry::from_artifact(artifact, files.path(), hosts).unwrap().snapshot()
}

async fn call(parts: RuntimeParts, side_effects: &str, method: &str) -> Arc<ToolResponse> {
    let orchestrator = Orchestrator::new(parts);
    let session =
        orchestrator.open(Client::anonymous("ann"), Mode::Text, snapshot(side_effects)).await.unwrap();
    session.begin_turn(None);
    let call = Call::new("forecast", json!({ "method": method }));
    match session.connect().submit(vec![call]).all().await.remove(0) {
        Reply::Answer(answer) => answer.response.clone(),
        Reply::AwaitingConfirmation { .. } => panic!("the call waits for approval"),
    }
}

fn parts(store: &Arc<MemoryStore>) -> RuntimeParts {
    RuntimeParts { capabilities: vec![Arc::new(WeatherProvider)], ..RuntimeParts::new(store.clone()) }
}

#[tokio::test]
async fn registered_capability_is_answered_by_its_provider() {
    let store = Arc::new(MemoryStore::new());
    let response = call(parts(&store), "none", "today").await;
    let expected = json!({ "in": "Oslo", "for": "ann", "by": "forecast" });
    assert_eq!(response.outcome, Outcome::Success(expected));
    let refused = call(parts(&store), "none", "report").await;
    assert!(json!(*refused).to_string().contains("weather.report needs"), "{refused:?}");
    assert!(call(parts(&store), "writes", "report").await.is_ok());
    let row = store.get(Table::Values, "weather").await.unwrap().unwrap();
    assert_eq!(row.value, "Oslo", "what the provider wrote is committed with the call");
}

#[tokio::test]
async fn capability_without_a_provider_makes_the_tool_unavailable() {
    let response = call(RuntimeParts::new(Arc::new(MemoryStore::new())), "none", "today").await;
    assert!(json!(*response).to_string().contains("UNAVAILABLE"), "{response:?}");
}
