//! Made-up models, written as the files of a model folder.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

pub(crate) const TOKENIZER: &str = r###"{
    "truncation": {"max_length": 2, "strategy": "LongestFirst", "stride": 0},
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "north": 3, "south": 4, "east": 5}}
}"###;

pub(crate) const ENCODER: &str = r#"{"architectures": ["BertModel"], "vocab_size": 6, "hidden_size": 4, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 6, "max_position_embeddings": 300, "type_vocab_size": 2, "hidden_act": "gelu"}"#;

/// A tensor to be written.
pub(crate) struct Tensor {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor {
        dtype: Dtype::F32,
        shape: shape.to_vec(),
        bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

/// A model folder.
pub(crate) fn folder(config: &str, tokenizer: &str, tensors: &HashMap<String, Tensor>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.json"), config).unwrap();
    fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
    let views = tensors
        .iter()
        .map(|(name, it)| (name, TensorView::new(it.dtype, it.shape.clone(), &it.bytes).unwrap()));
    let bytes = safetensors::serialize(views, None).unwrap();
    fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
    folder
}

/// A table with one direction for each of north, south and east.
pub(crate) fn table(name: &str, tensor: Tensor) -> TempDir {
    folder("{}", TOKENIZER, &HashMap::from([(name.to_owned(), tensor)]))
}

pub(crate) const TABLE: [f32; 12] = [9., 9., 8., 8., 7., 7., 0., 2., 0., -2., 2., 0.];

/// An encoder of two layers whose weights are arbitrary but always the same.
pub(crate) fn encoder() -> TempDir {
    folder(ENCODER, TOKENIZER, &encoder_tensors())
}

pub(crate) fn encoder_tensors() -> HashMap<String, Tensor> {
    let (size, inner) = (4, 6);
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".into(), vec![6, size]),
        ("embeddings.position_embeddings.weight".into(), vec![300, size]),
        ("embeddings.token_type_embeddings.weight".into(), vec![2, size]),
        ("embeddings.LayerNorm.weight".into(), vec![size]),
        ("embeddings.LayerNorm.bias".into(), vec![size]),
    ];
    for layer in 0..2 {
        for (name, width, depth) in [
            ("attention.self.query", size, size),
            ("attention.self.key", size, size),
            ("attention.self.value", size, size),
            ("attention.output.dense", size, size),
            ("intermediate.dense", inner, size),
            ("output.dense", size, inner),
        ] {
            shapes.push((format!("encoder.layer.{layer}.{name}.weight"), vec![width, depth]));
            shapes.push((format!("encoder.layer.{layer}.{name}.bias"), vec![width]));
        }
        for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
            shapes.push((format!("encoder.layer.{layer}.{name}.weight"), vec![size]));
            shapes.push((format!("encoder.layer.{layer}.{name}.bias"), vec![size]));
        }
    }
    let mut seed = 7_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    shapes
        .into_iter()
        .map(|(name, shape)| {
            let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
            (name, floats(&shape, &values))
        })
        .collect()
}

/// Packs the files of a folder into an archive, under a prefix.
pub(crate) fn archive(folder: &Path, prefix: &str, to: &Path) {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(fs::File::create(to).unwrap());
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        zip.start_file(format!("{prefix}{name}"), zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&fs::read(folder.join(name)).unwrap()).unwrap();
    }
    zip.finish().unwrap();
}
