//! The provider of live models: the simulator in this process, so that it outlives every node.

use std::net::SocketAddr;
use std::sync::Arc;

use quarterdeck_simulator::live::{LiveSimulator, Substitute};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::model::SpokenModel;

pub(crate) struct LiveProvider {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

impl LiveProvider {
    pub(crate) async fn start() -> Self {
        let simulator =
            LiveSimulator::from_chat_model(Arc::new(SpokenModel)).with_substitute(Substitute::Silence);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let simulator = simulator.clone();
                connections.spawn(async move { simulator.serve(stream).await });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, serving }
    }
}

impl Drop for LiveProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
