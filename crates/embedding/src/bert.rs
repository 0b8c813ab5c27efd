//! A BERT encoder: from word pieces to the vectors of its last layer.
//!
//! Texts of a batch are laid one after another, with no padding between them: products run over all rows, attention
//! over each text alone.

use std::ops::Range;

use serde::Deserialize;

use crate::files::CONFIG;
use crate::matrix::{Packed, Product, Rows};
use crate::model::LoadError;
use crate::simd::Kernel;
use crate::tensors::Tensors;
use crate::vectors::{Activation, ActivationKernel, LayerNormKernel, SoftmaxKernel};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BertConfig {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "default_type_count")]
    type_vocab_size: usize,
    #[serde(default = "default_activation")]
    hidden_act: String,
    #[serde(default = "default_epsilon")]
    layer_norm_eps: f32,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

pub(crate) struct Bert {
    pub(crate) size: usize,
    pub(crate) pieces: usize,
    pub(crate) positions: usize,
    heads: usize,
    inner: usize,
    activation: Activation,
    epsilon: f32,
    word_embeddings: Vec<f32>,
    /// Position and token type, added up: every piece is of the first type.
    position_embeddings: Vec<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Query, key and value side by side.
    attention: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
}

struct Linear {
    weight: Packed,
    bias: Vec<f32>,
}

struct LayerNorm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Bert {
    pub(crate) fn load(config: &BertConfig, tensors: &Tensors<'_>) -> Result<Self, LoadError> {
        let (size, inner) = (config.hidden_size, config.intermediate_size);
        let positions = config.max_position_embeddings;
        let activation = config.check()?;
        let mut position_embeddings =
            tensors.floats("embeddings.position_embeddings.weight", &[positions, size])?;
        let types =
            tensors.floats("embeddings.token_type_embeddings.weight", &[config.type_vocab_size, size])?;
        for position in position_embeddings.chunks_exact_mut(size) {
            for (value, kind) in position.iter_mut().zip(&types) {
                *value += kind;
            }
        }
        let mut layers = Vec::new();
        for index in 0..config.num_hidden_layers {
            layers.push(Layer::load(tensors, &format!("encoder.layer.{index}"), size, inner)?);
        }
        Ok(Self {
            size,
            pieces: config.vocab_size,
            positions,
            heads: config.num_attention_heads,
            inner,
            activation,
            epsilon: config.layer_norm_eps,
            word_embeddings: tensors
                .floats("embeddings.word_embeddings.weight", &[config.vocab_size, size])?,
            position_embeddings,
            norm: LayerNorm::load(tensors, "embeddings.LayerNorm", size)?,
            layers,
        })
    }

    /// The last layer's vectors, one for each piece of each text, in their order.
    ///
    /// Pieces are below `self.pieces`, and no text has more than `self.positions` of them or none.
    pub(crate) fn run(&self, texts: &[Vec<u32>]) -> Vec<f32> {
        let rows: usize = texts.iter().map(Vec::len).sum();
        let mut scratch = Scratch::new(rows, self.size, self.inner);
        let mut hidden = self.embed_tokens(texts, rows);
        let mut attention_output = vec![0.0; hidden.len()];
        self.norm.apply(&mut hidden, None, self.epsilon);
        for layer in &self.layers {
            layer.attention.apply(&mut scratch.product, &hidden, &mut scratch.attention);
            let mut start = 0;
            for text in texts {
                self.attend(&mut scratch, start..start + text.len());
                start += text.len();
            }
            layer.attention_output.apply(&mut scratch.product, &scratch.context, &mut attention_output);
            layer.attention_norm.apply(&mut attention_output, Some(&hidden), self.epsilon);
            layer.up.apply(&mut scratch.product, &attention_output, &mut scratch.inner);
            ActivationKernel { values: &mut scratch.inner, activation: self.activation }.apply();
            layer.down.apply(&mut scratch.product, &scratch.inner, &mut hidden);
            layer.norm.apply(&mut hidden, Some(&attention_output), self.epsilon);
        }
        hidden
    }

    fn embed_tokens(&self, texts: &[Vec<u32>], rows: usize) -> Vec<f32> {
        let mut hidden = Vec::with_capacity(rows * self.size);
        for text in texts {
            for (piece, position) in text.iter().zip(self.position_embeddings.chunks_exact(self.size)) {
                let word = &self.word_embeddings[*piece as usize * self.size..][..self.size];
                hidden.extend(word.iter().zip(position).map(|(word, position)| word + position));
            }
        }
        hidden
    }

    fn attend(&self, scratch: &mut Scratch, text: Range<usize>) {
        let (size, stride, length) = (self.size, self.size * 3, text.len());
        let head_size = size / self.heads;
        scratch.scores.resize(length * length, 0.0);
        for head in 0..self.heads {
            let first = text.start * stride + head * head_size;
            let row_of = |part: usize| {
                let values = &scratch.attention[first + part * size..];
                move |index: usize| &values[index * stride..][..head_size]
            };
            scratch.matrix.pack_outputs(length, head_size, row_of(1));
            let queries = Rows { values: &scratch.attention[first..], stride, count: length };
            scratch.product.run(queries, &scratch.matrix, None, &mut scratch.scores, length);
            SoftmaxKernel {
                scores: &mut scratch.scores,
                width: length,
                scale: 1.0 / (head_size as f32).sqrt(),
            }
            .apply();
            scratch.matrix.pack_rows(head_size, length, row_of(2));
            let shares = Rows { values: &scratch.scores, stride: length, count: length };
            let out = &mut scratch.context[text.start * size + head * head_size..];
            scratch.product.run(shares, &scratch.matrix, None, out, size);
        }
    }
}

impl BertConfig {
    fn check(&self) -> Result<Activation, LoadError> {
        let sound = self.hidden_size > 0
            && self.intermediate_size > 0
            && self.num_attention_heads > 0
            && self.hidden_size.is_multiple_of(self.num_attention_heads)
            && self.type_vocab_size > 0
            && self.vocab_size > 0
            // The special tokens of a text, and at least one piece of it.
            && self.max_position_embeddings > 2;
        if !sound {
            return Err(LoadError::malformed(CONFIG, "its sizes do not describe an encoder".to_owned()));
        }
        if let Some(kind) = &self.position_embedding_type
            && kind != "absolute"
        {
            return Err(LoadError::unsupported(
                format!("positions of the kind `{kind}`"),
                "use a model with absolute positions, such as all-MiniLM-L6-v2".to_owned(),
            ));
        }
        match self.hidden_act.as_str() {
            "gelu" => Ok(Activation::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
            "relu" => Ok(Activation::Relu),
            other => Err(LoadError::unsupported(
                format!("the activation `{other}`"),
                "use a model with `gelu` or `relu`, such as all-MiniLM-L6-v2".to_owned(),
            )),
        }
    }
}

impl Layer {
    fn load(tensors: &Tensors<'_>, name: &str, size: usize, inner: usize) -> Result<Self, LoadError> {
        let mut weights = Vec::new();
        let mut biases = Vec::new();
        for part in ["query", "key", "value"] {
            weights.extend(tensors.floats(&format!("{name}.attention.self.{part}.weight"), &[size, size])?);
            biases.extend(tensors.floats(&format!("{name}.attention.self.{part}.bias"), &[size])?);
        }
        Ok(Self {
            attention: Linear { weight: Packed::from_outputs(&weights, size * 3, size), bias: biases },
            attention_output: Linear::load(tensors, &format!("{name}.attention.output.dense"), size, size)?,
            attention_norm: LayerNorm::load(tensors, &format!("{name}.attention.output.LayerNorm"), size)?,
            up: Linear::load(tensors, &format!("{name}.intermediate.dense"), inner, size)?,
            down: Linear::load(tensors, &format!("{name}.output.dense"), size, inner)?,
            norm: LayerNorm::load(tensors, &format!("{name}.output.LayerNorm"), size)?,
        })
    }
}

impl Linear {
    fn load(tensors: &Tensors<'_>, name: &str, width: usize, depth: usize) -> Result<Self, LoadError> {
        let weight = tensors.floats(&format!("{name}.weight"), &[width, depth])?;
        let bias = tensors.floats(&format!("{name}.bias"), &[width])?;
        Ok(Self { weight: Packed::from_outputs(&weight, width, depth), bias })
    }

    fn apply(&self, product: &mut Product, values: &[f32], out: &mut [f32]) {
        let (stride, width) = (self.weight.depth(), self.bias.len());
        let rows = Rows { values, stride, count: values.len() / stride };
        product.run(rows, &self.weight, Some(&self.bias), out, width);
    }
}

impl LayerNorm {
    fn load(tensors: &Tensors<'_>, name: &str, size: usize) -> Result<Self, LoadError> {
        let weight = tensors.floats(&format!("{name}.weight"), &[size])?;
        Ok(Self { weight, bias: tensors.floats(&format!("{name}.bias"), &[size])? })
    }

    fn apply(&self, values: &mut [f32], residual: Option<&[f32]>, epsilon: f32) {
        LayerNormKernel { values, residual, weight: &self.weight, bias: &self.bias, epsilon }.apply();
    }
}

/// Buffers for the results of the steps of one run.
struct Scratch {
    attention: Vec<f32>,
    scores: Vec<f32>,
    context: Vec<f32>,
    inner: Vec<f32>,
    matrix: Packed,
    product: Product,
}

impl Scratch {
    fn new(rows: usize, size: usize, inner: usize) -> Self {
        Self {
            attention: vec![0.0; rows * size * 3],
            scores: Vec::new(),
            context: vec![0.0; rows * size],
            inner: vec![0.0; rows * inner],
            matrix: Packed::empty(),
            product: Product::default(),
        }
    }
}

fn default_type_count() -> usize {
    2
}

fn default_activation() -> String {
    "gelu".to_owned()
}

fn default_epsilon() -> f32 {
    1e-12
}
