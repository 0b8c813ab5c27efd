//! Why something is no sound that can be played.

/// What is wrong with a sound. The text is for operators and follows the name of what has sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AudioError {
    #[error("this is no WAV file")]
    NotWav,
    #[error("the WAV file has no samples where they should begin")]
    HeaderTooLong,
    #[error("the WAV file does not say what its samples are")]
    NoFormat,
    #[error("the samples of the WAV file are not 16-bit PCM")]
    NotPcm16,
    #[error(
        "sound of {rate} Hz and {channels} channels cannot be converted; 8 to 48 kHz and one or two channels can"
    )]
    Unsupported { rate: u32, channels: u16 },
    /// More was meant to come.
    #[error("the sound ends too early")]
    Truncated,
}
