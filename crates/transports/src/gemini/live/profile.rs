//! What differs between the families of live models, as data. Nothing else in this crate looks at a model's name.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Of the names of its models, without `models/`.
    pub prefix: &'static str,
    /// The `behavior` that every tool is declared with; without one, the family does not take the field.
    pub behavior: Option<&'static str>,
    pub declarations: Declarations,
    /// Whether a result may say when it is to be spoken about (`scheduling`).
    pub takes_scheduling: bool,
    pub content: Content,
    pub text_during_calls: TextDuringCalls,
    /// Options that it does not take, as pointers into `setup`: with any value, or with this one only.
    pub rejected_options: &'static [(&'static str, Option<bool>)],
}

/// Which forms of declarations are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declarations {
    /// Gemini's own dialect only.
    Native,
    /// That, and JSON Schema for tools of which the dialect would lose something.
    NativeOrJsonSchema,
}

/// What `clientContent` may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// For history, notes and texts of the user, at any time. It interrupts the model, and is the only way to do so
    /// without speech.
    AllSession,
    /// For history before the conversation, which has to be announced in the setup and gets no reply. Texts are sent as
    /// `realtimeInput.text`, and always get one.
    InitialHistory,
}

/// What happens to text while the model waits for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextDuringCalls {
    /// Sent at once: the model listens.
    Send,
    /// Held back until the results: the model does not listen, and might cancel the call.
    Hold,
}

/// Calls do not block where the family allows it, so that the user hears something while a tool runs, and speech does not
/// cancel the call: 3.8 cancels a blocking call on new input, and a booking that was cancelled has usually been made. It
/// is sent explicitly, because the families' defaults differ.
const NON_BLOCKING: Option<&str> = Some("NON_BLOCKING");

/// The families, the newest first: an unknown model is most likely newer still.
const FAMILIES: [Profile; 4] = [
    Profile {
        prefix: "gemini-3.8",
        behavior: NON_BLOCKING,
        declarations: Declarations::NativeOrJsonSchema,
        takes_scheduling: true,
        content: Content::AllSession,
        text_during_calls: TextDuringCalls::Send,
        rejected_options: &[
            ("/generationConfig/thinkingConfig/thinkingLevel", None),
            ("/generationConfig/enableAffectiveDialog", None),
            ("/proactivity/proactiveAudio", Some(false)),
        ],
    },
    // The preview before it: calls block, and there is nothing to choose.
    Profile {
        prefix: "gemini-3.1",
        behavior: None,
        declarations: Declarations::NativeOrJsonSchema,
        takes_scheduling: false,
        content: Content::InitialHistory,
        text_during_calls: TextDuringCalls::Hold,
        rejected_options: &[],
    },
    // Sources disagree about the default of 2.5, so it is sent explicitly.
    FAMILY_2_5,
    // The same models by their names at Vertex.
    Profile { prefix: "gemini-live-2.5", ..FAMILY_2_5 },
];

const FAMILY_2_5: Profile = Profile {
    prefix: "gemini-2.5",
    behavior: NON_BLOCKING,
    declarations: Declarations::NativeOrJsonSchema,
    takes_scheduling: true,
    content: Content::AllSession,
    text_during_calls: TextDuringCalls::Send,
    rejected_options: &[("/generationConfig/thinkingConfig/thinkingLevel", None)],
};

impl Profile {
    /// The profile of a model, by its name.
    pub fn of(model: &str) -> Self {
        let model = model.strip_prefix("models/").unwrap_or(model);
        *FAMILIES.iter().find(|family| model.starts_with(family.prefix)).unwrap_or(&FAMILIES[0])
    }

    /// The `scheduling` of a result, if the family takes it. Never `INTERRUPT`: that would cut off the sentence that is
    /// being spoken.
    pub(super) fn scheduling(&self, is_silent: bool) -> Option<&'static str> {
        self.takes_scheduling.then_some(if is_silent { "SILENT" } else { "WHEN_IDLE" })
    }
}
