//! `ARCHITECTURE.md` and `CONTRIBUTING.md` name only files that exist.

use std::fs;
use std::path::Path;

/// Paths of everything in the repository that is not built or fetched, with `/` in front.
fn paths_below(folder: &Path, root: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if ["target", ".git", "node_modules"].iter().any(|skipped| name == *skipped) {
            continue;
        }
        let path = entry.path();
        let relative = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        if path.is_dir() {
            found.push(format!("/{relative}/"));
            paths_below(&path, root, found);
        } else {
            found.push(format!("/{relative}"));
        }
    }
}

/// Names in backticks that look like files or folders of ours, but for templates such as `<provider>/request.rs`.
fn named_paths(page: &str) -> impl Iterator<Item = &str> {
    const ENDINGS: [&str; 6] = [".rs", ".js", ".md", ".toml", ".ts", "/"];
    let code = page.split("```").step_by(2).flat_map(|text| text.split('`').skip(1).step_by(2));
    code.filter(|name| {
        ENDINGS.iter().any(|ending| name.ends_with(ending))
            && !name.starts_with(['.', '/'])
            && !name.contains(['<', '{', ' ', '…', '*'])
            && !name.contains("NAME")
    })
}

#[test]
fn every_file_that_the_architecture_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut paths = Vec::new();
    paths_below(&root, &root, &mut paths);
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let named: Vec<_> = named_paths(&text).collect();
        assert!(named.len() > 10, "{page} names {}", named.len());
        let missing: Vec<_> = named
            .into_iter()
            .filter(|name| !paths.iter().any(|path| path.ends_with(&format!("/{name}"))))
            .collect();
        assert_eq!(missing, [""; 0], "{page} names files that do not exist");
    }
}
