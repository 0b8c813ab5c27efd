//! The real model against vectors of another implementation, where the model is installed.

use std::env;

use quarterdeck_contracts::Embedder;
use quarterdeck_embedding::{DEFAULT_MODEL, Model, cache_directory, find_installed};
use serde::Deserialize;

#[derive(Deserialize)]
struct Known {
    text: String,
    begins: Vec<f32>,
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that could not check anything says so")]
#[expect(clippy::disallowed_methods, reason = "the model is installed on some machines only")]
fn the_installed_model_gives_the_vectors_of_the_reference() {
    let cache = cache_directory(env::var_os("XDG_CACHE_HOME").as_deref(), env::var_os("HOME").as_deref());
    let Some(folder) = cache.and_then(|cache| find_installed(&cache, DEFAULT_MODEL.name)) else {
        eprintln!("not checked: {} is not installed", DEFAULT_MODEL.name);
        return;
    };
    let model = Model::load(&folder).unwrap();
    assert_eq!((model.model().digest.as_str(), model.model().dimension), (DEFAULT_MODEL.digest, 384));
    let known: Vec<Known> = serde_json::from_str(include_str!("all-MiniLM-L6-v2.json")).unwrap();
    for Known { text, begins } in known {
        let vector = &model.embed(&[&text]).unwrap()[0];
        for (value, expected) in vector.iter().zip(&begins) {
            assert!((value - expected).abs() < 1e-5, "{text}: {:?} {begins:?}", &vector[..begins.len()]);
        }
    }
}
