//! A form with one file, as `multipart/form-data` has it.

use crate::ConfigError;
use crate::endpoint::header;
use reqwest::header::HeaderValue;

/// A form that is being written. Names and values are ours or were checked: none has a line break or a quote.
pub(super) struct Form {
    boundary: String,
    body: Vec<u8>,
}

impl Form {
    pub(super) fn new() -> Self {
        let mut random = [0; 16];
        // Without randomness the boundary is known, which matters to no one who sends only audio.
        let _ = getrandom::fill(&mut random);
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { boundary: format!("quarterdeck-{digits}"), body: Vec::new() }
    }

    pub(super) fn field(mut self, name: &str, value: &str) -> Self {
        self.begin(&format!("name=\"{name}\"\r\n\r\n{value}\r\n"));
        self
    }

    pub(super) fn wav_file(mut self, wav: &[u8]) -> Self {
        self.begin("name=\"file\"; filename=\"speech.wav\"\r\ncontent-type: audio/wav\r\n\r\n");
        self.body.extend_from_slice(wav);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    fn begin(&mut self, rest: &str) {
        let part = format!("--{}\r\ncontent-disposition: form-data; {rest}", self.boundary);
        self.body.extend_from_slice(part.as_bytes());
    }

    /// The content type and the body.
    pub(super) fn finish(mut self) -> Result<(HeaderValue, Vec<u8>), ConfigError> {
        self.body.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        let kind = format!("multipart/form-data; boundary={}", self.boundary);
        Ok((header(super::super::PROVIDER, "boundary", &kind)?, self.body))
    }
}
