//! The imported tools of one server, and whether it still publishes what was imported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quarterdeck_contracts::{PinState, ToolDrift, UpstreamEvent, UpstreamTool};

use super::tools::{LiveTool, LiveTools};
use crate::difference::difference;
use crate::published::{PublishedTool, ToolDigest};

/// What a folder was bound to when it was loaded.
#[derive(Debug)]
pub(crate) struct Pin {
    pub(crate) tool_id: String,
    /// The tool's name at the server.
    pub(crate) name: String,
    pub(crate) digest: ToolDigest,
    /// What the digest was made of, where the folder keeps it.
    pub(crate) published: Option<PublishedTool>,
}

impl Pin {
    /// Whether the server publishes what was imported.
    pub(crate) fn compare(&self, live: &LiveTools) -> Comparison {
        match live.get(&self.name) {
            Some(tool) if tool.digest == self.digest => Comparison::Matches(tool.clone()),
            Some(tool) => Comparison::Drifted(tool.clone()),
            None => Comparison::Missing,
        }
    }
}

/// What comparing a pin has shown.
pub(crate) enum Comparison {
    Matches(Arc<LiveTool>),
    Drifted(Arc<LiveTool>),
    Missing,
}

impl Comparison {
    fn state(&self) -> PinState {
        match self {
            Self::Matches(_) => PinState::Matches,
            Self::Drifted(_) => PinState::Drifted,
            Self::Missing => PinState::Missing,
        }
    }

    fn live(&self) -> Option<&LiveTool> {
        match self {
            Self::Matches(tool) | Self::Drifted(tool) => Some(tool),
            Self::Missing => None,
        }
    }
}

/// The pins of all loaded registries. Several versions of a tool may be loaded; of each tool the last one is shown.
#[derive(Default)]
pub(crate) struct Pins {
    state: Mutex<PinsState>,
}

#[derive(Default)]
struct PinsState {
    pins: Vec<Weak<Pin>>,
    /// The tools that were reported as drifted, each with the digest that was live then.
    reported: BTreeMap<String, Option<ToolDigest>>,
    /// What changed in each tool that has drifted. Probes and scrapers ask often, and a server decides how much there is to
    /// compare.
    differences: BTreeMap<String, KnownDifference>,
}

struct KnownDifference {
    pinned: ToolDigest,
    live: ToolDigest,
    text: Option<String>,
}

impl PinsState {
    fn difference(&mut self, pin: &Pin, live: &LiveTool) -> Option<String> {
        let known = self.differences.get(&pin.tool_id);
        if let Some(known) = known.filter(|known| known.pinned == pin.digest && known.live == live.digest) {
            return known.text.clone();
        }
        let text = pin.published.as_ref().and_then(|imported| difference(imported, &live.tool));
        let (pinned, live) = (pin.digest.clone(), live.digest.clone());
        self.differences.insert(pin.tool_id.clone(), KnownDifference { pinned, live, text: text.clone() });
        text
    }
}

impl Pins {
    pub(crate) fn add(&self, pin: Pin) -> Arc<Pin> {
        let pin = Arc::new(pin);
        let mut state = self.lock();
        state.pins.retain(|known| known.strong_count() > 0);
        state.pins.push(Arc::downgrade(&pin));
        pin
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().pins.iter().all(|pin| pin.strong_count() == 0)
    }

    /// Compares all, and says what is new: a drift that was not reported, or one that is over.
    pub(crate) fn check(&self, live: &LiveTools) -> Vec<UpstreamEvent> {
        let mut events = Vec::new();
        let current = self.current();
        let mut state = self.lock();
        for pin in current.values() {
            let compared = pin.compare(live);
            let live = compared.live();
            let digest = live.map(|tool| tool.digest.clone());
            if !compared.state().is_drift() {
                state.differences.remove(&pin.tool_id);
                if state.reported.remove(&pin.tool_id).is_some() {
                    events.push(UpstreamEvent::Restored { tool_id: pin.tool_id.clone() });
                }
            } else if state.reported.get(&pin.tool_id) != Some(&digest) {
                state.reported.insert(pin.tool_id.clone(), digest.clone());
                events.push(UpstreamEvent::Drifted(ToolDrift {
                    tool_id: pin.tool_id.clone(),
                    name: pin.name.clone(),
                    pinned: pin.digest.to_string(),
                    live: digest.map(Into::into),
                    difference: live.and_then(|live| state.difference(pin, live)),
                }));
            }
        }
        state.reported.retain(|tool_id, _| current.contains_key(tool_id));
        state.differences.retain(|tool_id, _| current.contains_key(tool_id));
        events
    }

    /// For operators. Without a list, nothing was compared yet.
    pub(crate) fn describe(&self, live: Option<&LiveTools>) -> Vec<UpstreamTool> {
        let describe = |pin: &Arc<Pin>| {
            let compared = live.map(|live| pin.compare(live));
            let state = compared.as_ref().map_or(PinState::Unchecked, Comparison::state);
            let live = compared.as_ref().and_then(Comparison::live);
            UpstreamTool {
                tool_id: pin.tool_id.clone(),
                name: pin.name.clone(),
                state,
                pinned: pin.digest.to_string(),
                live: live.map(|tool| tool.digest.to_string()),
                difference: live
                    .filter(|_| state == PinState::Drifted)
                    .and_then(|live| self.lock().difference(pin, live)),
            }
        };
        self.current().values().map(describe).collect()
    }

    /// What the server publishes beyond the imported tools.
    pub(crate) fn not_imported(&self, live: &LiveTools) -> Vec<String> {
        let current = self.current();
        let imported: BTreeSet<&str> = current.values().map(|pin| pin.name.as_str()).collect();
        live.keys().filter(|name| !imported.contains(name.as_str())).cloned().collect()
    }

    /// The last pin of each tool, by its id.
    fn current(&self) -> BTreeMap<String, Arc<Pin>> {
        let pins = self.lock();
        let alive = pins.pins.iter().filter_map(Weak::upgrade);
        alive.map(|pin| (pin.tool_id.clone(), pin)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, PinsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
