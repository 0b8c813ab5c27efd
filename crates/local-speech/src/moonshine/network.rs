//! The two halves of Moonshine: an encoder that is run once, and a decoder that gives one token at a time.

use std::path::Path;
use std::sync::Arc;

use rten::{Dimension, Model, ModelOptions, NodeId, RunError, RunOptions, ThreadPool, Value, ValueOrView};

use super::LoadError;

pub(crate) const ENCODER: &str = "encoder_model.onnx";
pub(crate) const DECODER: &str = "decoder_model_merged.onnx";
const MAX_MODEL_BYTES: u64 = 1 << 30;

const FIRST_TOKEN: i32 = 1;
const END_TOKEN: usize = 2;

pub(crate) struct Network {
    encoder: Model,
    encoder_input: NodeId,
    encoder_output: NodeId,
    decoder: Model,
    nodes: DecoderNodes,
}

struct DecoderNodes {
    token: NodeId,
    encoded: NodeId,
    has_cache: NodeId,
    logits: NodeId,
    cache: Vec<CacheNode>,
}

/// One tensor of keys or values that the decoder hands from step to step.
struct CacheNode {
    past: NodeId,
    present: NodeId,
    part: CachePart,
    heads: usize,
    head_size: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CachePart {
    /// Grows by one with each step.
    Decoder,
    /// Made by the first step from what the encoder gave, and the same ever after.
    Encoder,
}

/// The tokens of a piece of audio, with the end token's probability as the last.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) tokens: Vec<u32>,
    /// The natural logarithm of each token's probability, the end token's too.
    pub(crate) log_probabilities: Vec<f32>,
    pub(crate) end: DecodingEnd,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DecodingEnd {
    /// The model said that it was done.
    #[default]
    Complete,
    /// It would have gone on.
    TokenLimit,
    /// Its result is no longer wanted.
    Cancelled,
}

impl Network {
    pub(crate) fn load(folder: &Path) -> Result<Self, LoadError> {
        let encoder = load_model(folder, ENCODER)?;
        let decoder = load_model(folder, DECODER)?;
        let unknown =
            |file, reason: String| LoadError::NotMoonshine { folder: folder.to_owned(), file, reason };
        let of_encoder = |error: RunError| unknown(ENCODER, error.to_string());
        let encoder_input = encoder.node_id("input_values").map_err(of_encoder)?;
        let encoder_output = encoder.node_id("last_hidden_state").map_err(of_encoder)?;
        let nodes = DecoderNodes::of(&decoder).map_err(|reason| unknown(DECODER, reason))?;
        Ok(Self { encoder, encoder_input, encoder_output, decoder, nodes })
    }

    /// Decodes greedily. `samples` are mono at 16 kHz, from -1 to 1; `is_cancelled` is asked before each step.
    pub(crate) fn decode(
        &self,
        samples: Vec<f32>,
        max_tokens: usize,
        pool: &Arc<ThreadPool>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Decoded, RunError> {
        let options = || Some(RunOptions::default().with_thread_pool(Some(pool.clone())));
        let mut decoded = Decoded::default();
        if is_cancelled() {
            return Ok(Decoded { end: DecodingEnd::Cancelled, ..decoded });
        }
        let input = floats([1, samples.len()], samples);
        let [encoded] =
            self.encoder.run_n(vec![(self.encoder_input, input.into())], [self.encoder_output], options())?;
        let mut cache = Cache::empty(&self.nodes);
        let mut token = FIRST_TOKEN;
        loop {
            if is_cancelled() {
                return Ok(Decoded { end: DecodingEnd::Cancelled, ..decoded });
            }
            let logits = cache.step(&self.decoder, &self.nodes, &encoded, token, options())?;
            let (next, log_probability) = most_likely(&logits);
            decoded.log_probabilities.push(log_probability);
            if next == END_TOKEN {
                return Ok(decoded);
            }
            decoded.tokens.push(next as u32);
            if decoded.tokens.len() >= max_tokens {
                return Ok(Decoded { end: DecodingEnd::TokenLimit, ..decoded });
            }
            token = next as i32;
        }
    }
}

fn load_model(folder: &Path, file: &'static str) -> Result<Model, LoadError> {
    let path = folder.join(file);
    let unreadable = |source| LoadError::Read { path: path.clone(), source };
    let bytes = std::fs::metadata(&path).map_err(unreadable)?.len();
    if bytes > MAX_MODEL_BYTES {
        return Err(LoadError::TooLarge { path, limit: MAX_MODEL_BYTES });
    }
    let broken = |reason: String| LoadError::NotMoonshine { folder: folder.to_owned(), file, reason };
    ModelOptions::with_all_ops().load_file(&path).map_err(|error| broken(error.to_string()))
}

impl DecoderNodes {
    fn of(decoder: &Model) -> Result<Self, String> {
        let node = |name: &str| decoder.node_id(name).map_err(|error| error.to_string());
        let mut cache = Vec::new();
        for past in decoder.input_ids() {
            let Some(info) = decoder.node_info(*past) else { continue };
            let Some(slot) = info.name().and_then(|name| name.strip_prefix("past_key_values.")) else {
                continue;
            };
            let shape = info.shape().unwrap_or_default();
            let [_, Dimension::Fixed(heads), _, Dimension::Fixed(head_size)] = shape[..] else {
                return Err(format!("`{slot}` has no fixed number of heads"));
            };
            let part = if slot.contains(".encoder.") { CachePart::Encoder } else { CachePart::Decoder };
            cache.push(CacheNode {
                past: *past,
                present: node(&format!("present.{slot}"))?,
                part,
                heads,
                head_size,
            });
        }
        if cache.is_empty() {
            return Err("it has no cache".to_owned());
        }
        Ok(Self {
            token: node("input_ids")?,
            encoded: node("encoder_hidden_states")?,
            has_cache: node("use_cache_branch")?,
            logits: node("logits")?,
            cache,
        })
    }
}

/// What the decoder hands from step to step, in the order of [`DecoderNodes::cache`].
struct Cache {
    values: Vec<Value>,
    is_filled: bool,
}

impl Cache {
    fn empty(nodes: &DecoderNodes) -> Self {
        let empty = |node: &CacheNode| floats([0, node.heads, 1, node.head_size], Vec::new());
        Self { values: nodes.cache.iter().map(empty).collect(), is_filled: false }
    }

    /// The logits of the token after `token`.
    fn step(
        &mut self,
        decoder: &Model,
        nodes: &DecoderNodes,
        encoded: &Value,
        token: i32,
        options: Option<RunOptions>,
    ) -> Result<Vec<f32>, RunError> {
        let is_filled = self.is_filled;
        let is_kept = |node: &CacheNode| is_filled && node.part == CachePart::Encoder;
        let mut inputs: Vec<(NodeId, ValueOrView<'_>)> = vec![
            (nodes.token, integers([1, 1], vec![token]).into()),
            (nodes.encoded, encoded.into()),
            (nodes.has_cache, integers([1], vec![i32::from(self.is_filled)]).into()),
        ];
        inputs.extend(nodes.cache.iter().zip(&self.values).map(|(node, value)| (node.past, value.into())));
        let mut outputs = vec![nodes.logits];
        outputs.extend(nodes.cache.iter().filter(|node| !is_kept(node)).map(|node| node.present));
        let mut results = decoder.run(inputs, &outputs, options)?.into_iter();
        let logits = results.next().and_then(|logits| logits.into_shape_vec::<f32, 3>().ok());
        for (node, value) in nodes.cache.iter().zip(&mut self.values) {
            if !is_kept(node)
                && let Some(present) = results.next()
            {
                *value = present;
            }
        }
        self.is_filled = true;
        // One step asks for one token, so there is one row.
        Ok(logits.map(|(_, logits)| logits).unwrap_or_default())
    }
}

fn floats<const N: usize>(shape: [usize; N], data: Vec<f32>) -> Value {
    Value::from_shape(shape, data).expect("the shape is that of the data")
}

fn integers<const N: usize>(shape: [usize; N], data: Vec<i32>) -> Value {
    Value::from_shape(shape, data).expect("the shape is that of the data")
}

/// The most likely token and the natural logarithm of its probability. Without logits, the end.
fn most_likely(logits: &[f32]) -> (usize, f32) {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    let Some((token, best)) = best else { return (END_TOKEN, f32::NEG_INFINITY) };
    let sum: f32 = logits.iter().map(|logit| (logit - best).exp()).sum();
    (token, -sum.ln())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use quarterdeck_testkit::real_speech::RealSpeech;

    use super::*;

    #[test]
    fn decoding_stops_before_the_next_token_when_it_is_cancelled_or_has_enough() {
        let Some(speech) = RealSpeech::find() else { return };
        let network = Network::load(&speech.engines().join("moonshine-tiny")).unwrap();
        let recording = speech.recording("beckett.wav");
        let samples: Vec<_> = recording.iter().map(|sample| f32::from(*sample) / 32_768.).collect();
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        let asked = Cell::new(0);
        // Once before the encoder, and once before each token.
        let after_three = || asked.replace(asked.get() + 1) > 3;
        let cancelled = network.decode(samples.clone(), 100, &pool, &after_three).unwrap();
        assert_eq!((cancelled.end, cancelled.tokens.len()), (DecodingEnd::Cancelled, 3));
        let limited = network.decode(samples, 5, &pool, &|| false).unwrap();
        assert_eq!((limited.end, limited.tokens.len()), (DecodingEnd::TokenLimit, 5));
        assert_eq!(limited.tokens[..3], cancelled.tokens[..]);
    }

    #[test]
    fn the_likeliest_token_comes_with_its_probability() {
        let (token, log_probability) = most_likely(&[0., 3_f32.ln(), 0.]);
        assert_eq!(token, 1);
        assert!((log_probability.exp() - 0.6).abs() < 1e-6);
    }
}
