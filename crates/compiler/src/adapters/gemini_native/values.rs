//! Listed values and formats: kept where the dialect has them, told in the description where not (rules 9, 10, 14).

use super::converter::Converter;
use super::form::{Kind, Single};
use super::node::Node;
use crate::distinct::distinct;

impl<'a> Converter<'a> {
    /// `enum` and `const`. The dialect lists only text, and no empty one; a number turned to text would make the
    /// model send text, which the original refuses, so other values become a sentence.
    pub(super) fn tell_values(&mut self, node: &Node<'a>, single: &mut Single) {
        let Some(values) = &node.values else { return };
        single.nullable |= values.iter().any(|value| value.is_null());
        let listed = distinct(values.iter().filter(|value| !value.is_null()));
        if listed.is_empty() {
            return;
        }
        let texts: Option<Vec<_>> = listed
            .iter()
            .map(|value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned))
            .collect();
        match texts {
            Some(texts) if single.kind == Kind::String => single.values = texts,
            _ => {
                let listed: Vec<_> = listed.iter().map(ToString::to_string).collect();
                single.hint(&format!("Allowed values: {}.", listed.join(", ")));
                self.notes.add("non-string enum", &self.place_of_values(node));
            }
        }
    }

    /// `date-time` beside listed values is told as well: the dialect takes either.
    pub(super) fn tell_format(&mut self, node: &Node<'a>, single: &mut Single) {
        let (Some(format), Some(place)) = (node.text("format"), node.get("format")) else { return };
        let kept = match single.kind {
            Kind::String => format == "date-time" && single.values.is_empty(),
            Kind::Number => matches!(format, "float" | "double"),
            Kind::Integer => matches!(format, "int32" | "int64"),
            _ => false,
        };
        if kept {
            single.format = Some(format.to_owned());
        } else {
            single.hint(&format!("Format: {format}."));
            self.notes.add("format", &place.at);
        }
    }

    fn place_of_values(&self, node: &Node<'a>) -> String {
        // The literals of a union are written in its branches.
        let place = ["const", "enum", "anyOf", "oneOf"].iter().find_map(|keyword| node.get(keyword));
        place.map_or_else(|| node.at.clone(), |place| place.at.clone())
    }
}
