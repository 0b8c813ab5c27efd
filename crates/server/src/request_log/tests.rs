use axum::body::Body;
use http_body_util::BodyExt;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use super::*;

/// The lines that were written while something ran.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Lines {
    fn of(level: Level, work: impl FnOnce()) -> String {
        let lines = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(lines.clone())
            .with_ansi(false)
            .without_time()
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }
}

fn request(method: &str) -> Request {
    Request::builder().method(method).uri("/api/me?ticket=sesame").body(Body::empty()).unwrap()
}

#[test]
fn nothing_is_kept_of_a_request_where_the_level_is_off() {
    let printed = Lines::of(Level::WARN, || {
        let line = RequestLine::open(1, &request("GET"));
        assert!(line.log.0.is_none() && line.handle().is_none());
        line.log().set_client("c_1");
        let response = line.follow(Response::new(Body::from("whole")));
        let (_, body) = response.into_parts();
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(5));
    });
    assert_eq!(printed, "");
}

#[test]
fn a_method_that_a_client_made_up_is_not_in_the_line() {
    let printed = Lines::of(Level::INFO, || drop(RequestLine::open(1, &request("SESAME"))));
    assert!(printed.contains("method=\"other\"") && printed.contains("end=\"client_left\""), "{printed}");
    assert!(!printed.to_lowercase().contains("sesame") && !printed.contains("status"), "{printed}");
}

#[test]
fn a_body_that_breaks_off_has_failed_and_one_that_is_left_was_left() {
    let stream = |pieces: [Result<&'static str, std::io::Error>; 2]| {
        Body::from_stream(futures_util::stream::iter(pieces))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let read = |body: Body, frames: usize| {
        Lines::of(Level::INFO, || {
            let response = RequestLine::open(1, &request("GET")).follow(Response::new(body));
            let mut body = response.into_body();
            runtime.block_on(async {
                for _ in 0..frames {
                    let _ = body.frame().await;
                }
            });
        })
    };
    let broken = || Err(std::io::Error::other("lost"));
    for (body, frames, end, bytes) in [
        (stream([Ok("one"), Ok("two")]), 3, "complete", 6),
        (stream([Ok("one"), Ok("two")]), 1, "client_left", 3),
        (stream([Ok("one"), broken()]), 2, "failed", 3),
        (Body::from("one"), 1, "complete", 3),
        (Body::empty(), 0, "complete", 0),
    ] {
        let line = read(body, frames);
        assert!(line.contains(&format!("end=\"{end}\"")), "{line}");
        assert!(line.contains(&format!("bytes={bytes} first_byte_ms=")), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn long_ids_are_cut() {
    assert_eq!(shorten(&"ä".repeat(1_000)).chars().count(), MAX_ID_CHARS);
}
