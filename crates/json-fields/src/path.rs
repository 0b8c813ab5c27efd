//! Paths of values in a file, and their lines.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;

/// The path of a value.
#[derive(Debug, Clone)]
pub struct Path {
    /// What errors call the file.
    file: &'static str,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Field(String),
    Item(usize),
}

impl Path {
    pub fn root(file: &'static str) -> Self {
        Self { file, steps: Vec::new() }
    }

    pub fn field(&self, name: &str) -> Self {
        self.then(Step::Field(name.to_owned()))
    }

    pub fn item(&self, nth: usize) -> Self {
        self.then(Step::Item(nth))
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { file: self.file, steps }
    }

    /// The line of the value, or of the innermost value around it when it is missing. The text must have been parsed
    /// before, so that it is known not to nest too deeply.
    pub fn line(&self, text: &str) -> usize {
        let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &Default::default());
        let root = parsed.ok().and_then(|parsed| parsed.value);
        let mut start = 0;
        let mut here = root.as_ref();
        if let Some(value) = here {
            start = value.range().start;
        }
        // A file that is a list stands for an object with that list.
        let is_bare = matches!(here, Some(ast::Value::Array(_)));
        for step in self.steps.iter().skip(usize::from(is_bare)) {
            here = match (step, here) {
                (Step::Field(name), Some(ast::Value::Object(object))) => {
                    let property = object.properties.iter().find(|it| it.name.as_str() == name);
                    if let Some(property) = property {
                        start = property.range().start;
                    }
                    property.map(|it| &it.value)
                }
                (Step::Item(nth), Some(ast::Value::Array(array))) => {
                    let item = array.elements.get(*nth);
                    if let Some(item) = item {
                        start = item.range().start;
                    }
                    item
                }
                _ => None,
            };
        }
        text.get(..start).map_or(1, |before| before.matches('\n').count() + 1)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.steps.is_empty() {
            return f.write_str(self.file);
        }
        for (nth, step) in self.steps.iter().enumerate() {
            match step {
                Step::Field(name) if nth == 0 => write!(f, "{name}")?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}
