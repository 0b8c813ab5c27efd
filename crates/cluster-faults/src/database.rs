//! The database servers, and a proxy in front of them for each node.

use std::path::PathBuf;
use std::process::Command;

use quarterdeck_testkit::{PostgresServer, PostgresVersion};

use crate::proxy::Proxy;

const NAME: &str = "load";
/// Room for the server's own files, and for little else.
const SMALL_DISK_BYTES: u64 = 512 << 20;

pub struct Databases {
    pub primary: PostgresServer,
    pub standby: Option<PostgresServer>,
    pub proxies: Vec<Proxy>,
    /// A file system that can be filled up, where the primary's files are on one.
    pub disk: Option<SmallDisk>,
}

/// What the servers are like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Setup {
    #[default]
    One,
    /// With a synchronous standby.
    Two,
    /// On a disk that can be filled up. Needs root.
    SmallDisk,
}

impl Databases {
    /// Nothing where PostgreSQL is not installed, or a file system cannot be mounted, which is said.
    pub async fn start(setup: Setup, nodes: usize) -> Option<Self> {
        let disk = if setup == Setup::SmallDisk { Some(SmallDisk::mount()?) } else { None };
        let parent = disk.as_ref().map_or_else(std::env::temp_dir, |disk| disk.path.clone());
        let settings = ["wal_keep_size=64MB", "max_wal_size=48MB", "min_wal_size=2MB", "max_connections=100"];
        let primary = PostgresServer::start_in(&parent, PostgresVersion::V18, &settings)?;
        primary.execute("postgres", &format!("CREATE DATABASE {NAME}"));
        let standby = (setup == Setup::Two).then(|| primary.start_synchronous_standby());
        let mut proxies = Vec::new();
        for _ in 0..nodes {
            proxies.push(Proxy::start(primary.port()).await);
        }
        Some(Self { primary, standby, proxies, disk })
    }

    /// The address of the database for a node, through its proxy.
    pub fn url(&self, node: usize) -> String {
        let port = self.proxies[node].address.port();
        format!("postgres://qd@127.0.0.1:{port}/{NAME}?sslmode=disable")
    }

    pub fn name(&self) -> &'static str {
        NAME
    }

    /// The primary is lost for good, its standby takes its place and gets a standby of its own.
    pub fn fail_over(&mut self) {
        let Some(standby) = self.standby.take() else { return };
        self.primary.kill();
        standby.promote();
        self.primary = standby;
        for proxy in &self.proxies {
            proxy.lead_to(self.primary.port());
        }
    }

    /// A new standby of the present primary.
    pub fn follow(&mut self) {
        self.standby = Some(self.primary.start_synchronous_standby());
    }
}

/// A small file system in memory.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let path = tempfile::Builder::new().prefix("quarterdeck-disk-").tempdir().unwrap().keep();
        let size = format!("size={SMALL_DISK_BYTES},mode=1777");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self { path });
        }
        drop(std::fs::remove_dir(&path));
        #[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
        {
            eprintln!("SKIPPED: a file system of its own cannot be mounted here; that needs root");
        }
        None
    }

    /// Takes all the room that is left.
    pub fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.path.join("filler")).unwrap();
        let zeros = vec![0; 64 << 10];
        // Until nothing more fits, to the last page.
        while file.write_all(&zeros).is_ok() {}
        while file.write_all(&zeros[..512]).is_ok() {}
    }

    /// Gives it back.
    pub fn clear(&self) {
        std::fs::remove_file(self.path.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.path).output());
        drop(std::fs::remove_dir(&self.path));
    }
}
