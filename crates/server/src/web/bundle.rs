//! Joins modules into one, so that another site's page loads them in one request.
//!
//! This is no bundler: it reads our own modules, whose imports and exports have one form each, and a test fails when one
//! of the widget's modules has another. Each module becomes a function that is called once; comments and indentation,
//! which are a third of our sources, are left out.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// A module as it was read.
struct Module {
    /// The names that it takes, as a pattern, and the module that it takes them from.
    imports: Vec<(String, String)>,
    exports: Vec<String>,
    body: String,
}

/// A module with all that it imports, and the numbers by which a later bundle takes its modules.
pub(super) struct Bundle {
    pub(super) text: String,
    numbers: HashMap<String, usize>,
}

impl Bundle {
    /// The modules that `entry` imports, and its exports. What is in `first`, a bundle and the name that it is served by,
    /// is taken from there, so that it is loaded and run once.
    ///
    /// # Errors
    ///
    /// What is in the way: a file that does not exist, a circle, or a form of import or export that we do not use.
    pub(super) fn of<'a>(
        entry: &str,
        first: Option<(&Self, &str)>,
        read: &impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, String> {
        let mut joiner = Joiner { first, ..Joiner::new(read) };
        let number = joiner.add(entry)?;
        let exports = parse(entry, source(entry, read)?)?.exports.join(",");
        let taken: Vec<String> = joiner.taken.iter().map(|number| format!("m{number}")).collect();
        let head = match first {
            Some((_, name)) => format!("import{{{}}}from'./{name}';\n", taken.join(",")),
            None => String::new(),
        };
        let numbers = joiner.numbers.into_iter().filter_map(|(name, number)| Some((name, number?))).collect();
        Ok(Self { text: format!("{head}{}export const{{{exports}}}=m{number};\n", joiner.text), numbers })
    }
}

struct Joiner<'r, R> {
    first: Option<(&'r Bundle, &'r str)>,
    read: &'r R,
    /// `None` while the module's own imports are added.
    numbers: HashMap<String, Option<usize>>,
    /// The modules of the first bundle that are used.
    taken: BTreeSet<usize>,
    text: String,
}

impl<'r, 'a, R: Fn(&str) -> Option<&'a str>> Joiner<'r, R> {
    fn new(read: &'r R) -> Self {
        Self { first: None, read, numbers: HashMap::new(), taken: BTreeSet::new(), text: String::new() }
    }

    /// Adds a module after what it imports, and returns its number.
    fn add(&mut self, name: &str) -> Result<usize, String> {
        let first = self.first.map(|(first, _)| &first.numbers);
        if let Some(number) = first.and_then(|first| first.get(name)) {
            self.taken.insert(*number);
            return Ok(*number);
        }
        match self.numbers.get(name) {
            Some(Some(number)) => return Ok(*number),
            Some(None) => return Err(format!("`{name}` imports itself through others")),
            None => self.numbers.insert(name.to_owned(), None),
        };
        let module = parse(name, source(name, self.read)?)?;
        let mut head = String::new();
        for (names, from) in &module.imports {
            let number = self.add(&resolve(name, from)?)?;
            // Writing to a string cannot fail.
            let _ = if names.is_empty() { Ok(()) } else { write!(head, "const{{{names}}}=m{number};") };
        }
        let number = first.map_or(0, HashMap::len) + self.numbers.values().flatten().count();
        self.numbers.insert(name.to_owned(), Some(number));
        let (body, exports) = (address_as(name, &module.body), module.exports.join(","));
        let _ = writeln!(self.text, "export const m{number}=(()=>{{{head}\n{body}return{{{exports}}};}})();");
        Ok(number)
    }
}

/// A module keeps its own address, because its worklets are beside it. What it loads later is a bundle as well.
fn address_as(name: &str, body: &str) -> String {
    let body = body.replace("import.meta.url", &format!("new URL('../{name}',import.meta.url)"));
    let mut pieces = body.split("import('./");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let _ = write!(text, "import('./{}", piece.replacen(".js')", ".bundle.js')", 1));
    }
    text
}

fn source<'a>(name: &str, read: &impl Fn(&str) -> Option<&'a str>) -> Result<&'a str, String> {
    read(name).ok_or_else(|| format!("`{name}` does not exist"))
}

/// The name of the module that `from` means in the module `name`.
fn resolve(name: &str, from: &str) -> Result<String, String> {
    let mut folders: Vec<&str> = name.split('/').collect();
    folders.pop();
    for step in from.split('/') {
        match step {
            "." => {}
            ".." => {
                folders.pop().ok_or_else(|| format!("`{name}` imports `{from}`, which is outside"))?;
            }
            step => folders.push(step),
        }
    }
    Ok(folders.join("/"))
}

fn parse(name: &str, source: &str) -> Result<Module, String> {
    let mut module = Module { imports: Vec::new(), exports: Vec::new(), body: String::new() };
    let text = without_comments(source);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("import ") {
            let mut statement = line.to_owned();
            while !statement.ends_with(';') {
                statement.push_str(lines.next().ok_or_else(|| format!("`{name}`: an import has no end"))?);
            }
            let import = parse_import(&statement);
            module.imports.push(import.ok_or_else(|| format!("`{name}`: cannot join `{statement}`"))?);
        } else if let Some(declaration) = line.strip_prefix("export ") {
            let exported = exported(declaration);
            module
                .exports
                .push(exported.ok_or_else(|| format!("`{name}`: cannot join `{line}`"))?.to_owned());
            let _ = writeln!(module.body, "{declaration}");
        } else {
            let _ = writeln!(module.body, "{line}");
        }
    }
    Ok(module)
}

/// `import { a, b as c } from './d.js';` or `import './d.js';`.
fn parse_import(statement: &str) -> Option<(String, String)> {
    let rest = statement.strip_prefix("import ")?.strip_suffix("';")?;
    let (names, from) = rest.split_once('\'')?;
    if names.is_empty() {
        return Some((String::new(), from.to_owned()));
    }
    let names = names.trim().strip_suffix("from")?.trim().strip_prefix('{')?.strip_suffix('}')?;
    let pattern = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let pattern: Vec<String> = pattern.map(|name| name.replace(" as ", ":")).collect();
    Some((pattern.join(","), from.to_owned()))
}

/// The name that a declaration declares.
fn exported(declaration: &str) -> Option<&str> {
    let kinds = ["class ", "const ", "function ", "function* ", "async function ", "async function* "];
    let rest = kinds.iter().find_map(|kind| declaration.strip_prefix(kind))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '$')?;
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// A script or style without its comments, of which ours stand on lines of their own, and without indentation. The types
/// of casts, which stand inside a line, go too.
pub(super) fn without_comments(source: &str) -> String {
    let mut text = String::new();
    let mut is_comment = false;
    for line in source.lines().map(str::trim) {
        let line = match (is_comment || line.starts_with("/*"), line.find("*/")) {
            (true, Some(end)) => {
                is_comment = false;
                line[end + 2..].trim()
            }
            (true, None) => {
                is_comment = true;
                continue;
            }
            (false, _) => line,
        };
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        let _ = writeln!(text, "{}", without_casts(line));
    }
    text
}

fn without_casts(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("/** @") {
        let Some((_, after)) = after.split_once("*/") else { break };
        kept.push_str(before);
        rest = after.trim_start();
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn bundled(files: &[(&'static str, &'static str)]) -> Result<String, String> {
        let read = |name: &str| files.iter().find(|(found, _)| *found == name).map(|(_, text)| *text);
        Bundle::of(files[0].0, None, &read).map(|bundle| bundle.text)
    }

    #[test]
    fn modules_are_joined_after_what_they_import() {
        let joined = bundled(&[
            (
                "page/main.js",
                "// A comment.\nimport { a, b as c } from '../shared/one.js';\nimport {\n  d,\n} from './two.js';\n\nexport class Main {\n  /** @type {number} */\n  x = a(/** @type {any} */ (c), d);\n}\n",
            ),
            (
                "shared/one.js",
                "export function a() {}\n/* Two\n   lines. */\nexport const b = import.meta.url;\n",
            ),
            (
                "page/two.js",
                "import { a } from '../shared/one.js';\nexport async function* d() {\n  yield a();\n}\n",
            ),
        ]);
        expect![[r"
            export const m0=(()=>{
            function a() {}
            const b = new URL('../shared/one.js',import.meta.url);
            return{a,b};})();
            export const m1=(()=>{const{a}=m0;
            async function* d() {
            yield a();
            }
            return{d};})();
            export const m2=(()=>{const{a,b:c}=m0;const{d}=m1;
            class Main {
            x = a((c), d);
            }
            return{Main};})();
            export const{Main}=m2;
        "]]
        .assert_eq(&joined.unwrap());
    }

    #[test]
    fn a_later_bundle_takes_what_the_first_one_has() {
        let read = |name: &str| match name {
            "first.js" => {
                Some("import { a } from './one.js';\nexport const later = () => import('./later.js');\n")
            }
            "one.js" => Some("export const a = 1;\n"),
            "two.js" => Some("export const b = 2;\n"),
            "later.js" => Some(
                "import { a } from './one.js';\nimport { b } from './two.js';\nexport const c = a + b;\n",
            ),
            _ => None,
        };
        let first = Bundle::of("first.js", None, &read).unwrap();
        assert!(first.text.contains("import('./later.bundle.js')"));
        let later = Bundle::of("later.js", Some((&first, "first.bundle.js")), &read).unwrap();
        expect![[r"
            import{m0}from'./first.bundle.js';
            export const m2=(()=>{
            const b = 2;
            return{b};})();
            export const m3=(()=>{const{a}=m0;const{b}=m2;
            const c = a + b;
            return{c};})();
            export const{c}=m3;
        "]]
        .assert_eq(&later.text);
    }

    #[test]
    fn what_cannot_be_joined_is_named() {
        for (text, problem) in [
            ("import a from './b.js';", "cannot join `import a from './b.js';`"),
            ("export default 5;", "cannot join `export default 5;`"),
            ("export { a };", "cannot join `export { a };`"),
            ("import './no.js';", "`no.js` does not exist"),
            ("import '../no.js';", "which is outside"),
            ("import './a.js';", "imports itself"),
        ] {
            let error = bundled(&[("a.js", text)]).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
