//! Scenarios: what the simulator plays, turn by turn.

mod read;
mod read_step;
mod step;

use std::time::Duration;

pub use quarterdeck_json_fields::FieldError as ScenarioError;
use serde_json::{Map, Value};

pub(super) use self::step::{Behaviour, CallId, Ending, ScriptedCall, Step};

/// A scripted conversation. `docs/SIMULATOR.md` describes every field.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub(super) turns: Vec<ScriptedTurn>,
    pub(super) repeats: bool,
    pub(super) frame_kind: FrameKind,
    /// How long it must be quiet for speech to end.
    pub(super) silence: Option<Duration>,
    pub(super) pace: Pace,
    pub(super) connections: Vec<ConnectionRule>,
    pub(super) disconnects: Vec<Disconnect>,
}

/// Ends a connection in the middle, without a close frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnect {
    /// Which connection of the simulator, counted from 1.
    pub connection: usize,
    pub after: DisconnectAfter,
}

/// When a connection is lost. Frames count from the first after the handshake; control frames do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectAfter {
    /// After that many frames were sent: with 0, right after the handshake.
    Sent(usize),
    /// After that many frames were received. The last of them is processed and not answered.
    Received(usize),
}

impl Scenario {
    /// Parses a scenario.
    ///
    /// # Errors
    ///
    /// The first fault, with its line and field.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        read::scenario(text)
    }

    /// The same scenario with a lost connection.
    #[must_use]
    pub fn with_disconnect(mut self, cut: Disconnect) -> Self {
        self.disconnects.push(cut);
        self
    }

    /// The number of turns.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The turn at a position, which keeps growing when the scenario repeats.
    pub(super) fn turn(&self, position: usize) -> Option<&ScriptedTurn> {
        match self.repeats {
            true => self.turns.get(position.checked_rem(self.turns.len())?),
            false => self.turns.get(position),
        }
    }

    /// The rules for a connection.
    pub(super) fn rules(&self, connection: usize) -> impl Iterator<Item = &ConnectionRule> {
        self.connections.iter().filter(move |rule| rule.nth.is_none_or(|nth| nth == connection))
    }

    pub(super) fn disconnects(&self, connection: usize) -> Vec<DisconnectAfter> {
        let ours = self.disconnects.iter().filter(|it| it.connection == connection).map(|it| it.after);
        ours.chain(self.rules(connection).filter_map(|rule| rule.cut)).collect()
    }
}

#[derive(Debug, Clone)]
pub(super) struct ScriptedTurn {
    pub(super) trigger: TurnTrigger,
    /// What the text that starts it must contain, in lower case.
    pub(super) containing: Option<String>,
    /// The transcript of the user's speech.
    pub(super) heard: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) interruption: Interruption,
    pub(super) end: TurnEnd,
}

impl ScriptedTurn {
    /// What starts it, in words.
    pub(super) fn describe_trigger(&self) -> String {
        match &self.containing {
            Some(text) => format!("{} containing “{text}”", self.trigger.word()),
            None => self.trigger.word().to_owned(),
        }
    }
}

/// What starts a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnTrigger {
    /// Any speech or text.
    Anything,
    Speech,
    Text,
    Content,
    /// The setup, or the end of the turn before it.
    Start,
    /// Answers to open calls that are to be spoken about.
    Answers,
}

impl TurnTrigger {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Anything => "anything",
            Self::Speech => "speech",
            Self::Text => "text",
            Self::Content => "content",
            Self::Start => "start",
            Self::Answers => "answers",
        }
    }
}

/// What happens when the user speaks during a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// It ends; its open calls stay open.
    Keep,
    /// It ends, and its open calls are cancelled.
    Cancel,
    /// It goes on, and the input is kept for the next turn.
    Ignore,
}

/// How a turn ends.
#[derive(Debug, Clone)]
pub(super) enum TurnEnd {
    /// With `turnComplete` and these further fields.
    Complete(Map<String, Value>),
    /// Without a frame.
    Never,
}

/// The kind of the simulator's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Binary,
    Text,
}

/// How audio is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) part: Duration,
    pub(super) parts_per_frame: usize,
    /// How many times faster than it is played; 0 is all at once.
    pub(super) speed: u32,
    /// Whether `turnComplete` waits until the audio has been played.
    pub(super) waits_for_playback: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { part: Duration::from_millis(40), parts_per_frame: 2, speed: 4, waits_for_playback: true }
    }
}

/// A rule for one connection, or for each.
#[derive(Debug, Clone)]
pub(super) struct ConnectionRule {
    pub(super) nth: Option<usize>,
    pub(super) refusal: Option<Refusal>,
    pub(super) setup_delay: Duration,
    pub(super) cut: Option<DisconnectAfter>,
    /// The first turn of a conversation without a handle.
    pub(super) begins_at: Option<usize>,
}

/// How a connection is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// In the handshake.
    Http(u16, String),
    /// In answer to the setup.
    Close(u16, String),
}
