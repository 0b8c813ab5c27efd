//! `quarterdeck serve`: builds the server from its parts and runs it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::{Parts as TextParts, TextAgent};
use quarterdeck_agents::voice::{Parts as VoiceParts, VoiceAgent};
use quarterdeck_calendar::Calendars;
use quarterdeck_contracts::{ChatModel, Knowledge, Store};
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{
    Bundle, BundleFolder, Clock, Orchestrator, RecoveredTasks, Registry, RuntimeParts, SystemClock,
    VersionAdmin,
};
use quarterdeck_server::{
    ApiKey, App, AuditFeed, AuditLogHandle, Identity, Operations, ServerParts, Settings, TokenKey,
    TokenRules, serve,
};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::arguments::serve::ServeOptions;
use crate::config::{self, Config, CookieSecret, Folders, Listing, LoadedConfig, Server};
use crate::handler_access::{HandlerAccess, warn_about_grants};
use crate::permissions::{self, SecretFile};
use crate::shutdown::ShutdownSignal;
use crate::store_loss::{self, OnStoreLoss};
use crate::terminal::{are_messages_logged, info, report_error};
use crate::{ExitStatus, calendars, data, handler_kinds, logs, models, previous_registry, registry, wire};

/// How often idle sessions end, expired rows are deleted and the knowledge base is updated.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &ServeOptions) -> anyhow::Result<ExitStatus> {
    let LoadedConfig { config, listing } = match Config::load(options) {
        Ok(loaded) => loaded,
        Err(problems) => {
            report_error(&problems.into());
            return Ok(ExitStatus::Problems);
        }
    };
    logs::start(config.logs);
    // Before anything is created: a start in the wrong folder leaves it unchanged.
    let tools = &config.folders.tools;
    anyhow::ensure!(
        tools.is_dir(),
        "there is no folder {}\nhelp: start it in the folder that holds your tools, or point `--tools` at it; \
         `quarterdeck new NAME` creates a first tool",
        tools.display()
    );
    data::create(&config.folders.data)?;
    let _lock = data::lock(&config.folders.data)?;
    permissions::check(&config.folders.data, &secret_files(&config, &listing))?;
    let access = HandlerAccess::new(config.grants.clone());
    let Some(opened) = registry::open(&config.folders, &access)? else {
        return Ok(ExitStatus::Problems);
    };
    warn_about_grants(&opened.registry.snapshot(), &config.grants);
    let on_loss = if options.new_store { OnStoreLoss::Accept } else { OnStoreLoss::Refuse };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_server(config, opened, on_loss))?;
    // Handlers that still compute are not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitStatus::Success)
}

/// The files of secrets: those of the configuration, and the generated one.
fn secret_files(config: &Config, listing: &Listing) -> Vec<SecretFile> {
    let named = listing.secret_files().map(|(key, path)| SecretFile {
        key: key.to_owned(),
        path: path.into(),
        is_ours: false,
    });
    let generated = matches!(config.server.cookie_secret, CookieSecret::Generated).then(|| SecretFile {
        key: "server.cookie_secret".to_owned(),
        path: data::cookie_secret_file(&config.folders.data),
        is_ours: true,
    });
    named.chain(generated).collect()
}

async fn run_server(
    config: Config,
    opened: registry::OpenedRegistry,
    on_loss: OnStoreLoss,
) -> anyhow::Result<()> {
    let registry::OpenedRegistry { registry, bundle, replacement } = opened;
    let registry = Arc::new(registry);
    let address = config.server.listen;
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}; stop what listens there, or choose another address with `--listen`"
        )
    })?;
    let store = store_loss::open(&config.folders.data, on_loss).await?;
    let audit = Arc::new(wire::open_audit_log(&config.folders.data, store.clone()).await?);
    let feed = Arc::new(AuditFeed::new(audit.clone()));
    if let Some(Value::Object(fields)) = replacement.map(|replacement| replacement.to_json()) {
        feed.record(AuditEvent { event: "registry_replaced".into(), time: SystemClock.now(), fields });
    }
    let knowledge = knowledge(&config.folders)?;
    calendars::warn_about_unlisted(&registry.snapshot(), &config.calendar.calendars.calendars);
    config::warn_about_missing_lists(&registry.snapshot(), &config.topics);
    let searched = knowledge.clone().map(|base| Arc::new(base) as _);
    let invitations = wire::invitations(&config.calendar, store.clone())?;
    let calendars = wire::calendars(&config.calendar, invitations.as_ref())?;
    let sources = Sources { calendars, knowledge: searched };
    let orchestrator = orchestrator(&config, store, feed.clone(), sources)?;
    registry.observe_hosts(&orchestrator.host_observer());
    let agents = Agents::new(&config, &orchestrator, &registry).await?;
    let operations = operations(&config.folders, feed, &registry);
    let versions = versions(&config, &orchestrator, &registry, &bundle).await?;
    recover_tasks(&orchestrator, &registry).await?;
    let operations = Operations { versions: Some(versions.clone()), ..operations };
    let app = app(&config, &agents, &orchestrator, &registry, operations)?;
    let shutdown = ShutdownSignal::listen();
    banner(&listener, &registry, &*agents.model, &agents.voice)?;
    if agents.model.is_rehearsal() && !are_messages_logged() {
        tokio::spawn(detect_ollama());
    }
    let mut tasks = JoinSet::new();
    let progress = wire::ProgressLines::default();
    tasks.spawn(sweep(orchestrator.clone(), agents.text, versions));
    if let Some(invitations) = invitations {
        tasks.spawn(invitations.run());
    }
    if let Some(base) = knowledge {
        tasks.spawn(update_knowledge(base, config.folders.clone(), progress.clone()));
    }
    serve(app, listener, wait_for_shutdown(shutdown)).await;
    tasks.abort_all();
    orchestrator.save_all();
    audit.flush();
    progress.stop();
    info("stopped");
    Ok(())
}

struct Agents {
    model: Arc<dyn ChatModel>,
    text: TextAgent,
    voice: VoiceAgent,
}

impl Agents {
    async fn new(
        config: &Config,
        orchestrator: &Orchestrator,
        registry: &Arc<Registry>,
    ) -> anyhow::Result<Self> {
        let model = models::chat_model(&config.text.provider)?;
        let prompts = prompts(config.folders.prompts.as_deref())?;
        let text = TextAgent::new(TextParts {
            orchestrator: orchestrator.clone(),
            registry: registry.clone(),
            model: model.clone(),
            prompts: prompts.clone(),
            settings: config.text.settings.clone(),
        });
        let voice = VoiceAgent::new(VoiceParts {
            orchestrator: orchestrator.clone(),
            registry: registry.clone(),
            model: models::live_model(&config.voice.provider).await?,
            prompts,
            settings: config.voice.settings.clone(),
        });
        Ok(Self { model, text, voice })
    }
}

fn app(
    config: &Config,
    agents: &Agents,
    orchestrator: &Orchestrator,
    registry: &Arc<Registry>,
    operations: Operations,
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
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        identity: identity(config)?,
        operations,
        settings: Settings {
            admin_token: admin_token.as_ref().map(|token| token.expose().to_owned()),
            ..settings.clone()
        },
    }))
}

/// What handlers look things up in.
struct Sources {
    calendars: Calendars,
    knowledge: Option<Arc<dyn Knowledge>>,
}

fn orchestrator(
    config: &Config,
    store: Arc<dyn Store>,
    feed: Arc<AuditFeed>,
    sources: Sources,
) -> anyhow::Result<Orchestrator> {
    Ok(Orchestrator::new(RuntimeParts {
        policy: config.policy.clone(),
        audit: feed,
        calendar: Some(Arc::new(sources.calendars)),
        calendar_details_claim: config.calendar.details_claim.clone(),
        calendar_manage_claim: config.calendar.manage_claim.clone(),
        knowledge: sources.knowledge,
        capabilities: handler_kinds::configured_capabilities(&config.images)?,
        config_keys: config.config_keys.clone(),
        topics: config.topics.clone(),
        ..RuntimeParts::new(store)
    }))
}

fn operations(folders: &Folders, feed: Arc<AuditFeed>, registry: &Registry) -> Operations {
    let trail = AuditLogHandle { feed, path: data::audit_file(&folders.data), node: data::NODE.to_owned() };
    Operations {
        audit: Some(trail),
        change: previous_registry::compare(&folders.tools, &folders.data, registry),
        versions: None,
    }
}

/// The versions that were loaded before the restart, beside the one of the start.
async fn versions(
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
    Ok(Arc::new(versions))
}

/// The last build, searched by words until the model is loaded.
fn knowledge(folders: &Folders) -> anyhow::Result<Option<KnowledgeBase>> {
    if folders.kb.is_dir() {
        return wire::knowledge::open(&folders.kb, &folders.data).map(Some);
    }
    info(&format!(
        "no knowledge base: there is no folder {}; point `--kb` or `kb.folder` at one that holds records",
        folders.kb.display()
    ));
    Ok(None)
}

async fn update_knowledge(base: KnowledgeBase, folders: Folders, progress: wire::ProgressLines) {
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

fn prompts(folder: Option<&Path>) -> anyhow::Result<Prompts> {
    let mut prompts = Prompts::default();
    for (name, prompt) in [("core.md", &mut prompts.core), ("voice-behavior.md", &mut prompts.voice)] {
        if let Some(path) = folder.map(|folder| folder.join(name)).filter(|path| path.is_file()) {
            *prompt =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        }
    }
    Ok(prompts)
}

fn identity(config: &Config) -> anyhow::Result<Identity> {
    let secret = config.server.cookie_secret.load(&config.folders.data)?;
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
    Ok(Identity::new(secret.expose().as_bytes(), tokens.transpose()?, keys.collect()))
}

fn banner(
    listener: &TcpListener,
    registry: &Registry,
    model: &dyn ChatModel,
    voice: &VoiceAgent,
) -> anyhow::Result<()> {
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
    if model.is_rehearsal() {
        info(
            "            the built-in rehearsal model answers; it is not a language model. For a real one, set GEMINI_API_KEY or\n            \
             ANTHROPIC_API_KEY, or QUARTERDECK_TEXT__MODEL with OPENAI_API_KEY or OPENAI_BASE_URL, and start again.",
        );
    }
    if voice.is_rehearsal() {
        info(
            "            the built-in simulator answers; it understands text, not speech. For a real model, set GEMINI_API_KEY\n            \
             and start again.",
        );
    }
    Ok(())
}

async fn detect_ollama() {
    let connect = TcpStream::connect(("127.0.0.1", 11434));
    if matches!(tokio::time::timeout(Duration::from_millis(300), connect).await, Ok(Ok(_))) {
        info(
            "hint: a model server listens on port 11434, as Ollama does. To use it, start again with\n      \
             OPENAI_BASE_URL=http://127.0.0.1:11434/v1 QUARTERDECK_TEXT__MODEL=NAME",
        );
    }
}

/// Resumes the background tasks that were running when the server before this one stopped, or reports them as lost.
async fn recover_tasks(orchestrator: &Orchestrator, registry: &Registry) -> anyhow::Result<()> {
    let recovered = orchestrator.recover_tasks(registry).await?;
    if recovered != RecoveredTasks::default() {
        tracing::info!(resumed = recovered.resumed, lost = recovered.lost, "background tasks recovered");
    }
    Ok(())
}

async fn sweep(orchestrator: Orchestrator, text: TextAgent, versions: Arc<VersionAdmin>) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        text.evict_idle();
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
