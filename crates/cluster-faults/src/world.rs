//! Everything that a fault is injected into: the providers, the outside world, the database and the nodes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use quarterdeck_store::SqliteStore;

use crate::checker::{Counts, Evidence, Violation, check, count};
use crate::client::Surroundings;
use crate::clock;
use crate::database::{Databases, Setup};
use crate::ledger::Ledger;
use crate::live::LiveProvider;
use crate::load::{Load, LoadSize};
use crate::model::TextProvider;
use crate::node::{Launch, Node, program};
use crate::outside::Outside;
use crate::site::Site;

/// Where the nodes keep what they keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A file: one node.
    Sqlite,
    /// Three nodes on a database.
    Postgres(Setup),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldOptions {
    pub engine: Engine,
    pub nodes: usize,
    /// Connections of one node to the database; nothing for the default.
    pub pool: Option<usize>,
    /// Whether the clock of the last node can be set.
    pub has_clock: bool,
}

impl WorldOptions {
    pub fn file() -> Self {
        Self { engine: Engine::Sqlite, nodes: 1, pool: None, has_clock: false }
    }

    pub fn cluster() -> Self {
        Self { engine: Engine::Postgres(Setup::One), nodes: 3, pool: None, has_clock: false }
    }
}

pub struct World {
    pub nodes: Vec<Node>,
    pub outside: Outside,
    pub databases: Option<Databases>,
    site: Arc<Site>,
    _providers: (TextProvider, LiveProvider),
}

/// What a run came to.
pub struct Outcome {
    pub counts: Counts,
    pub violations: Vec<Violation>,
    /// Nodes that did not end well when they were asked to.
    pub troubles: Vec<String>,
    pub of: Arc<Surroundings>,
}

impl World {
    /// Starts all of it. Nothing where something is not installed that it needs, which is said.
    pub async fn start(options: WorldOptions) -> Option<Self> {
        let library = if options.has_clock { Some(clock::library()?) } else { None };
        let databases = match options.engine {
            Engine::Sqlite => None,
            Engine::Postgres(setup) => Some(Databases::start(setup, options.nodes).await?),
        };
        let outside = Outside::start().await;
        let providers = (TextProvider::start().await, LiveProvider::start().await);
        let site = Arc::new(Site::new(outside.address));
        let common = Common {
            program: program(),
            site: site.clone(),
            text: providers.0.address,
            live: providers.1.address,
        };
        let common = Arc::new(common);
        let mut nodes = Vec::new();
        for index in 0..options.nodes {
            let url = databases.as_ref().map(|databases| databases.url(index));
            let clock = library.clone().filter(|_| index + 1 == options.nodes);
            nodes.push(Node::new(
                &format!("n{}", index + 1),
                launch(common.clone(), url, options.pool, clock),
            ));
        }
        let mut world = Self { nodes, outside, databases, site, _providers: providers };
        world.set_clock(0);
        // The first one makes what all of them share.
        world.nodes[0].start();
        world.nodes.iter_mut().skip(1).for_each(Node::spawn);
        world.nodes.iter_mut().for_each(Node::wait_until_up);
        Some(world)
    }

    /// Sets the clock of the node that has one of its own.
    pub fn set_clock(&self, seconds: i64) {
        clock::set(&self.site.path("clock"), seconds);
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    pub fn load(&self, size: LoadSize) -> Load {
        Load::start(self.addresses(), size)
    }

    /// Lets the load finish, stops the nodes, and compares what clients were told with what is there.
    pub async fn judge(mut self, load: Load) -> Outcome {
        let of = load.finish().await;
        let troubles: Vec<String> = self.nodes.iter_mut().filter_map(|node| node.stop().err()).collect();
        let ledger = match &self.databases {
            Some(databases) => Ledger::of_database(&databases.primary, databases.name()),
            None => {
                let path = self.site.path("n1").join("quarterdeck.db");
                Ledger::of_file(&SqliteStore::open(path).unwrap()).await
            }
        };
        let evidence = Evidence {
            asks: of.journal.asks(),
            strays: of.journal.strays(),
            effects: self.outside.effects(),
            calls: ledger.calls,
            values: ledger.values,
        };
        Outcome { counts: count(&evidence), violations: check(&evidence), troubles, of }
    }
}

/// What all nodes are started with.
struct Common {
    program: PathBuf,
    site: Arc<Site>,
    text: SocketAddr,
    live: SocketAddr,
}

fn launch(of: Arc<Common>, url: Option<String>, pool: Option<usize>, clock: Option<PathBuf>) -> Launch {
    Arc::new(move |name, address| {
        let mut command = Command::new(&of.program);
        command.current_dir(of.site.path("."));
        command.args(["serve", "--listen", &address.to_string(), "--kb", "no-kb"]);
        command.args(["--config", "quarterdeck.toml", "--tools", "tools", "--data", name]);
        command.env("XDG_CACHE_HOME", of.site.path(name));
        let mut set = |key: &str, value: String| {
            command.env(format!("QUARTERDECK_{key}"), value);
        };
        set("TEXT__PROVIDER", "openai".into());
        set("TEXT__BASE_URL", format!("http://{}/v1", of.text));
        set("TEXT__MODEL", "load".into());
        set("VOICE__BASE_URL", format!("http://{}", of.live));
        set("LIMITS__REQUESTS_PER_MINUTE_CLIENT", "100000".into());
        set("LIMITS__REQUESTS_PER_MINUTE_ADDRESS", "1000000".into());
        set("LIMITS__CONNECTIONS_PER_ADDRESS", "10000".into());
        set("SERVER__DRAIN_SECONDS", "5".into());
        if let Some(url) = &url {
            set("STORE__URL", url.clone());
            set("CLUSTER__NODE", name.into());
        }
        if let Some(pool) = pool {
            set("STORE__POOL_SIZE", pool.to_string());
        }
        if let Some(library) = &clock {
            clock::follow(&mut command, library, &of.site.path("clock"));
        }
        command
    })
}
