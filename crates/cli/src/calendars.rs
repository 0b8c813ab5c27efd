//! Whether the tools and the configuration speak of the same calendars.

use quarterdeck_runtime::Snapshot;
use serde_json::Value;

/// Warns of every tool that lists calendars in its schema, and not those of the site: the schema cannot know the
/// configuration, and what it does not list can be booked and not be asked about.
pub(crate) fn warn_of_others(snapshot: &Snapshot, configured: &[String]) {
    for tool in snapshot.tools() {
        if let Some(listed) = others(&tool.compiled().json_schema, configured) {
            tracing::warn!(
                tool = tool.metadata().tool_id.as_str(),
                listed = listed.join(", "),
                configured = configured.join(", "),
                "a tool lists other calendars than `calendar.calendars`; change the list in its schema.json, or the configuration"
            );
        }
    }
}

/// The calendars that a tool's parameters list, if they are others than these.
fn others<'a>(parameters: &'a Value, configured: &[String]) -> Option<Vec<&'a str>> {
    let places = ["/properties/calendars/items/enum", "/properties/calendar/enum"];
    let listed = places.iter().find_map(|place| parameters.pointer(place)?.as_array())?;
    let listed: Vec<_> = listed.iter().filter_map(Value::as_str).collect();
    let is_same = listed.len() == configured.len() && configured.iter().all(|name| listed.contains(&&**name));
    (!is_same).then_some(listed)
}

#[cfg(test)]
mod tests {
    use quarterdeck_calendar::CalendarConfig;

    use super::*;

    #[test]
    fn the_built_in_tools_list_the_usual_calendars_and_no_others() {
        let schema = include_str!("../../../tools/calendar-get-availability/schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let parameters = &schema["parameters"];
        assert_eq!(others(parameters, &CalendarConfig::default().calendars), None);
        let listed = Some(vec!["primary", "team", "personal"]);
        assert_eq!(others(parameters, &["primary".into(), "office".into()]), listed);
        assert_eq!(
            others(parameters, &["primary".into()]),
            listed,
            "`team` would be refused when it is asked about"
        );
        assert_eq!(others(&serde_json::json!({ "type": "object" }), &["office".into()]), None);
    }
}
