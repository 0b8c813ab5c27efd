//! The whole path with the engines of this machine, which `scripts/speech` installs: espeak-ng asks, Moonshine hears, the
//! sample records answer, and a voice speaks.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::page::Page;
use super::pipeline::cookie;
use crate::serve::{ANYWHERE, Server, command};

/// The cache that the engines are installed in, or nothing where they are not required.
fn cache() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/speech");
    if folder.join(".holds").exists() {
        return Some(folder.join("cache").canonicalize().unwrap());
    }
    let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
    assert!(!required, "speech engines are required here; `scripts/speech` installs them");
    #[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
    {
        eprintln!("SKIPPED: there are no speech engines; `scripts/speech` installs them");
    }
    None
}

/// What espeak-ng makes of a text, at 16 kHz and with quiet before and after it.
fn spoken(text: &str) -> Vec<i16> {
    let output =
        Command::new("espeak-ng").args(["-v", "en-us", "-s", "150", "--stdout", text]).output().unwrap();
    let file = output.stdout;
    let begin = file.windows(4).position(|four| four == b"data").unwrap() + 8;
    let rate = u32::from_le_bytes(file[24..28].try_into().unwrap());
    let samples: Vec<f32> =
        file[begin..].as_chunks().0.iter().map(|two| f32::from(i16::from_le_bytes(*two))).collect();
    let length = samples.len() * 16_000 / rate as usize;
    let at = |index: usize| {
        let place = index as f32 * rate as f32 / 16_000.0;
        let (before, share) = (place as usize, place.fract());
        let after = samples.get(before + 1).unwrap_or(&0.0);
        (samples[before] * (1.0 - share) + after * share) as i16
    };
    [vec![0; 8_000], (0..length).map(at).collect(), vec![0; 2 * 16_000]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn espeak_asks_moonshine_hears_and_the_records_answer_aloud() {
    let Some(cache) = cache() else { return };
    for voice in ["espeak-ng", "piper"] {
        let data = tempfile::tempdir().unwrap();
        let mut command = command(data.path(), ANYWHERE);
        command.env("XDG_CACHE_HOME", &cache).env("QUARTERDECK_SPEECH__TTS__VOICE", voice);
        let server = Server::begin(&mut command);
        let mut page = Page::dial(server.address, cookie(&server), json!({})).await;
        assert_eq!(page.ready["provider"], "pipeline/rehearsal/built-in", "{:?}", server.printed);
        page.send_sound(&spoken("Who designed the Fram?")).await;
        let heard = page.wait_for_transcript("user").await.to_lowercase();
        assert!(heard.contains("who designed") && heard.contains("fram"), "{heard}");
        page.wait_for_answer("Colin Archer").await;
        page.wait_for("turn_complete").await;
        assert!(page.audio_bytes > 3 * 48_000, "{voice}: {} bytes were heard", page.audio_bytes);
    }
}
