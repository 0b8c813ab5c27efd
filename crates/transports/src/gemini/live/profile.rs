//! What differs between the families of live models, as data. Nothing else in this crate looks at a model's name.

/// How one family of live models is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// How the names of its models begin, `models/` left out.
    pub prefix: &'static str,
    /// The `behavior` that every tool is declared with; without one, the family does not take the field.
    pub behavior: Option<&'static str>,
    /// Whether a result may say when it is to be spoken about (`scheduling`).
    pub schedules: bool,
    /// What `clientContent` is good for.
    pub content: Content,
    /// What happens to text while the model waits for a result.
    pub while_calling: WhileCalling,
    /// Options that it does not take, as pointers into `setup`: with any value, or with this one only.
    pub refuses: &'static [(&'static str, Option<bool>)],
}

/// What `clientContent` is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// For history, notes and what the person writes, all session long. It cuts the model off, which is also the only
    /// way to silence it without a voice.
    AllSession,
    /// For history before the conversation begins, which has to be announced in the setup and asks for nothing. What is
    /// written goes as `realtimeInput.text`, and always asks.
    InitialHistory,
}

/// What happens to text while the model waits for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileCalling {
    /// It is sent: the model listens.
    Flows,
    /// It waits for the results: the model does not listen, and might take the call back.
    Waits,
}

/// Calls do not block where the family lets us choose, so that the person hears something while a tool runs, and
/// speaking into a call does not cancel it: 3.8 takes back a blocking call on new input, and a booking that was taken
/// back has usually been made. It is said explicitly, because the families' defaults differ.
const NON_BLOCKING: Option<&str> = Some("NON_BLOCKING");

/// The families, the newest first: a model that nobody knows is most likely newer still.
const FAMILIES: [Profile; 4] = [
    Profile {
        prefix: "gemini-3.8",
        behavior: NON_BLOCKING,
        schedules: true,
        content: Content::AllSession,
        while_calling: WhileCalling::Flows,
        refuses: &[
            ("/generationConfig/thinkingConfig/thinkingLevel", None),
            ("/generationConfig/enableAffectiveDialog", None),
            ("/proactivity/proactiveAudio", Some(false)),
        ],
    },
    // The preview before it: calls block, and there is nothing to choose.
    Profile {
        prefix: "gemini-3.1",
        behavior: None,
        schedules: false,
        content: Content::InitialHistory,
        while_calling: WhileCalling::Waits,
        refuses: &[],
    },
    // Sources disagree about what 2.5 does unless it is told, so it is told.
    FAMILY_2_5,
    // The same models by their names at Vertex.
    Profile { prefix: "gemini-live-2.5", ..FAMILY_2_5 },
];

const FAMILY_2_5: Profile = Profile {
    prefix: "gemini-2.5",
    behavior: NON_BLOCKING,
    schedules: true,
    content: Content::AllSession,
    while_calling: WhileCalling::Flows,
    refuses: &[("/generationConfig/thinkingConfig/thinkingLevel", None)],
};

impl Profile {
    /// The profile of a model, by its name.
    pub fn of(model: &str) -> Self {
        let model = model.strip_prefix("models/").unwrap_or(model);
        *FAMILIES.iter().find(|family| model.starts_with(family.prefix)).unwrap_or(&FAMILIES[0])
    }

    /// How a result is to be scheduled, if the family takes it. Never `INTERRUPT`: a result is not worth cutting off the
    /// sentence that is being spoken, and the person would hear half of it.
    pub(super) fn scheduling(&self, is_silent: bool) -> Option<&'static str> {
        self.schedules.then_some(if is_silent { "SILENT" } else { "WHEN_IDLE" })
    }
}
