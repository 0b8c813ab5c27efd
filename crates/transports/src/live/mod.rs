//! What the clients of live models share: reaching a provider, and holding a line to it.

mod dial;
mod line;
mod place;
mod resample;
mod samples;
mod trouble;

pub use dial::{DialFuture, Dialer, Stream, Tcp};
pub use resample::Resampler;

pub(crate) use line::{Arrived, Line};
pub(crate) use place::{Place, Settings as PlaceSettings, within};
pub(crate) use samples::{holds_whole_samples, is_empty, pcm, samples};
pub(crate) use trouble::Troubles;
