//! `quarterdeck mcp serve`: one MCP client at standard input and output. Nothing but messages of the protocol is written to
//! standard output.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use quarterdeck_contracts::sha256;
use quarterdeck_mcp_server::{McpCaller, McpParts, McpServer};
use quarterdeck_runtime::audit::AuditLog;
use quarterdeck_runtime::{Client, Orchestrator, VersionAdmin};
use quarterdeck_server::AuditFeed;
use tokio::task::JoinSet;

use crate::arguments::mcp::McpServeOptions;
use crate::commands::call::signed_in_client;
use crate::commands::serve;
use crate::config::{Config, LoadedConfig};
use crate::handler_access::{HandlerAccess, warn_about_grants};
use crate::mcp_proxy::{self, ProxyTarget};
use crate::shutdown::ShutdownSignal;
use crate::store_loss::{self, OnStoreLoss};
use crate::telemetry::{ConfiguredTelemetry, RunningTelemetry};
use crate::terminal::{count, info, report_error};
use crate::{ExitStatus, calendars, config, data, logs, permissions, registry, wire};

const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

pub(super) fn run(options: &McpServeOptions) -> anyhow::Result<ExitStatus> {
    let serving = options.serving();
    let LoadedConfig { config, listing, .. } = match Config::load(&serving) {
        Ok(loaded) => loaded,
        Err(problems) => {
            report_error(&problems.into());
            return Ok(ExitStatus::Problems);
        }
    };
    let telemetry = config.telemetry.settings.as_ref().map(ConfiguredTelemetry::new);
    let (telemetry, log_layer) = telemetry.unzip();
    logs::start(config.logs, log_layer.flatten());
    if let Some(url) = &options.url {
        return pass_on(&ProxyTarget::new(url, options.key_env.as_deref())?);
    }
    let caller = caller(options)?;
    let tools = &config.folders.tools;
    anyhow::ensure!(
        tools.is_dir(),
        "there is no folder {}\nhelp: point `--tools` at the folder that holds your tools, or start in the folder of the \
         project: MCP clients start their servers elsewhere",
        tools.display()
    );
    data::create(&config.folders.data)?;
    let node = config.node_data();
    let _lock = node.try_lock()?.with_context(|| in_use(&config))?;
    permissions::check(&node, &serve::secret_files(&config, &listing))?;
    let access = HandlerAccess::new(config.grants.clone(), config.mcp.clone());
    let Some(opened) = registry::open(&config.folders, &access)? else {
        return Ok(ExitStatus::Problems);
    };
    opened.registry.lock();
    warn_about_grants(&opened.registry.snapshot(), &config.grants);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve_client(&config, opened, caller, telemetry.as_ref()))?;
    // Handlers that still compute are not waited for, nor is a read of standard input that no line ends.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitStatus::Success)
}

fn pass_on(target: &ProxyTarget) -> anyhow::Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let shutdown = ShutdownSignal::listen().wait();
        mcp_proxy::run(target, tokio::io::stdin(), tokio::io::stdout(), shutdown).await
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitStatus::Success)
}

/// What to do when another process has the data folder.
fn in_use(config: &Config) -> String {
    let mut listen = config.server.listen;
    if listen.ip().is_unspecified() {
        listen.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!(
        "another quarterdeck uses {}: a server, or the one that another MCP client has started\n\
         help: let `quarterdeck serve` run, and pass its address on: `quarterdeck mcp serve --url http://{listen}`",
        config.folders.data.display()
    )
}

/// A client who has signed in, if a flag says so; otherwise the program at the other end, by the name that it gives itself.
fn caller(options: &McpServeOptions) -> anyhow::Result<McpCaller> {
    if let Some(client) = signed_in_client(&options.caller)? {
        return Ok(McpCaller::Known(client));
    }
    Ok(McpCaller::LocalProgram(Arc::new(|name| {
        // Names are any text; ids are not.
        let digest = sha256(format!("MCP client {name}").as_bytes());
        Client::anonymous(format!("mcp_{}", &digest[..32]))
    })))
}

async fn serve_client(
    config: &Config,
    opened: registry::OpenedRegistry,
    caller: McpCaller,
    telemetry: Option<&ConfiguredTelemetry>,
) -> anyhow::Result<()> {
    let shutdown = ShutdownSignal::listen();
    let telemetry = RunningTelemetry::start(telemetry)?;
    let Served { mcp, orchestrator, audit, mut tasks } = start(config, opened, &telemetry).await?;
    tokio::select! {
        served = mcp.serve_lines(caller, tokio::io::stdin(), tokio::io::stdout()) => {
            if let Err(error) = served {
                report_error(&error.into());
            }
        }
        () = shutdown.wait() => {}
    }
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    orchestrator.save_all();
    audit.flush();
    serve::node::leave(&orchestrator).await;
    telemetry.shut_down().await;
    info("stopped");
    Ok(())
}

/// What runs until the client leaves.
struct Served {
    mcp: McpServer,
    orchestrator: Orchestrator,
    audit: Arc<AuditLog>,
    tasks: JoinSet<()>,
}

/// The parts of a server that need no network, on the same data.
async fn start(
    config: &Config,
    opened: registry::OpenedRegistry,
    telemetry: &RunningTelemetry,
) -> anyhow::Result<Served> {
    let registry::OpenedRegistry { registry, bundle, replacement } = opened;
    let registry = Arc::new(registry);
    let node = config.node_data();
    let store = wire::seal_for_server(store_loss::open(&node, OnStoreLoss::Refuse).await?, &node).await?;
    let audit = Arc::new(wire::open_audit_log(&node, store.clone()).await?);
    let feed = Arc::new(AuditFeed::new(audit.clone()));
    serve::record_replacement(&feed, replacement);
    let knowledge = serve::knowledge(config, &store).await?;
    calendars::warn_about_unlisted(&registry.snapshot(), &config.calendar.calendars.calendars);
    config::warn_about_missing_lists(&registry.snapshot(), &config.topics);
    let invitations = wire::invitations(&config.calendar, store.clone())?;
    let calendars = wire::calendars(&config.calendar, invitations.as_ref())?;
    let searched = knowledge.clone().map(|knowledge| Arc::new(knowledge.base) as _);
    let sources = serve::Sources { calendars, knowledge: searched.clone() };
    // Nothing listens here, so no other node can pass a request on.
    let parts = serve::node::parts(config, String::new());
    let orchestrator = serve::orchestrator(config, store, feed, sources, parts, telemetry.tracer())?;
    let mut tasks = JoinSet::new();
    serve::node::join(&orchestrator, &mut tasks).await?;
    registry.observe_hosts(&orchestrator.host_observer());
    let versions = serve::versions(config, &orchestrator, &registry, &bundle).await?;
    serve::recover_tasks(&orchestrator, &registry).await?;
    serve::node::follow(&orchestrator, &registry, &mut tasks);
    if let Some(invitations) = invitations {
        tasks.spawn(invitations.run());
    }
    if let Some(knowledge) = knowledge {
        let lines = wire::ProgressLines::default();
        tasks.spawn(serve::update_knowledge(knowledge, config.folders.clone(), lines));
    }
    let (settings, knowledge) = (config.mcp_serving.settings.clone(), searched);
    info(&format!("serving {} to an MCP client", count(registry.snapshot().len(), "tool")));
    let mcp = McpServer::new(McpParts { orchestrator: orchestrator.clone(), registry, knowledge, settings });
    tasks.spawn(sweep(orchestrator.clone(), mcp.clone(), versions));
    Ok(Served { mcp, orchestrator, audit, tasks })
}

async fn sweep(orchestrator: Orchestrator, mcp: McpServer, versions: Arc<VersionAdmin>) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        mcp.end_idle_sessions();
        if let Err(error) = orchestrator.sweep().await {
            tracing::error!(error = %error, "sweep of expired sessions and rows failed");
        }
        if let Err(error) = versions.drop_unheld().await {
            tracing::error!(error = %error, "retired versions could not be looked at");
        }
    }
}
