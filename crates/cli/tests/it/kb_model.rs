//! `quarterdeck kb model`, with made-up models.

use std::fs;
use std::path::Path;

use quarterdeck_testkit::tree;
use serde_json::json;

use crate::terminal::command;

/// Writes a model folder: a table with one vector for each word of its vocabulary.
pub(crate) fn write_model(folder: &Path, vectors: [[f32; 2]; 3]) {
    let tokenizer = json!({
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "TemplateProcessing", "pair": [],
            "single": [{ "Sequence": { "id": "A", "type_id": 0 } }], "special_tokens": {} },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": { "[UNK]": 0, "hull": 1, "captain": 2 } },
    });
    let header =
        json!({ "embeddings": { "dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24] } }).to_string();
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.bytes());
    weights.extend(vectors.iter().flatten().flat_map(|value| value.to_le_bytes()));
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("config.json"), "{}").unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.join("model.safetensors"), weights).unwrap();
}

#[test]
fn installed_model_is_the_one_in_use() {
    let files = tree("//- kb/studio/doc/hull.md\n# The hull\n\nThe hull is round.\n");
    write_model(&files.join("first"), [[1., 1.], [0., 1.], [1., 0.]]);
    write_model(&files.join("second"), [[1., 1.], [0., 2.], [2., 0.]]);
    let run = |arguments: &[&str]| {
        let mut command = command(files.path());
        let output = command.env("XDG_CACHE_HOME", files.join("cache")).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text.into_owned())
    };
    let (code, text) = run(&["kb", "model", "show"]);
    assert!(code == Some(1) && text.contains("no embedding model is installed"), "{text}");
    for name in ["first", "second", "first"] {
        let (code, text) = run(&["kb", "model", "install", name]);
        assert!(code == Some(0) && text.contains(&format!("{name} is the model in use")), "{text}");
        let (code, text) = run(&["kb", "model", "show"]);
        assert!(code == Some(0) && text.starts_with(&format!("{name} with 2 dimensions")), "{text}");
        let (code, text) = run(&["kb", "build"]);
        assert!(code == Some(0) && !text.contains("no embedding model"), "{text}");
        let (code, text) = run(&["kb", "search", "hull", "--format", "json"]);
        assert!(code == Some(0) && text.contains("\"degraded\": false"), "{text}");
    }
    fs::remove_dir_all(files.join("cache/quarterdeck/models/first")).unwrap();
    let (code, text) = run(&["kb", "model", "show"]);
    assert!(code == Some(1), "a model that is gone is not used: {text}");
}
