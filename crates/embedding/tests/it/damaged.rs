//! Damaged files are refused; they never panic, and no number in them is taken for an amount of memory.

use std::fs;

use quarterdeck_contracts::Embedder;
use quarterdeck_embedding::Model;

use crate::world::{ENCODER, TABLE, TOKENIZER, encoder, encoder_tensors, floats, folder, table};

/// Loads, and if that works, embeds: either may fail, neither may panic.
fn try_all(path: &std::path::Path) {
    if let Ok(model) = Model::load(path) {
        let _ = model.embed(&["north south", "", "zzz"]);
    }
}

#[test]
fn no_truncated_or_changed_file_panics() {
    for made in [encoder(), table("embeddings", floats(&[6, 2], &TABLE))] {
        for file in ["config.json", "tokenizer.json", "model.safetensors"] {
            let path = made.path().join(file);
            let whole = fs::read(&path).unwrap();
            let step = (whole.len() / 150).max(1);
            for end in (0..whole.len()).step_by(step) {
                fs::write(&path, &whole[..end]).unwrap();
                try_all(made.path());
            }
            let mut seed = 1_usize;
            for _ in 0..400 {
                let mut changed = whole.clone();
                for _ in 0..3 {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // Most of the weights are values; what can go wrong is at the front.
                    let at = (seed >> 33) % changed.len().min(4000);
                    changed[at] = (seed >> 25) as u8;
                }
                fs::write(&path, &changed).unwrap();
                try_all(made.path());
            }
            fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn no_number_in_a_config_is_believed() {
    let tensors = encoder_tensors();
    for field in [
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    ] {
        for number in ["0", "1000000000000", "18446744073709551615", "-1", "1e400", "null", "\"4\""] {
            let at = ENCODER.find(field).unwrap();
            let end = at + ENCODER[at..].find([',', '}']).unwrap();
            let config = format!("{}{field}\": {number}{}", &ENCODER[..at], &ENCODER[end..]);
            let made = folder(&config, TOKENIZER, &tensors);
            // A model without layers is a small one, not a wrong one.
            if (field, number) != ("num_hidden_layers", "0") {
                assert!(Model::load(made.path()).is_err(), "{config}");
            }
        }
    }
}

#[test]
fn no_number_in_a_header_is_believed() {
    let made = encoder();
    let path = made.path().join("model.safetensors");
    for header in [
        r#"{"embeddings":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#,
        r#"{"embeddings":{"dtype":"F32","shape":[0,0],"data_offsets":[0,0]}}"#,
        r#"{"embeddings":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,18446744073709551615]}}"#,
        r#"{"embeddings":{"dtype":"I8","shape":[2,4],"data_offsets":[8,0]}}"#,
        r#"{"embeddings":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}}"#,
    ] {
        for length in [header.len() as u64, u64::MAX, 1 << 40] {
            let bytes = [&length.to_le_bytes(), header.as_bytes(), &[0; 8]].concat();
            fs::write(&path, bytes).unwrap();
            assert!(Model::load(made.path()).is_err(), "{header}");
        }
    }
}

#[test]
fn a_deeply_nested_file_is_refused() {
    let made = encoder();
    for file in ["config.json", "tokenizer.json"] {
        let whole = fs::read(made.path().join(file)).unwrap();
        fs::write(made.path().join(file), "[".repeat(1_000_000)).unwrap();
        assert!(Model::load(made.path()).is_err());
        fs::write(made.path().join(file), whole).unwrap();
    }
}

#[test]
fn weights_that_are_not_numbers_are_an_error_and_no_vector() {
    let mut values = TABLE;
    values[6] = f32::NAN;
    let made = table("embeddings", floats(&[6, 2], &values));
    let model = Model::load(made.path()).unwrap();
    assert!(model.embed(&["north"]).is_err());
    assert!(model.embed(&["south"]).is_ok());
}
