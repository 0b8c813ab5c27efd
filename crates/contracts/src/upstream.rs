//! MCP servers elsewhere whose tools are imported, as operators see them, and what happens with them.
//!
//! Everything that such a server says of itself (its name, its version, what changed in a tool) is foreign text: it is shown
//! to operators as text, and never to a model.

use std::time::Duration;

use serde::Serialize;

/// Lists the upstream servers. A host implements it; the deck, the readiness probe and the metrics read it.
pub trait UpstreamMonitor: Send + Sync {
    /// Every server that is configured, by name. It answers from what is known and must return at once.
    fn list(&self) -> Vec<UpstreamView>;
}

/// An upstream server at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpstreamView {
    /// The name in the configuration.
    pub name: String,
    /// How it is reached.
    pub transport: UpstreamTransport,
    /// The program or the URL, without arguments, query or credentials.
    pub address: String,
    /// Whether it can be called.
    pub state: UpstreamState,
    /// When that state began, in milliseconds since 1970.
    pub since_ms: u64,
    /// Why it is not connected, or null. Foreign text, shortened.
    pub trouble: Option<String>,
    /// What the server says of itself, since it was connected for the first time.
    pub server: Option<UpstreamServer>,
    /// How often the connection was made again after it was lost.
    pub restarts: u64,
    /// Calls that were sent to it.
    pub calls: u64,
    /// Calls of these without a usable answer: lost, too late, or no valid message.
    pub failures: u64,
    /// Requests of the server that were refused.
    pub refused_requests: u64,
    /// The imported tools, by id.
    pub tools: Vec<UpstreamTool>,
    /// Names of the tools that it publishes and that were not imported. No model sees them.
    pub not_imported: Vec<String>,
}

/// How an upstream server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UpstreamTransport {
    /// A process of this machine.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// Whether an upstream server can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UpstreamState {
    /// Not connected yet, because nothing needed it.
    Idle,
    /// The first connection is being made.
    Connecting,
    /// It answers.
    Connected,
    /// The connection was lost or could not be made, and is tried again. Calls fail at once.
    Disconnected,
}

/// What a server says of itself. Foreign text, shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpstreamServer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The revision of MCP that is spoken with it.
    pub protocol_version: String,
}

/// An imported tool, and whether the server still publishes what was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpstreamTool {
    /// The tool here.
    pub tool_id: String,
    /// Its name at the server.
    pub name: String,
    /// The result of the last comparison.
    pub state: PinState,
    /// The digest that was imported.
    pub pinned: String,
    /// The digest that the server publishes; null while that is unknown or the tool is missing.
    pub live: Option<String>,
    /// What changed, for people: lines that begin with `+`, `-` or a space. Null unless the tool has drifted. Foreign text.
    pub difference: Option<String>,
}

/// Whether a server publishes a tool as it was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PinState {
    /// The server has not been asked yet.
    Unchecked,
    /// It does.
    Matches,
    /// It publishes something else under this name. The tool is UNAVAILABLE.
    Drifted,
    /// It does not publish the tool any more. The tool is UNAVAILABLE.
    Missing,
}

/// Something that happened with an upstream server, for [`HostEvent::Upstream`](crate::handler::HostEvent::Upstream).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamEvent {
    /// It was connected for the first time.
    Connected(UpstreamServer),
    /// The connection was lost, or could not be made.
    Lost {
        /// Why. Foreign text, shortened.
        reason: String,
        /// When it is tried again.
        retry_after: Duration,
    },
    /// It was connected again.
    Restarted {
        /// What it says of itself this time.
        server: UpstreamServer,
        /// How often that has happened.
        restarts: u64,
    },
    /// The server publishes a tool otherwise than it was imported, or not at all. Reported once for each live digest, not
    /// with every list.
    Drifted(ToolDrift),
    /// A tool that had drifted is published as imported again, or what changed was accepted.
    Restored {
        /// The tool here.
        tool_id: String,
    },
    /// The server asked for something that it may not have.
    Refused(RefusedRequest),
    /// A call has ended. Counted and not audited: the call itself is.
    Called {
        /// How.
        outcome: UpstreamOutcome,
        /// How long it took.
        duration: Duration,
    },
}

/// What a server changed in a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDrift {
    /// The tool here.
    pub tool_id: String,
    /// Its name at the server.
    pub name: String,
    /// The digest that was imported.
    pub pinned: String,
    /// The digest that the server publishes; `None` if it does not publish the tool any more.
    pub live: Option<String>,
    /// As in [`UpstreamTool::difference`].
    pub difference: Option<String>,
}

/// A request of an upstream server that is refused unless it is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusedRequest {
    /// A question to the user.
    Elicitation,
    /// A question to the model.
    Sampling,
    /// The list of folders it may use.
    Roots,
    /// Anything else. What it is called is the server's word, so it is no label.
    Other,
}

impl RefusedRequest {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Elicitation, Self::Sampling, Self::Roots, Self::Other];

    /// The word of metrics and of the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
            Self::Other => "other",
        }
    }
}

/// How a call to an upstream server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpstreamOutcome {
    /// With a result.
    Answered,
    /// With an error of the tool's or of the protocol.
    Error,
    /// Not within its time.
    TimedOut,
    /// Given up by the caller.
    Cancelled,
    /// The connection was lost under way: what the call has done is unknown.
    Lost,
    /// With something that is no valid answer, or beyond a limit.
    Invalid,
    /// Not sent: the server is down, or the tool has drifted.
    Unavailable,
}

impl UpstreamOutcome {
    /// The word of metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Error => "error",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
        }
    }

    /// Whether the call was sent, so that it counts in [`UpstreamView::calls`].
    pub fn is_sent(self) -> bool {
        self != Self::Unavailable
    }

    /// Whether it counts in [`UpstreamView::failures`]: there was no usable answer, and not because of the caller.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::TimedOut | Self::Lost | Self::Invalid)
    }
}

impl UpstreamView {
    /// Whether tools here need the server and cannot have it: it is down although something was imported from it.
    pub fn is_missed(&self) -> bool {
        self.state == UpstreamState::Disconnected && !self.tools.is_empty()
    }

    /// The tools that are not published as they were imported.
    pub fn drifted(&self) -> impl Iterator<Item = &UpstreamTool> {
        self.tools.iter().filter(|tool| tool.state.is_drift())
    }
}

impl PinState {
    /// Whether the tool is out of service because of what the server publishes.
    pub fn is_drift(self) -> bool {
        matches!(self, Self::Drifted | Self::Missing)
    }
}
