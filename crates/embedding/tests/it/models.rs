//! Made-up models of both kinds.

use std::collections::HashMap;
use std::fs;

use quarterdeck_contracts::Embedder;
use quarterdeck_embedding::Model;
use safetensors::Dtype;
use tempfile::TempDir;

use crate::world::{self, ENCODER, TABLE, TOKENIZER, Tensor, encoder, encoder_tensors, floats, table};

fn embed(folder: &TempDir, texts: &[&str]) -> Vec<Vec<f32>> {
    Model::load(folder.path()).unwrap().embed(texts).unwrap()
}

fn refusal(folder: &TempDir) -> String {
    Model::load(folder.path()).unwrap_err().to_string()
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|value| value * value).sum::<f32>().sqrt()
}

#[test]
fn a_table_gives_the_mean_direction_of_the_known_pieces() {
    let half = 0.5_f32.sqrt();
    let expected = [vec![0., 1.], vec![half, half], vec![1., 0.]];
    let texts = ["North", "north east", "zzz east?"];
    let halves: Vec<u8> = TABLE.iter().flat_map(|value| half_bits(*value).to_le_bytes()).collect();
    let bytes: Vec<u8> = TABLE.iter().map(|value| (*value as i8).cast_unsigned()).collect();
    for tensor in [
        floats(&[6, 2], &TABLE),
        Tensor { dtype: Dtype::F16, shape: vec![6, 2], bytes: halves },
        Tensor { dtype: Dtype::I8, shape: vec![6, 2], bytes },
    ] {
        assert_eq!(embed(&table("embeddings", tensor), &texts), expected);
    }
    assert_eq!(embed(&table("embedding.weight", floats(&[6, 2], &TABLE)), &texts), expected);
}

/// Enough for the small whole numbers of the table.
fn half_bits(value: f32) -> u16 {
    if value == 0.0 {
        return 0;
    }
    let bits = value.to_bits();
    (((bits >> 16) & 0x8000) | ((((bits >> 23) & 0xff) - 112) << 10) | ((bits >> 13) & 0x3ff)) as u16
}

#[test]
fn a_text_without_a_known_piece_still_has_a_vector_of_length_one() {
    let folder = table("embeddings", floats(&[6, 2], &TABLE));
    // North and south cancel each other out.
    for vector in embed(&folder, &["", "zzz", "north south"]) {
        assert!((length(&vector) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn a_model_says_what_it_is() {
    let folder = table("embeddings", floats(&[6, 2], &TABLE));
    let model = Model::load(folder.path()).unwrap();
    assert_eq!(model.model().dimension, 2);
    assert_eq!(model.model().name, folder.path().file_name().unwrap().to_string_lossy());
    assert_eq!(model.model().digest.len(), 64);
}

#[test]
fn an_encoder_gives_the_same_vector_alone_and_in_a_batch() {
    let folder = encoder();
    let model = Model::load(folder.path()).unwrap();
    let long = "north east ".repeat(70);
    let texts = ["north", "south east", "", "zzz", &long, "east north south east", &long];
    let together = model.embed(&texts).unwrap();
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(&model.embed(&[text]).unwrap()[0], vector);
        assert!((length(vector) - 1.0).abs() < 1e-6);
    }
    assert_ne!(together[0], together[1]);
    assert!(model.embed(&[]).unwrap().is_empty());
}

#[test]
fn an_encoder_computes_what_the_definition_says() {
    let folder = encoder();
    let vector = &embed(&folder, &["south east north"])[0];
    let expected = slow_encoder(&[1, 4, 5, 3, 2]);
    for (value, expected) in vector.iter().zip(&expected) {
        assert!((f64::from(*value) - expected).abs() < 1e-5, "{vector:?} {expected:?}");
    }
}

/// The encoder as the paper writes it, in double precision and with nothing clever.
fn slow_encoder(pieces: &[usize]) -> Vec<f64> {
    let tensors: HashMap<String, Vec<f64>> = encoder_tensors()
        .into_iter()
        .map(|(name, it)| {
            (name, it.bytes.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect())
        })
        .collect();
    let linear = |name: &str, row: &[f64]| -> Vec<f64> {
        let (weight, bias) = (&tensors[&format!("{name}.weight")], &tensors[&format!("{name}.bias")]);
        let outputs = weight.chunks(row.len()).zip(bias);
        outputs.map(|(weight, bias)| weight.iter().zip(row).map(|(a, b)| a * b).sum::<f64>() + bias).collect()
    };
    let norm = |name: &str, row: &[f64]| -> Vec<f64> {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / row.len() as f64;
        let (weight, bias) = (&tensors[&format!("{name}.weight")], &tensors[&format!("{name}.bias")]);
        row.iter()
            .zip(weight)
            .zip(bias)
            .map(|((x, w), b)| (x - mean) / (variance + 1e-12).sqrt() * w + b)
            .collect()
    };
    let plus = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
    let row = |name: &str, index: usize| {
        &tensors[&format!("embeddings.{name}_embeddings.weight")][index * 4..][..4]
    };
    let mut hidden: Vec<Vec<f64>> = pieces
        .iter()
        .enumerate()
        .map(|(at, piece)| {
            norm(
                "embeddings.LayerNorm",
                &plus(&plus(row("word", *piece), row("position", at)), row("token_type", 0)),
            )
        })
        .collect();
    for layer in 0..2 {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let part = |part: &str| -> Vec<Vec<f64>> {
            hidden.iter().map(|row| linear(&name(&format!("attention.self.{part}")), row)).collect()
        };
        let (queries, keys, values) = (part("query"), part("key"), part("value"));
        let mut after = Vec::new();
        for (index, query) in queries.iter().enumerate() {
            let attended = linear(&name("attention.output.dense"), &attend(query, &keys, &values));
            let attended = norm(&name("attention.output.LayerNorm"), &plus(&attended, &hidden[index]));
            let inner: Vec<f64> =
                linear(&name("intermediate.dense"), &attended).into_iter().map(gelu).collect();
            let out = linear(&name("output.dense"), &inner);
            after.push(norm(&name("output.LayerNorm"), &plus(&out, &attended)));
        }
        hidden = after;
    }
    let mut sum = vec![0.0; 4];
    for row in &hidden {
        sum = plus(&sum, row);
    }
    let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
    sum.iter().map(|value| value / length).collect()
}

/// Both heads of the attention of one piece.
fn attend(query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    let mut context = Vec::new();
    for head in [0..2, 2..4] {
        let score = |key: &Vec<f64>| head.clone().map(|i| query[i] * key[i]).sum::<f64>() / 2_f64.sqrt();
        let shares: Vec<f64> = keys.iter().map(|key| score(key).exp()).collect();
        let total: f64 = shares.iter().sum();
        context.extend(head.map(|i| shares.iter().zip(values).map(|(s, v)| s * v[i]).sum::<f64>() / total));
    }
    context
}

/// x Φ(x), with the normal distribution integrated step by step.
fn gelu(x: f64) -> f64 {
    let steps = 2000;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let width = x / f64::from(steps);
    let area: f64 = (0..steps).map(|step| density((f64::from(step) + 0.5) * width) * width).sum();
    x * (0.5 + area)
}

#[test]
fn only_the_first_256_pieces_count() {
    let folder = encoder();
    let within = "north ".repeat(254);
    let vectors = embed(&folder, &[&within, &format!("{within} south"), &"north ".repeat(253)]);
    assert_eq!(vectors[0], vectors[1]);
    assert_ne!(vectors[0], vectors[2]);
}

#[test]
fn a_folder_may_ask_for_the_first_vector_instead_of_the_mean() {
    let folder = encoder();
    let mean = embed(&folder, &["north"]);
    fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    fs::write(folder.path().join("1_Pooling/config.json"), r#"{"pooling_mode_cls_token": true}"#).unwrap();
    assert_ne!(embed(&folder, &["north"]), mean);
}

#[test]
fn what_is_missing_is_named() {
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let folder = encoder();
        fs::remove_file(folder.path().join(file)).unwrap();
        let message = refusal(&folder);
        assert!(message.contains(&format!("has no `{file}`")) && message.contains("install"), "{message}");
    }
    let mut tensors = encoder_tensors();
    tensors.remove("encoder.layer.1.output.dense.bias");
    let message = refusal(&world::folder(ENCODER, TOKENIZER, &tensors));
    assert!(message.contains("there is no tensor `encoder.layer.1.output.dense.bias`"), "{message}");
}

#[test]
fn other_kinds_of_model_are_refused_by_name() {
    let tensors = encoder_tensors();
    let other = ENCODER.replace("BertModel", "LlamaModel");
    assert!(refusal(&world::folder(&other, TOKENIZER, &tensors)).contains("LlamaModel"));
    let unigram = r#"{"model": {"type": "Unigram", "vocab": [["a", -1.0]]}}"#;
    assert!(refusal(&world::folder(ENCODER, unigram, &tensors)).contains("`Unigram`"));
    let more_pieces = TOKENIZER.replace("\"east\": 5", "\"east\": 6");
    assert!(refusal(&world::folder(ENCODER, &more_pieces, &tensors)).contains("pieces up to 6"));
    let wider = ENCODER.replace("\"hidden_size\": 4", "\"hidden_size\": 8");
    assert!(refusal(&world::folder(&wider, TOKENIZER, &tensors)).contains("has the shape [300, 4]"));
}
