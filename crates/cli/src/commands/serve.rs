//! `quarterdeck serve`: builds the server from its parts and runs it.

pub(super) mod node;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{Parts as TextParts, TextAgent};
use quarterdeck_agents::voice::{Parts as VoiceParts, VoiceAgent};
use quarterdeck_alerts::{AlarmMessenger, Alarms};
use quarterdeck_calendar::Calendars;
use quarterdeck_contracts::telemetry::Tracer;
use quarterdeck_contracts::{ChatModel, Knowledge, Store};
use quarterdeck_mcp_server::{McpParts, McpServer};
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditSink};
use quarterdeck_runtime::{
    Bundle, BundleFolder, Clock, NodeParts, Orchestrator, RecoveredTasks, Registry, RuntimeParts,
    SystemClock, VersionAdmin,
};
use quarterdeck_server::{
    ApiKey, App, AuditFeed, AuditLogHandle, Identity, LogLevels, Operations, ServerParts, Settings, TokenKey,
    TokenRules, serve,
};
use quarterdeck_transports::Secret;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::alert_webhook::Webhook;
use crate::arguments::serve::ServeOptions;
use crate::commands::mcp::warn_about_servers;
use crate::config::{self, Config, CookieSecret, Folders, Listing, LoadedConfig, Server};
use crate::handler_access::{HandlerAccess, warn_about_grants};
use crate::listening_socket::{self, InheritedSocket};
use crate::models::VoiceModel;
use crate::newer_files::NewerFiles;
use crate::permissions::{self, SecretFile};
use crate::shutdown::ShutdownSignal;
use crate::store_loss::{self, OnStoreLoss};
use crate::telemetry::{ConfiguredTelemetry, RunningTelemetry};
use crate::terminal::{are_messages_logged, info, report_error, warn};
use crate::wire::{FollowedKnowledge, ServedKnowledge, SharedKnowledge};
use crate::{
    ExitStatus, calendars, certificates, data, handler_kinds, local_models, logs, models, previous_registry,
    prompts, registry, resident_code, wire,
};

use node::NodeSecrets;
use watching::{OnChange, Served, Watching};

/// How often idle sessions end, expired rows are deleted and the knowledge base is updated.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Not while the server starts: metrics then calibrate their clock, which keeps a processor busy for some milliseconds.
const FIRST_SWEEP_DELAY: Duration = Duration::from_millis(250);

pub(crate) fn run(options: &ServeOptions) -> anyhow::Result<ExitStatus> {
    let socket = InheritedSocket::take()?;
    let configured = options;
    let options = &listening_on(socket.as_ref(), options);
    let LoadedConfig { config, listing, model_problems, voice_problems } = match Config::load(options) {
        Ok(loaded) => loaded,
        Err(problems) => {
            report_error(&problems.into());
            return Ok(ExitStatus::Problems);
        }
    };
    let telemetry = config.telemetry.settings.as_ref().map(ConfiguredTelemetry::new);
    let (telemetry, log_layer) = telemetry.unzip();
    let levels = logs::start(config.logs, log_layer.flatten()).levels();
    let observation = Observation { levels, telemetry };
    model_problems.texts().for_each(|problem| models::warn_of_rehearsal(&problem));
    voice_problems.texts().for_each(|problem| warn(&problem));
    if let Some(socket) = &socket {
        warn_about_other_address(socket, configured);
    }
    // Before anything is created: a start in the wrong folder leaves it unchanged.
    let tools = &config.folders.tools;
    anyhow::ensure!(
        tools.is_dir(),
        "there is no folder {}\nhelp: start it in the folder that holds your tools, or point `--tools` at it; \
         `quarterdeck new NAME` creates a first tool",
        tools.display()
    );
    data::create(&config.folders.data)?;
    let node = config.node_data();
    let _lock = node.lock()?;
    permissions::check(&node, &secret_files(&config, &listing))?;
    let following = options.watch.then(|| Watching::new(options, &config, &listing)).transpose()?;
    let newer = NewerFiles::served_now(&config.folders, &config::file_of(options));
    let access = HandlerAccess::new(config.grants.clone(), config.mcp.clone());
    let Some(opened) = registry::open(&config.folders, &access)? else {
        return Ok(ExitStatus::Problems);
    };
    match following {
        Some(_) => opened.registry.follow(),
        None => opened.registry.lock(),
    }
    warn_about_grants(&opened.registry.snapshot(), &config.grants);
    warn_about_servers(&config.folders.tools, &config.mcp)?;
    let on_loss = if options.new_store { OnStoreLoss::Accept } else { OnStoreLoss::Refuse };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let on_change = match following {
        Some(watching) => OnChange::Follow(watching),
        None => OnChange::Report(newer),
    };
    runtime.block_on(run_server(config, opened, Start { socket, on_loss, on_change }, observation))?;
    // Handlers that still compute are not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitStatus::Success)
}

/// The files of secrets: those of the configuration, and the generated one.
pub(super) fn secret_files(config: &Config, listing: &Listing) -> Vec<SecretFile> {
    let named = listing.secret_files().map(|(key, path)| SecretFile {
        key: key.to_owned(),
        path: path.into(),
        is_ours: false,
    });
    let is_ours = matches!(config.server.cookie_secret, CookieSecret::Generated) && !config.store.is_shared();
    let generated = is_ours.then(|| SecretFile {
        key: "server.cookie_secret".to_owned(),
        path: data::cookie_secret_file(&config.folders.data),
        is_ours: true,
    });
    named.chain(generated).collect()
}

/// The address of a socket that was handed over counts as `--listen` does: whatever is asked of a server that others can
/// reach is asked of this one too.
fn listening_on(socket: Option<&InheritedSocket>, options: &ServeOptions) -> ServeOptions {
    let address = socket.map(|socket| socket.address.to_string());
    ServeOptions { listen: address.or_else(|| options.listen.clone()), ..options.clone() }
}

/// What an operator sees of a running server, from its start on.
struct Observation {
    levels: Arc<LogLevels>,
    telemetry: Option<ConfiguredTelemetry>,
}

/// Commands of operators look for the server where the configuration says that it listens.
fn warn_about_other_address(socket: &InheritedSocket, options: &ServeOptions) {
    let configured = Config::load(options).map(|loaded| loaded.config.server.listen);
    if let Ok(listen) = configured
        && listen != socket.address
    {
        warn(&format!(
            "`server.listen` is {listen}, and the socket that was handed over, which counts, listens on {}\n\
             help: write the same address in both, so that `quarterdeck health` and other commands find the server",
            socket.address
        ));
    }
}

/// How this start differs from others with the same configuration.
struct Start {
    socket: Option<InheritedSocket>,
    on_loss: OnStoreLoss,
    on_change: OnChange,
}

async fn run_server(
    config: Config,
    opened: registry::OpenedRegistry,
    Start { socket, on_loss, on_change }: Start,
    Observation { levels: log_levels, telemetry }: Observation,
) -> anyhow::Result<()> {
    let telemetry = RunningTelemetry::start(telemetry.as_ref())?;
    let registry::OpenedRegistry { registry, bundle, replacement } = opened;
    let registry = Arc::new(registry);
    let listener = listening_socket::open(socket, config.server.listen).await?;
    let node = config.node_data();
    let store = wire::seal_for_server(store_loss::open(&node, on_loss).await?, &node).await?;
    let audit = Arc::new(wire::open_audit_log(&node, store.clone()).await?);
    let feed = Arc::new(AuditFeed::new(audit.clone()));
    record_replacement(&feed, replacement);
    let knowledge = knowledge(&config, &store).await?;
    warn_about_missing_settings(&config, &registry);
    let searched = knowledge.clone().map(|knowledge| Arc::new(knowledge.base) as _);
    let invitations = wire::invitations(&config.calendar, store.clone())?;
    let calendars = wire::calendars(&config.calendar, invitations.as_ref())?;
    let sources = Sources { calendars, knowledge: searched.clone() };
    let parts = node::parts(&config, config.cluster.address_of(listener.local_addr()?));
    let orchestrator = orchestrator(&config, store, feed.clone(), sources, parts, telemetry.tracer())?;
    let mut tasks = JoinSet::new();
    telemetry.count(&orchestrator, &mut tasks);
    node::join(&orchestrator, &mut tasks).await?;
    registry.observe_hosts(&orchestrator.host_observer());
    let agents = Agents::new(&config, &orchestrator, &registry).await?;
    let operations = operations(&config, feed.clone(), &registry);
    let messenger = watch_alerts(&config, &orchestrator, &mut tasks)?;
    let versions = versions(&config, &orchestrator, &registry, &bundle).await?;
    recover_tasks(&orchestrator, &registry).await?;
    let watch = on_change.open_feed(&registry);
    let (log_levels, held) = (Some(log_levels), Some(versions.clone()));
    let operations = Operations { versions: held, watch: watch.clone(), messenger, log_levels, ..operations };
    let mcp = mcp_server(&config, &orchestrator, &registry, searched);
    let secrets = node::secrets(&config, &**orchestrator.store()).await?;
    let app = app(&config, &agents, &orchestrator, &registry, &mcp, operations, secrets)?;
    let shutdown = ShutdownSignal::listen();
    banner(&listener, &registry, &agents)?;
    node::report(&orchestrator, &config);
    if agents.model.is_rehearsal() {
        tasks.spawn(local_models::offer(app.clone(), listener.local_addr()?));
    }
    let progress = wire::ProgressLines::default();
    node::follow(&orchestrator, &registry, &mut tasks);
    tasks.spawn(sweep(orchestrator.clone(), agents.text.clone(), mcp, versions.clone()));
    invitations.map(|invitations| tasks.spawn(invitations.run()));
    let lines = progress.clone();
    let served = Served { bundle, registry, versions, agents, knowledge, feed, watch, lines };
    let stop = on_change.start(&config, served, &mut tasks)?;
    tasks.spawn(resident_code::release_after_start());
    serve(app, listener, wait_for_shutdown(shutdown)).await;
    tasks.abort_all();
    stop.stop();
    save_and_leave(&orchestrator, &audit, telemetry).await;
    progress.stop();
    info("stopped");
    Ok(())
}

async fn save_and_leave(orchestrator: &Orchestrator, audit: &AuditLog, telemetry: RunningTelemetry) {
    orchestrator.save_all();
    audit.flush();
    node::leave(orchestrator).await;
    telemetry.shut_down().await;
}

/// Sends alarms to the webhook, if there is one, and measures certificates.
fn watch_alerts(
    config: &Config,
    orchestrator: &Orchestrator,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<Option<Arc<dyn AlarmMessenger>>> {
    if !config.alerts.certificates.is_empty() {
        tasks.spawn(certificates::watch(config.alerts.certificates.clone(), orchestrator.clone()));
    }
    let Some(settings) = config.alerts.webhook.clone() else { return Ok(None) };
    let webhook = Webhook::new(settings).context("no client for the webhook of alarms can be made")?;
    let webhook = Arc::new(webhook);
    let sender = webhook.clone();
    tasks.spawn(async move { sender.run().await });
    Ok(Some(webhook))
}

/// Warns of what tools want and the configuration does not have.
fn warn_about_missing_settings(config: &Config, registry: &Registry) {
    calendars::warn_about_unlisted(&registry.snapshot(), &config.calendar.calendars.calendars);
    config::warn_about_missing_lists(&registry.snapshot(), &config.topics);
}

fn mcp_server(
    config: &Config,
    orchestrator: &Orchestrator,
    registry: &Arc<Registry>,
    knowledge: Option<Arc<dyn Knowledge>>,
) -> McpServer {
    let settings = config.mcp_serving.settings.clone();
    McpServer::new(McpParts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        knowledge,
        settings,
    })
}

/// Records that these tools have taken the place of others.
pub(super) fn record_replacement(feed: &AuditFeed, replacement: Option<registry::Replacement>) {
    if let Some(Value::Object(fields)) = replacement.map(|replacement| replacement.to_json()) {
        feed.record(AuditEvent { event: "registry_replaced".into(), time: SystemClock.now(), fields });
    }
}

struct Agents {
    model: Arc<dyn ChatModel>,
    /// Asked when the model fails.
    fallback: Option<Arc<dyn ChatModel>>,
    text: TextAgent,
    voice: VoiceAgent,
    /// What the voice model hears and speaks with.
    engines: Option<String>,
    prompts: Prompts,
}

impl Agents {
    async fn new(
        config: &Config,
        orchestrator: &Orchestrator,
        registry: &Arc<Registry>,
    ) -> anyhow::Result<Self> {
        let model = models::chat_model_or_rehearsal(&config.text.provider)?;
        let fallback = config.text.fallback.as_ref().map(models::chat_model).transpose()?;
        let prompts = prompts::load(config.folders.prompts.as_deref())?;
        let text = TextAgent::new(TextParts {
            orchestrator: orchestrator.clone(),
            registry: registry.clone(),
            model: model.clone(),
            fallback: fallback.clone(),
            prompts: prompts.clone(),
            settings: config.text.settings.clone(),
        });
        let VoiceModel { model: live, engines, question_engines } =
            models::live_model(config, &model).await?;
        let voice = VoiceAgent::new(VoiceParts {
            orchestrator: orchestrator.clone(),
            registry: registry.clone(),
            model: live,
            engines: question_engines,
            prompts: prompts.clone(),
            settings: config.voice.settings.clone(),
        });
        Ok(Self { model, fallback, text, voice, engines, prompts })
    }
}

fn app(
    config: &Config,
    agents: &Agents,
    orchestrator: &Orchestrator,
    registry: &Arc<Registry>,
    mcp: &McpServer,
    operations: Operations,
    secrets: NodeSecrets,
) -> anyhow::Result<Arc<App>> {
    let Server { settings, admin_token, .. } = &config.server;
    if settings.takes_any_host() {
        tracing::warn!(
            "requests for any host name are accepted, so a foreign page can point its own name at this server; list the \
             server's names in `server.hosts`"
        );
    }
    Ok(App::new(ServerParts {
        text: agents.text.clone(),
        voice: Some(agents.voice.clone()),
        mcp: config.mcp_serving.is_on.then(|| mcp.clone()),
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        identity: identity(config, &secrets.cookie)?,
        operations,
        settings: Settings {
            admin_token: admin_token.as_ref().map(|token| token.expose().to_owned()),
            ..settings.clone()
        },
        node_secret: secrets.nodes,
    }))
}

/// What handlers look things up in.
pub(super) struct Sources {
    pub(super) calendars: Calendars,
    pub(super) knowledge: Option<Arc<dyn Knowledge>>,
}

pub(super) fn orchestrator(
    config: &Config,
    store: Arc<dyn Store>,
    feed: Arc<AuditFeed>,
    sources: Sources,
    node: Option<NodeParts>,
    tracer: Tracer,
) -> anyhow::Result<Orchestrator> {
    Ok(Orchestrator::new(RuntimeParts {
        node,
        policy: config.policy.clone(),
        audit: feed,
        calendar: Some(Arc::new(sources.calendars)),
        calendar_details_claim: config.calendar.details_claim.clone(),
        calendar_manage_claim: config.calendar.manage_claim.clone(),
        knowledge: sources.knowledge,
        capabilities: handler_kinds::configured_capabilities(&config.images)?,
        config_keys: config.config_keys.clone(),
        topics: config.topics.clone(),
        tracer,
        ..RuntimeParts::new(store)
    }))
}

fn operations(config: &Config, feed: Arc<AuditFeed>, registry: &Arc<Registry>) -> Operations {
    let node = config.node_data();
    let seal_file = node.config.audit.segments.seal_file.clone();
    let trail = AuditLogHandle { feed, path: node.audit_file(), node: node.chain, seal_file };
    let folders = &config.folders;
    Operations {
        audit: Some(trail),
        history_file: Some(data::history_file(&node.folder)),
        change: previous_registry::compare(&folders.tools, &folders.data, registry),
        upstreams: Some(registry.clone()),
        alarms: Arc::new(Alarms::new(config.alerts.rules.clone())),
        ..Operations::default()
    }
}

/// The versions that were loaded before the restart, beside the one of the start.
pub(super) async fn versions(
    config: &Config,
    orchestrator: &Orchestrator,
    registry: &Arc<Registry>,
    base: &Bundle,
) -> anyhow::Result<Arc<VersionAdmin>> {
    let bundles = BundleFolder::new(data::versions_folder(&config.folders.data), config.versions.max_stored);
    let allowed = config.folders.allowed.clone();
    let max_loaded = config.versions.max_loaded;
    let versions = VersionAdmin::new(registry.clone(), orchestrator.clone(), bundles, allowed, max_loaded);
    versions.keep_base(base);
    versions.restore().await?;
    let current = registry.snapshot();
    if current.content_hash() != base.digest() {
        info(&format!(
            "new sessions get {} as the rollout says, not {} of the tools folder; `quarterdeck registry rollout --rest \
             start` changes that",
            current.version(),
            base.version()
        ));
    }
    let versions = Arc::new(versions);
    versions.follow();
    Ok(versions)
}

/// The last build, searched by words until the model is loaded. In a database there always is one, be it empty: another node
/// may build it.
pub(super) async fn knowledge(
    config: &Config,
    store: &Arc<dyn Store>,
) -> anyhow::Result<Option<ServedKnowledge>> {
    let Config { folders, cluster, .. } = config;
    let limit = folders.max_passages_in_memory;
    if let Some(shared) = SharedKnowledge::open(&config.store, &cluster.node, limit).await? {
        let (base, loaded) = shared.load().await?;
        let followed = FollowedKnowledge { shared, loaded, store: store.clone() };
        return Ok(Some(ServedKnowledge { base, followed: Some(followed) }));
    }
    if folders.kb.is_dir() {
        let base = wire::knowledge::open(&folders.kb, &folders.data)?;
        return Ok(Some(ServedKnowledge { base, followed: None }));
    }
    info(&format!(
        "no knowledge base: there is no folder {}; point `--kb` or `kb.folder` at one that holds records",
        folders.kb.display()
    ));
    Ok(None)
}

pub(super) async fn update_knowledge(
    knowledge: ServedKnowledge,
    folders: Folders,
    progress: wire::ProgressLines,
) {
    let ServedKnowledge { base, followed } = knowledge;
    if let Some(followed) = followed {
        return followed.run(base, folders.kb.as_path().into(), progress).await;
    }
    let mut is_first = true;
    loop {
        let (of, at, lines) = (base.clone(), folders.clone(), progress.clone());
        let update = move || wire::knowledge::update(&of, &at.kb, &at.data, &lines);
        let done = tokio::task::spawn_blocking(update).await;
        if let Ok(Err(error)) = done {
            info(&format!("the knowledge base could not be updated: {error:#}"));
        }
        if std::mem::take(&mut is_first) && base.model().is_none() {
            info(
                "the knowledge base is searched by words; `quarterdeck kb model install pypi` adds search by meaning",
            );
        }
        tokio::time::sleep(SWEEP_INTERVAL).await;
    }
}

fn identity(config: &Config, cookie_secret: &Secret) -> anyhow::Result<Identity> {
    let tokens = config.auth.tokens.as_ref().map(|check| {
        use config::Algorithm;
        let key = match (&check.key, check.algorithm) {
            (config::TokenKey::Shared(secret), _) => TokenKey::Secret(secret.expose().as_bytes()),
            (config::TokenKey::Public(pem), Algorithm::Es256) => TokenKey::Ec(pem.as_bytes()),
            (config::TokenKey::Public(pem), Algorithm::EdDsa) => TokenKey::Ed(pem.as_bytes()),
            (config::TokenKey::Public(pem), _) => TokenKey::Rsa(pem.as_bytes()),
        };
        TokenRules::new(key, check.issuer.as_deref(), check.audience.as_deref())
    });
    let keys = config.auth.api_keys.iter().map(|(name, key)| ApiKey::new(name, key.expose()));
    Ok(Identity::new(cookie_secret.expose().as_bytes(), tokens.transpose()?, keys.collect()))
}

fn banner(listener: &TcpListener, registry: &Registry, agents: &Agents) -> anyhow::Result<()> {
    print_banner(listener, registry, agents)?;
    if let Some(fallback) = &agents.fallback {
        report_fallback(&**fallback);
    }
    Ok(())
}

fn print_banner(listener: &TcpListener, registry: &Registry, agents: &Agents) -> anyhow::Result<()> {
    let (model, voice) = (&*agents.model, &agents.voice);
    let snapshot = registry.snapshot();
    let commit = snapshot.commit().unwrap_or("none");
    let address = listener.local_addr()?;
    let voice_model = voice.model();
    if are_messages_logged() {
        let (tools, registry, text) = (snapshot.len(), snapshot.version(), model.name());
        tracing::info!(%address, tools, registry, commit, text, voice = voice_model, "serving");
        return Ok(());
    }
    info(&format!(
        "quarterdeck {} on http://{address}\n  tools     {} in registry {} (commit {commit})\n  text      {}\n  voice     {voice_model}",
        env!("CARGO_PKG_VERSION"),
        snapshot.len(),
        snapshot.version(),
        model.name(),
    ));
    if let Some(engines) = &agents.engines {
        info(&format!("            {engines}"));
    }
    if model.is_rehearsal() {
        info(
            "            the built-in rehearsal model answers; it is not a language model. For a real one, set OPENAI_API_KEY,\n            \
             GEMINI_API_KEY or ANTHROPIC_API_KEY, or QUARTERDECK_TEXT__MODEL=ollama/NAME, and start again.",
        );
    }
    if !voice.hears() {
        info(&format!(
            "            the built-in simulator answers; it understands text, not speech. {},\n            \
             GEMINI_API_KEY a model that has both; then start again.",
            wire::speech::INSTALL_HINT
        ));
    }
    Ok(())
}

fn report_fallback(fallback: &dyn ChatModel) {
    if are_messages_logged() {
        return tracing::info!(model = fallback.name(), "fallback configured");
    }
    info(&format!("  fallback  {}, when the text model fails", fallback.name()));
}

/// Resumes the background tasks that were running when the server before this one stopped, or reports them as lost.
pub(super) async fn recover_tasks(orchestrator: &Orchestrator, registry: &Registry) -> anyhow::Result<()> {
    let recovered = orchestrator.recover_tasks(registry).await?;
    if recovered != RecoveredTasks::default() {
        tracing::info!(resumed = recovered.resumed, lost = recovered.lost, "background tasks recovered");
    }
    Ok(())
}

async fn sweep(orchestrator: Orchestrator, text: TextAgent, mcp: McpServer, versions: Arc<VersionAdmin>) {
    let first = tokio::time::Instant::now() + FIRST_SWEEP_DELAY;
    let mut ticks = tokio::time::interval_at(first, SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        text.evict_idle();
        mcp.end_idle_sessions();
        if let Err(error) = orchestrator.sweep().await {
            tracing::error!(error = %error, "sweep of expired sessions and rows failed");
        }
        if let Err(error) = versions.drop_unheld().await {
            tracing::error!(error = %error, "retired versions could not be looked at");
        }
    }
}

async fn wait_for_shutdown(shutdown: ShutdownSignal) {
    shutdown.wait().await;
    info("stopping: running answers are finished first");
}
