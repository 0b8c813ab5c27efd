//! Where in a script something stands.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;

/// The way to a value.
#[derive(Debug, Clone, Default)]
pub(super) struct Place(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Field(String),
    Item(usize),
}

impl Place {
    pub(super) fn field(&self, name: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Field(name.to_owned()));
        Self(steps)
    }

    pub(super) fn item(&self, nth: usize) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Item(nth));
        Self(steps)
    }

    /// The line of the value, or of the innermost value around it when it is missing. The text must be JSON: whoever
    /// has parsed it knows that it does not nest too deeply.
    pub(super) fn line(&self, text: &str) -> usize {
        let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &Default::default());
        let root = parsed.ok().and_then(|parsed| parsed.value);
        let mut start = 0;
        let mut here = root.as_ref();
        if let Some(value) = here {
            start = value.range().start;
        }
        // A bare list stands for its replies.
        let is_bare = matches!(here, Some(ast::Value::Array(_)));
        for step in self.0.iter().skip(usize::from(is_bare)) {
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

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the script");
        }
        for (nth, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if nth == 0 => write!(f, "{name}")?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}
