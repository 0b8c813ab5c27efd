//! Files as browsers accept them: compressed once, when first asked for, and kept.

use std::io::Write;

use axum::http::{HeaderMap, header};
use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Brotli,
    Gzip,
    Identity,
}

impl Encoding {
    /// The best that the client accepts. Browsers accept Brotli over HTTPS and from this machine.
    pub(crate) fn accepted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let accepted: Vec<&str> = values.flat_map(|value| value.split(',')).filter_map(wanted).collect();
        let has = |name: &str| accepted.iter().any(|found| found.eq_ignore_ascii_case(name));
        match (has("br"), has("gzip")) {
            (true, _) => Self::Brotli,
            (_, true) => Self::Gzip,
            _ => Self::Identity,
        }
    }

    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }
}

/// The name of an encoding, unless it is refused by `q=0`.
fn wanted(item: &str) -> Option<&str> {
    let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
    let weight = parameters.trim().strip_prefix("q=").unwrap_or("1");
    let is_refused = weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0);
    (!is_refused).then_some(name.trim())
}

type Compress = fn(&[u8]) -> Option<Vec<u8>>;

/// The encodings of one file.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    brotli: OnceCell<Option<Vec<u8>>>,
    gzip: OnceCell<Option<Vec<u8>>>,
}

impl Encoded {
    /// The bytes in this encoding; `None` if that is not smaller, or was not possible.
    pub(crate) async fn get(
        &'static self,
        bytes: &'static [u8],
        encoding: Encoding,
    ) -> Option<&'static [u8]> {
        let (cell, compress) = match encoding {
            Encoding::Brotli => (&self.brotli, brotli as Compress),
            Encoding::Gzip => (&self.gzip, gzip as Compress),
            Encoding::Identity => return None,
        };
        // The best compression takes a while, so it has a thread of its own.
        let made = cell.get_or_init(|| async move {
            let made = spawn_blocking(move || compress(bytes)).await.ok().flatten();
            made.filter(|made| made.len() < bytes.len())
        });
        made.await.as_deref()
    }
}

fn brotli(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut made = Vec::new();
    let best = BrotliEncoderParams { quality: 11, lgwin: 18, size_hint: bytes.len(), ..Default::default() };
    brotli::BrotliCompress(&mut bytes, &mut made, &best).ok()?;
    Some(made)
}

fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_best_accepted_encoding_is_chosen() {
        for (accepts, encoding) in [
            ("gzip, deflate, br, zstd", Encoding::Brotli),
            ("GZIP", Encoding::Gzip),
            ("br;q=0, gzip;q=0.5", Encoding::Gzip),
            ("br;q=0", Encoding::Identity),
            ("deflate", Encoding::Identity),
            ("", Encoding::Identity),
            ("bread", Encoding::Identity),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepts))]);
            assert_eq!(Encoding::accepted(&headers), encoding, "{accepts}");
        }
    }
}
