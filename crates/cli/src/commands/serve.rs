//! `quarterdeck serve`: builds the server from its parts and runs it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use quarterdeck_agents::text::{Parts as TextParts, Settings as TextSettings, TextAgent};
use quarterdeck_agents::voice::{Parts as VoiceParts, Settings as VoiceSettings, VoiceAgent};
use quarterdeck_agents::{Declare, Prompts};
use quarterdeck_calendar::LocalCalendar;
use quarterdeck_contracts::ChatModel;
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{Orchestrator, Registry, RuntimeParts};
use quarterdeck_server::{
    ApiKey, App, AuditFeed, AuditLogHandle, Identity, Operations, ServerParts, Settings, TokenKey,
    TokenRules, serve,
};
use quarterdeck_store::SqliteStore;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::arguments::serve::ServeOptions;
use crate::config::{self, Config, CookieSecret, Folders, Listing, LoadedConfig, SecureCookie};
use crate::permissions::{self, SecretFile};
use crate::shutdown::ShutdownSignal;
use crate::store_loss::{self, OnStoreLoss};
use crate::terminal::{are_messages_logged, info, report_error};
use crate::{ExitStatus, calendars, data, handler_kinds, live, logs, models, previous_registry, registry, wire};

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
    let Some(opened) = registry::open(&config.folders)? else {
        return Ok(ExitStatus::Problems);
    };
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
    let own = matches!(config.server.cookie_secret, CookieSecret::Own).then(|| SecretFile {
        key: "server.cookie_secret".to_owned(),
        path: data::cookie_secret_file(&config.folders.data),
        is_ours: true,
    });
    named.chain(own).collect()
}

async fn run_server(
    config: Config,
    opened: registry::OpenedRegistry,
    on_loss: OnStoreLoss,
) -> anyhow::Result<()> {
    let registry::OpenedRegistry { registry, replacement } = opened;
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
        feed.record(AuditEvent { event: "registry_replaced".into(), time: SystemTime::now(), fields });
    }
    let knowledge = knowledge(&config.folders)?;
    calendars::warn_about_unlisted(&registry.snapshot(), &config.calendar.calendars);
    let orchestrator = orchestrator(&config, store, feed.clone(), knowledge.clone())?;
    registry.observe_hosts(&orchestrator.host_observer());
    let model = models::chat_model(&config.text)?;
    let prompts = prompts(&config.folders.prompts)?;
    let text = TextAgent::new(TextParts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model: model.clone(),
        prompts: prompts.clone(),
        settings: text_settings(&config.text),
    });
    let voice = VoiceAgent::new(VoiceParts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model: live::live_model(&config.voice).await?,
        prompts,
        settings: voice_settings(&config.voice, &config.limits),
    });
    let settings = settings(&config);
    warn_about_any_host(&settings);
    let app = App::new(ServerParts {
        text: text.clone(),
        voice: Some(voice.clone()),
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        identity: identity(&config)?,
        operations: operations(&config.folders, feed, &registry),
        settings,
    });
    let shutdown = ShutdownSignal::listen();
    banner(&listener, &registry, &*model, voice.model())?;
    if model.name().starts_with("rehearsal") && !are_messages_logged() {
        tokio::spawn(detect_ollama());
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(sweep(orchestrator.clone(), text));
    if let Some(base) = knowledge {
        tasks.spawn(update_knowledge(base, config.folders.clone()));
    }
    serve(app, listener, wait_for_shutdown(shutdown)).await;
    tasks.abort_all();
    orchestrator.save_all();
    audit.flush();
    info("stopped");
    Ok(())
}

fn orchestrator(
    config: &Config,
    store: Arc<SqliteStore>,
    feed: Arc<AuditFeed>,
    knowledge: Option<KnowledgeBase>,
) -> anyhow::Result<Orchestrator> {
    Ok(Orchestrator::new(RuntimeParts {
        policy: config.policy.clone(),
        audit: feed,
        calendar: Some(Arc::new(LocalCalendar::from_config(config.calendar.clone())?)),
        calendar_details_claim: config.calendar_details_claim.clone(),
        knowledge: knowledge.map(|base| Arc::new(base) as _),
        capabilities: handler_kinds::capabilities(),
        present: config.present.clone(),
        ..RuntimeParts::new(store)
    }))
}

fn operations(folders: &Folders, feed: Arc<AuditFeed>, registry: &Registry) -> Operations {
    let trail = AuditLogHandle { feed, path: data::audit_file(&folders.data), node: data::NODE.to_owned() };
    Operations {
        audit: Some(trail),
        change: previous_registry::compare(&folders.tools, &folders.data, registry),
    }
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

async fn update_knowledge(base: KnowledgeBase, folders: Folders) {
    let mut is_first = true;
    loop {
        let (of, at) = (base.clone(), folders.clone());
        let done = tokio::task::spawn_blocking(move || wire::knowledge::update(&of, &at.kb, &at.data)).await;
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

fn prompts(from: &config::Prompts) -> anyhow::Result<Prompts> {
    let config::Prompts::Folder(folder) = from else { return Ok(Prompts::default()) };
    let read = |name: &str, usual: String| {
        let path = folder.join(name);
        match path.is_file() {
            true => std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display())),
            false => Ok(usual),
        }
    };
    let usual = Prompts::default();
    Ok(Prompts { core: read("core.md", usual.core)?, voice: read("voice-behavior.md", usual.voice)? })
}

fn text_settings(text: &config::Text) -> TextSettings {
    TextSettings {
        rounds: text.rounds,
        guide_tokens: text.guide_tokens,
        declare: declare(text.declare),
        ..TextSettings::default()
    }
}

fn voice_settings(voice: &config::Voice, limits: &config::Limits) -> VoiceSettings {
    VoiceSettings {
        calls: limits.calls,
        guide_tokens: voice.guide_tokens,
        declare: declare(voice.declare),
        ..VoiceSettings::default()
    }
}

fn declare(declare: config::Declare) -> Declare {
    match declare {
        config::Declare::All => Declare::All,
        config::Declare::Mode => Declare::Mode,
    }
}

fn settings(config: &Config) -> Settings {
    let server = &config.server;
    Settings {
        origins: server.origins.clone(),
        admin_token: server.admin_token.as_ref().map(|token| token.expose().to_owned()),
        trust_proxy: server.trust_proxy,
        trusted_proxies: server.trusted_proxies.clone(),
        hosts: server.hosts.clone(),
        required: config.auth.required,
        is_loopback: server.listen.ip().to_canonical().is_loopback(),
        max_body_bytes: server.max_body_bytes,
        max_json_depth: server.max_json_depth,
        drain: server.drain,
        max_connections: server.max_connections,
        secure_cookie: match server.secure_cookie {
            SecureCookie::Auto => None,
            SecureCookie::Always => Some(true),
            SecureCookie::Never => Some(false),
        },
        messages_per_minute: config.limits.requests_per_minute_client,
        requests_per_minute: config.limits.requests_per_minute_address,
        streams_per_client: config.limits.streams_per_client,
        streams: config.limits.streams,
        voice_connections: config.limits.calls,
        connections_per_address: config.limits.connections_per_address,
        ..Settings::default()
    }
}

fn warn_about_any_host(settings: &Settings) {
    if settings.takes_any_host() {
        tracing::warn!(
            "requests for any host name are accepted, so a foreign page can point its own name at this server; list the \
             server's names in `server.hosts`"
        );
    }
}

fn identity(config: &Config) -> anyhow::Result<Identity> {
    let secret = config.server.cookie_secret.open(&config.folders.data)?;
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
    voice: &str,
) -> anyhow::Result<()> {
    let snapshot = registry.snapshot();
    let commit = snapshot.commit().unwrap_or("none");
    let address = listener.local_addr()?;
    if are_messages_logged() {
        let (tools, registry, text) = (snapshot.len(), snapshot.version(), model.name());
        tracing::info!(%address, tools, registry, commit, text, voice, "serving");
        return Ok(());
    }
    info(&format!(
        "quarterdeck {} on http://{address}\n  tools     {} in registry {} (commit {commit})\n  text      {}\n  voice     {voice}",
        env!("CARGO_PKG_VERSION"),
        snapshot.len(),
        snapshot.version(),
        model.name(),
    ));
    if model.name().starts_with("rehearsal") {
        info(
            "            the built-in rehearsal model answers; it is not a language model. For a real one, set GEMINI_API_KEY or\n            \
             ANTHROPIC_API_KEY, or QUARTERDECK_TEXT__MODEL with OPENAI_API_KEY or OPENAI_BASE_URL, and start again.",
        );
    }
    if voice == "simulator" {
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

async fn sweep(orchestrator: Orchestrator, text: TextAgent) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        text.evict_idle();
        if let Err(error) = orchestrator.sweep().await {
            tracing::error!(error = %error, "sweep of expired sessions and rows failed");
        }
    }
}

async fn wait_for_shutdown(shutdown: ShutdownSignal) {
    shutdown.wait().await;
    info("stopping: running answers are finished first");
}
