//! Takes the events of handler hosts to what records them.

use std::sync::Arc;

use quarterdeck_contracts::handler::{HostEvent, HostObserver};

use crate::orchestrator::Orchestrator;
use crate::upstream_events::UpstreamRecorder;

impl Orchestrator {
    /// An observer that logs and audits what happens in hosts, for [`crate::Registry::observe_hosts`].
    pub fn host_observer(&self) -> Arc<dyn HostObserver> {
        Arc::new(HostEventRecorder { upstreams: UpstreamRecorder::new(self.shared().clone()) })
    }
}

struct HostEventRecorder {
    upstreams: UpstreamRecorder,
}

impl HostObserver for HostEventRecorder {
    fn observe(&self, event: HostEvent) {
        if let HostEvent::Upstream { server, event } = event {
            self.upstreams.observe(&server, event);
        }
    }
}
