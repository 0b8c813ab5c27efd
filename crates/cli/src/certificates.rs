//! How long certificates in files are still good, for the metrics and the alarms.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use quarterdeck_runtime::Orchestrator;
use x509_cert::Certificate;
use x509_cert::der::DecodePem;

use crate::terminal::plain;

/// Certificates are over by days.
const CHECK_INTERVAL: Duration = Duration::from_secs(3_600);
/// A chain is smaller.
const MAX_FILE_BYTES: u64 = 1 << 20;
const DAY_SECONDS: f64 = 86_400.0;

/// Measures certificates without end. One that cannot be read is said so in the log, and counts as over.
pub(crate) async fn watch(files: Vec<PathBuf>, orchestrator: Orchestrator) {
    let mut ticks = tokio::time::interval(CHECK_INTERVAL);
    loop {
        ticks.tick().await;
        for file in &files {
            let days = days_left(file, orchestrator.now()).unwrap_or_else(|reason| {
                tracing::warn!(file = %file.display(), reason, "certificate cannot be read");
                0.0
            });
            orchestrator.metrics().set_certificate_days_left(&plain(&file.display().to_string()), days);
        }
    }
}

/// Of the first certificate in a file, which is the server's own.
fn days_left(file: &Path, now: SystemTime) -> Result<f64, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if length > MAX_FILE_BYTES {
        return Err("it is too large".into());
    }
    let pem = std::fs::read(file).map_err(|error| error.to_string())?;
    let end = find(&pem, b"-----END CERTIFICATE-----").ok_or("there is no certificate in it")?;
    let begin = find(&pem[..end], b"-----BEGIN CERTIFICATE-----").ok_or("there is no certificate in it")?;
    let first = &pem[begin..end + b"-----END CERTIFICATE-----".len()];
    let certificate = Certificate::from_pem(first).map_err(|error| error.to_string())?;
    let until = certificate.tbs_certificate.validity.not_after.to_system_time();
    Ok(match until.duration_since(now) {
        Ok(left) => left.as_secs_f64() / DAY_SECONDS,
        Err(over) => -over.duration().as_secs_f64() / DAY_SECONDS,
    })
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `openssl req -x509 -newkey ed25519 -nodes -subj /CN=test -keyout /dev/null -days 10`.
    const PEM: &str = include_str!("certificates/test.pem");

    #[test]
    fn the_first_certificate_of_a_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("chain.pem");
        std::fs::write(
            &file,
            format!("{PEM}\n-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"),
        )
        .unwrap();
        let at = |day: &str| {
            SystemTime::from(format!("2026-11-{day}T04:39:39Z").parse::<jiff::Timestamp>().unwrap())
        };
        assert_eq!(days_left(&file, at("18")), Ok(10.0));
        assert_eq!(days_left(&file, at("29")), Ok(-1.0));
    }

    #[test]
    fn what_is_no_certificate_is_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.pem");
        assert!(days_left(&file, SystemTime::UNIX_EPOCH).is_err());
        for text in
            ["", "-----END CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"]
        {
            std::fs::write(&file, text).unwrap();
            assert!(days_left(&file, SystemTime::UNIX_EPOCH).is_err(), "{text}");
        }
    }
}
