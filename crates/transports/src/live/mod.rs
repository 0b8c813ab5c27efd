//! What the clients of live models share: connecting to a provider, and keeping the connection.

mod dial;
mod error_context;
mod live_endpoint;
mod provider_socket;
mod resample;
mod samples;

pub use dial::{DialFuture, Dialer, Stream, TcpDialer};
pub use resample::Resampler;

pub(crate) use error_context::ErrorContext;
pub(crate) use live_endpoint::{LiveEndpoint, Settings as LiveEndpointSettings, connect_within};
pub(crate) use provider_socket::{ProviderSocket, Received};
pub(crate) use samples::{audio_from_base64, holds_whole_samples, is_empty, pcm, samples};
