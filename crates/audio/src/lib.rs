//! Samples of speech in the forms in which engines and servers give it: WAV files and bare PCM, in pieces of any size and at
//! other sample rates than ours. It does no I/O.

mod error;
mod pcm;
mod resample;
mod wav;

pub use error::AudioError;
pub use pcm::PcmReader;
pub use resample::Resampler;
pub use wav::{WavReader, wav_file};
