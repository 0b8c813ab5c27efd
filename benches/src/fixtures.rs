//! One schema, one set of arguments, one handler: the same for us and for every peer.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// How many different calls there are.
pub(crate) const VARIANTS: usize = 1024;

pub(crate) struct Fixtures {
    pub(crate) schema: Value,
    /// The arguments as text, each a little different.
    pub(crate) texts: Vec<String>,
    pub(crate) handler: String,
}

impl Fixtures {
    /// The arguments, parsed.
    pub(crate) fn values(&self) -> Vec<Value> {
        self.texts.iter().map(|text| serde_json::from_str(text).expect("the arguments are JSON")).collect()
    }
}

pub(crate) fn read(folder: &Path) -> Fixtures {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let base = read("kb_search.args.json");
    Fixtures {
        schema: serde_json::from_str(&read("kb_search.schema.json")).expect("the schema is JSON"),
        texts: (0..VARIANTS).map(|number| base.trim().replace("0000", &format!("{number:04}"))).collect(),
        handler: read("handler.mjs"),
    }
}
