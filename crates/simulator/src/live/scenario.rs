//! What the simulator plays, turn by turn.

mod read;
mod read_step;
mod step;

use std::time::Duration;

use serde_json::{Map, Value};

pub(super) use self::step::{Behaviour, CallId, Ending, ScriptedCall, Step};

/// A conversation that somebody has written down beforehand. `docs/SIMULATOR.md` has every field.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub(super) turns: Vec<ScriptedTurn>,
    pub(super) repeats: bool,
    pub(super) form: Form,
    /// How long it must be quiet for speech to be over.
    pub(super) silence: Option<Duration>,
    pub(super) pace: Pace,
    pub(super) connections: Vec<ConnectionRule>,
    pub(super) cuts: Vec<Disconnect>,
}

/// What is wrong with a scenario, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {field}: {problem}")]
pub struct ScenarioError {
    /// Counted from 1.
    pub line: usize,
    /// The way to the field, such as `turns[2].steps[0].say`.
    pub field: String,
    /// What is wrong there, and what would be right.
    pub problem: String,
}

/// A connection that is cut in the middle, without a close frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnect {
    /// Which connection of the simulator, counted from 1.
    pub connection: usize,
    /// When.
    pub after: DisconnectAfter,
}

/// When a connection is cut. Frames count from the first after the handshake; pings and their kind do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectAfter {
    /// Once that many frames have gone out: with 0, right after the handshake.
    Sent(usize),
    /// Once that many frames have come in. The last of them is taken note of and not answered.
    Received(usize),
}

impl Scenario {
    /// Reads a scenario, or says what is wrong with it first of all.
    ///
    /// # Errors
    ///
    /// The first fault, with its line and field.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        read::scenario(text)
    }

    /// The same, with a connection cut.
    #[must_use]
    pub fn with_disconnect(mut self, cut: Disconnect) -> Self {
        self.cuts.push(cut);
        self
    }

    /// How many turns it has.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The turn at a position, which goes on growing when the scenario repeats.
    pub(super) fn turn(&self, position: usize) -> Option<&ScriptedTurn> {
        match self.repeats {
            true => self.turns.get(position.checked_rem(self.turns.len())?),
            false => self.turns.get(position),
        }
    }

    /// What is special about a connection.
    pub(super) fn rules(&self, connection: usize) -> impl Iterator<Item = &ConnectionRule> {
        self.connections.iter().filter(move |rule| rule.nth.is_none_or(|nth| nth == connection))
    }

    /// When a connection is cut.
    pub(super) fn cuts(&self, connection: usize) -> Vec<DisconnectAfter> {
        let ours = self.cuts.iter().filter(|cut| cut.connection == connection).map(|cut| cut.after);
        ours.chain(self.rules(connection).filter_map(|rule| rule.cut)).collect()
    }
}

/// One turn.
#[derive(Debug, Clone)]
pub(super) struct ScriptedTurn {
    pub(super) begins: Begins,
    /// What must be in the text that begins it, in any case of letters.
    pub(super) containing: Option<String>,
    /// The transcript of what the person said.
    pub(super) heard: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) interruption: Interruption,
    pub(super) end: TurnEnd,
}

impl ScriptedTurn {
    /// What it waits for, in words.
    pub(super) fn wanted(&self) -> String {
        match &self.containing {
            Some(text) => format!("{} containing “{text}”", self.begins.word()),
            None => self.begins.word().to_owned(),
        }
    }
}

/// What begins a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// Somebody says or writes something.
    Anything,
    Speech,
    Text,
    Content,
    /// Nothing: it follows the setup, or the turn before it.
    Start,
    /// Calls that were left open are answered, and the model is to say something about it.
    Answers,
}

impl Begins {
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

/// What happens when the person speaks into a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// It ends; its open calls stay open.
    Keep,
    /// It ends, and its open calls are cancelled.
    Cancel,
    /// It goes on, and what was said waits.
    Ignore,
}

/// How a turn ends.
#[derive(Debug, Clone)]
pub(super) enum TurnEnd {
    /// With `turnComplete`, and with this beside it.
    Complete(Map<String, Value>),
    /// Not at all, as far as the client can see.
    Never,
}

/// In which frames the simulator speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Binary,
    Text,
}

/// How audio goes out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) part: Duration,
    pub(super) parts_per_frame: usize,
    /// How many times faster than it is heard; 0 is all at once.
    pub(super) speed: u32,
    /// Whether a turn is complete once it was heard, or at once.
    pub(super) is_heard: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { part: Duration::from_millis(40), parts_per_frame: 2, speed: 4, is_heard: true }
    }
}

/// What is special about one connection, or about each.
#[derive(Debug, Clone)]
pub(super) struct ConnectionRule {
    pub(super) nth: Option<usize>,
    pub(super) refusal: Option<Refusal>,
    pub(super) setup_delay: Duration,
    pub(super) cut: Option<DisconnectAfter>,
    /// Where a conversation begins that goes on with no handle.
    pub(super) begins_at: Option<usize>,
}

/// How a connection is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// By the handshake.
    Http(u16, String),
    /// In answer to the setup.
    Close(u16, String),
}
