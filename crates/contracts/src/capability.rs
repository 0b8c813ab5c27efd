//! Capabilities: what a handler may use beyond its arguments. Each has a name and methods.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a capability, as `schema.json` declares it and handlers use it: `kb`, `store`.
///
/// The set is open. A build takes the names of the [`CapabilitySpec`]s that it is given, and a call is answered by the
/// provider that is registered under the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capability(Cow<'static, str>);

#[expect(missing_docs, reason = "their specs describe them")]
impl Capability {
    pub const KB: Self = built_in::KB.capability();
    pub const CALENDAR: Self = built_in::CALENDAR.capability();
    pub const IMAGES: Self = built_in::IMAGES.capability();
    pub const STORE: Self = built_in::STORE.capability();
    pub const TOOLS: Self = built_in::TOOLS.capability();
    pub const MODERATION: Self = built_in::MODERATION.capability();
    pub const MESSAGING: Self = built_in::MESSAGING.capability();
}

impl Capability {
    /// A capability by its name.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name in `schema.json`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether every handler has it without declaring it.
    pub fn is_always_granted(&self) -> bool {
        self.built_in().is_some_and(|spec| spec.is_always_granted)
    }

    /// Whether what it answers may hold text that neither the user nor this server wrote. One that is not built in is
    /// taken to.
    pub fn has_foreign_text(&self) -> bool {
        self.built_in().is_none_or(|spec| spec.has_foreign_text)
    }

    fn built_in(&self) -> Option<&'static CapabilitySpec> {
        BUILT_IN_CAPABILITIES.iter().find(|spec| spec.name == self.as_str())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Describes a capability to what must know it without running it: the compiler, editors, hosts of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapabilitySpec {
    /// The name in `schema.json`.
    pub name: &'static str,
    /// One sentence for tool authors; editors show it.
    pub description: &'static str,
    /// How scripts reach it. Capabilities that are part of every context have no methods.
    pub methods: Methods,
    /// See [`Capability::is_always_granted`].
    pub is_always_granted: bool,
    /// See [`Capability::has_foreign_text`].
    pub has_foreign_text: bool,
    /// What an operator does to have it, where a server may be without it.
    pub remedy: Option<&'static str>,
}

/// The methods of a capability, as scripts call them on their `context`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Methods {
    /// It is part of every context and answers no requests.
    None,
    /// A member of `context` with these methods: `context.kb.search(…)`.
    Object(&'static str, &'static [&'static str]),
    /// A function of `context` that stands for one method: `context.callTool(…)` for `call`.
    Function(&'static str, &'static str),
}

impl CapabilitySpec {
    /// A capability that a tool must declare, with methods on a member of its own name.
    pub const fn new(
        name: &'static str,
        description: &'static str,
        methods: &'static [&'static str],
    ) -> Self {
        let methods = Methods::Object(name, methods);
        Self { name, description, methods, is_always_granted: false, has_foreign_text: true, remedy: None }
    }

    const fn own(name: &'static str, description: &'static str, methods: Methods) -> Self {
        Self { name, description, methods, is_always_granted: false, has_foreign_text: false, remedy: None }
    }

    const fn always(name: &'static str, methods: Methods) -> Self {
        let description = "Always there; need not be declared.";
        Self { name, description, methods, is_always_granted: true, has_foreign_text: false, remedy: None }
    }

    const fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// The name, for requests.
    pub const fn capability(&self) -> Capability {
        Capability::new(self.name)
    }
}

/// The capabilities of this runtime that a provider answers for.
#[expect(missing_docs, reason = "each has its description")]
pub mod built_in {
    use super::{CapabilitySpec, Methods};

    pub const KB: CapabilitySpec =
        CapabilitySpec::new("kb", "The knowledge base.", &["search", "query", "get"]);
    pub const CALENDAR: CapabilitySpec =
        CapabilitySpec::new("calendar", "The calendars.", &crate::CALENDAR_METHODS);
    /// It answers with a file's id and size, never with text of the provider's.
    pub const IMAGES: CapabilitySpec = CapabilitySpec::own(
        "images",
        "Generating images, which become files of the session.",
        Methods::Object("images", &["generate"]),
    )
    .with_remedy(
        "Set `images.provider` to \"openai\" or \"gemini\", with its key, and start the server again.",
    );
    pub const STORE: CapabilitySpec = CapabilitySpec::own(
        "store",
        "Small durable values of this tool for this client.",
        Methods::Object("store", &["get", "put", "delete"]),
    );
    pub const TOOLS: CapabilitySpec =
        CapabilitySpec::own("tools", "Calling other tools.", Methods::Function("callTool", "call"));
    pub const MODERATION: CapabilitySpec =
        CapabilitySpec::own("moderation", "Blocking the client.", Methods::Object("client", &["block"]));
    pub const MESSAGING: CapabilitySpec =
        CapabilitySpec::always("messaging", Methods::Object("messaging", &["send"]));
}

/// The capabilities of this runtime, in the order in which they are listed to tool authors.
pub const BUILT_IN_CAPABILITIES: &[CapabilitySpec] = &[
    built_in::KB,
    built_in::CALENDAR,
    built_in::IMAGES,
    built_in::STORE,
    built_in::TOOLS,
    built_in::MODERATION,
    CapabilitySpec::always("session", Methods::None),
    built_in::MESSAGING,
    CapabilitySpec::always("voice", Methods::None),
    CapabilitySpec::always("audit", Methods::None),
    CapabilitySpec::always("progress", Methods::None),
    CapabilitySpec::always("clock", Methods::None),
    CapabilitySpec::always("log", Methods::None),
];

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for Capability {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Capability".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "What a handler may use when its definition names it.",
            "type": "string",
        })
    }
}
