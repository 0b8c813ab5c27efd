//! The shapes that handlers, registry, orchestrator, transports and clients agree on.
//!
//! Plain data and small traits. No I/O, no async runtime, no policy: a type here says what may be said, never
//! what to do about it. The JSON is camelCase; changing a shape is a version bump.

#![warn(missing_docs)]

mod answer;
mod artifact;
mod calendar;
mod canonical;
mod capability;
mod case;
mod chat;
mod confirm_when;
mod confirmation;
mod definition;
mod disk;
mod error;
pub mod handler;
mod hash;
mod ids;
mod image;
mod intent;
mod json_string;
mod knowledge;
mod live;
mod overlay;
mod phrase;
mod protocol;
mod renames;
mod response;
mod secret_use;
mod speech;
mod store;
mod strict_json;
pub mod telemetry;
mod tokens;
mod upstream;
mod visible;
mod words;

#[cfg(feature = "json-schema")]
mod editor_schema;

pub use answer::{AnswerError, HandlerAnswer, Outcome};
pub use artifact::{
    ARTIFACT_FORMAT_VERSION, Artifact, CompiledTool, HandlerKind, HandlerRef, Loss, Provider,
    RESPONSE_SCHEMA_VERSION, RESPONSE_SCHEMA_VERSIONS,
};
pub use calendar::{
    BookingOrigin, CALENDAR_METHODS, Calendar, CalendarInfo, CalendarViewer, Cancellation, ChangedEvent,
    ConferenceProvider, ConferenceRequest, Event, EventQuery, EventRef, Invitations, NewEvent, Notice,
    NoticeKind, NoticeStatus, Notified, Notifier, Reschedule, answer_calendar,
};
pub use canonical::{canonical_json, write_canonical_json};
pub use capability::{BUILT_IN_CAPABILITIES, Capability, CapabilitySpec, Methods, built_in};
pub use case::{
    Case, CaseCall, CaseClient, CaseFile, CaseFixtures, ConfirmationAnswer, Expectation, RecordedFetch,
};
pub use chat::{
    CallArguments, CallResult, ChatError, ChatErrorKind, ChatEvent, ChatMessage, ChatModel, ChatRequest,
    ChatStream, ContextOverflow, Finish, MAX_CALLS_PER_MESSAGE, ModelCall, ModelMessage, ModelPart,
    ModelReply, PartContent, SITUATION_HEADING, ToolUse, Usage,
};
pub use confirm_when::{ConfirmWhen, RequestPhrases};
pub use confirmation::{
    ConfirmationCode, ConfirmationRequest, ConfirmationToken, MAX_SHOWN_CHARS, shown_arguments,
};
pub use definition::{
    Availability, Category, ConfirmBy, Confirmation, Definition, Execution, Metadata, Mode, RateLimit,
    RateLimitScope, SideEffects,
};
pub use disk::DiskError;
pub use error::{ErrorType, ToolError};
pub use hash::{artifact_hash, native_source_hash, sha256, tool_hash};
pub use ids::{InvalidToolId, ToolId};
pub use image::{
    Aspect, ImageError, ImageErrorKind, ImageInfo, ImageProvider, ImageRequest, ImageType,
    MAX_IMAGE_SIDE_PIXELS,
};
pub use intent::{EndAfter, Intent, RequestedIntent};
pub use json_string::needs_no_escape;
pub use knowledge::{
    DateRange, EmbedError, Embedder, EmbeddingModel, EmptyReason, KNOWLEDGE_METHODS, Knowledge,
    KnowledgeQuery, KnowledgeRecord, Namespace, Namespaces, RecordFilters, RecordKind, RecordListing,
    RecordPage, SearchResult, SearchResults, answer_knowledge,
};
pub use live::{
    Audio, LiveConnecting, LiveConnection, LiveError, LiveErrorKind, LiveEvent, LiveInput, LiveModel,
    LiveResult, LiveSetup, LiveTurn, Speaker, TranscriptPiece, TranscriptStage,
};
pub use overlay::Overlay;
pub use phrase::{MAX_PHRASE_CHARS, MAX_PHRASES, Phrase, PhraseError, find_phrase};
pub use protocol::{PROTOCOL_MESSAGE_TYPES, message_type};
pub use renames::Renames;
pub use response::{Meta, ToolResponse};
pub use secret_use::{SecretPlace, SecretUse, can_carry_secret, is_secret_name};
pub use speech::{
    HEARD_RATE, SPOKEN_RATE, Sentence, SpeechError, SpeechErrorKind, SpeechStream, SpeechToText,
    TextToSpeech, Transcript, Utterance,
};
pub use store::{
    Change, ChangeEvent, Changes, Check, Commit, CommitError, MAX_KEY_BYTES, PoolUse, Row, Scan, Store,
    StoreError, StoreHealth, Table, Take, Taken, Write,
};
pub use strict_json::{JsonError, parse_json, parse_json_noting_duplicates};
pub use tokens::estimate_tokens;
pub use upstream::{
    PinState, RefusedRequest, ToolDrift, UpstreamEvent, UpstreamMonitor, UpstreamOutcome, UpstreamServer,
    UpstreamState, UpstreamTool, UpstreamTransport, UpstreamView,
};
pub use visible::{visible, visible_line, visible_value};
pub use words::folded_words;

#[cfg(feature = "json-schema")]
pub use editor_schema::{definition_schema, definition_schema_with};
