//! Many texts through a model at once: encoders are slow, so every core takes its share.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use quarterdeck_contracts::{EmbedError, Embedder};

use crate::snapshot::BuildError;

/// Texts that a thread takes at a time.
const BATCH_SIZE: usize = 16;

/// Vectors of a batch, and the place of its first text.
type Batch = (usize, Result<Vec<Vec<f32>>, EmbedError>);

/// Embeds texts on every core, and hands over vectors batch by batch with the place of the first, in no order. The
/// first failure, of the model or of `each`, ends it.
pub(crate) fn embed_in_parallel(
    embedder: &dyn Embedder,
    texts: &[&str],
    mut each: impl FnMut(usize, Vec<Vec<f32>>) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let batches = texts.len().div_ceil(BATCH_SIZE);
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(batches);
    let next = AtomicUsize::new(0);
    let (sender, results) = sync_channel::<Batch>(threads.max(1) * 2);
    thread::scope(|scope| {
        for number in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            let worker = move || embed_batches(embedder, texts, next, &sender);
            let started =
                thread::Builder::new().name("knowledge-build".to_owned()).spawn_scoped(scope, worker);
            // A machine that is short of threads takes longer; one that has none says so.
            if let (Err(error), 0) = (started, number) {
                return Err(BuildError::Embed(EmbedError(format!("no thread could be started: {error}"))));
            }
        }
        drop(sender);
        // Leaving early closes the channel, on which the threads end.
        results.into_iter().try_for_each(|(first, vectors)| each(first, vectors.map_err(BuildError::Embed)?))
    })
}

fn embed_batches(embedder: &dyn Embedder, texts: &[&str], next: &AtomicUsize, sender: &SyncSender<Batch>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(batch) = texts.chunks(BATCH_SIZE).nth(number) else { return };
        if sender.send((number * BATCH_SIZE, embed(embedder, batch))).is_err() {
            return;
        }
    }
}

/// One vector for each text, or an error: whatever a model does wrong is one.
pub(crate) fn embed(embedder: &dyn Embedder, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let embedded = catch_unwind(AssertUnwindSafe(|| embedder.embed(texts)));
    let vectors = embedded.unwrap_or_else(|_| Err(EmbedError("it panicked".to_owned())))?;
    if vectors.len() != texts.len() {
        return Err(EmbedError("it gave another number of vectors than texts".to_owned()));
    }
    Ok(vectors)
}
