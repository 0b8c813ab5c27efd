//! Whether the tools' schemas list the configured calendars.

use quarterdeck_runtime::Snapshot;
use serde_json::Value;

/// Warns about tools whose schema lists other calendars than the configuration: such a calendar can be booked but not
/// queried, or the other way round.
pub(crate) fn warn_about_unlisted(snapshot: &Snapshot, configured: &[String]) {
    for tool in snapshot.tools() {
        if let Some(listed) = differing(&tool.compiled().json_schema, configured) {
            tracing::warn!(
                tool = tool.metadata().tool_id.as_str(),
                listed = listed.join(", "),
                configured = configured.join(", "),
                "tool lists other calendars than `calendar.calendars`; change its schema.json or the configuration"
            );
        }
    }
}

/// The calendars that a tool's parameters list, if they differ from the configured ones.
fn differing<'a>(parameters: &'a Value, configured: &[String]) -> Option<Vec<&'a str>> {
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
    fn built_in_tools_list_the_default_calendars() {
        let schema = include_str!("../../../tools/calendar-get-availability/schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let parameters = &schema["parameters"];
        assert_eq!(differing(parameters, &CalendarConfig::default().calendars), None);
        let listed = Some(vec!["primary", "team", "personal"]);
        assert_eq!(differing(parameters, &["primary".into(), "office".into()]), listed);
        assert_eq!(
            differing(parameters, &["primary".into()]),
            listed,
            "`team` would be refused when it is asked about"
        );
        assert_eq!(differing(&serde_json::json!({ "type": "object" }), &["office".into()]), None);
    }
}
