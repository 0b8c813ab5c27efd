//! What the user is asked, and what counts as an approval.

use std::fmt::Write;

use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest, shown_arguments};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitationSchema, InputResponses, PrimitiveSchemaDefinition,
};
use serde_json::Value;

/// The name of the question, and of its one field.
pub(crate) const FIELD: &str = "confirm";

/// The question as a form with one field to tick.
pub(crate) fn form(request: &ConfirmationRequest) -> ElicitRequest {
    let field = rmcp::model::BooleanSchema::new().title("Approve this call").with_default(false);
    let schema = ElicitationSchema::builder()
        .required_property(FIELD, PrimitiveSchemaDefinition::Boolean(field))
        .build_unchecked();
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(request),
        requested_schema: schema,
    })
}

/// Everything that would be done. The values are JSON, so that none of them begins a line that looks like ours.
pub(crate) fn message(request: &ConfirmationRequest) -> String {
    let mut text = format!("Your approval is needed: {}\n", request.preview);
    // Writing to a string cannot fail.
    if let Some(reason) = &request.reason {
        let _ = writeln!(text, "{reason}");
    }
    let _ = write!(
        text,
        "\n`{}` would be run with exactly these arguments:\n{}",
        request.tool,
        shown_arguments(&request.args)
    );
    text
}

/// What the user has answered: the form sent with its field ticked approves, everything else denies.
pub(crate) fn decision(action: &Value, content: Option<&Value>) -> ConfirmationAnswer {
    let is_ticked = content.and_then(|content| content.get(FIELD)) == Some(&Value::Bool(true));
    if action == "accept" && is_ticked { ConfirmationAnswer::Approve } else { ConfirmationAnswer::Deny }
}

/// What a client that was asked to come back says; `None` if the answer to the question is not there.
pub(crate) fn decision_in(responses: Option<&InputResponses>) -> Option<ConfirmationAnswer> {
    let response = responses?.get(FIELD)?;
    Some(decision(response.get("action").unwrap_or(&Value::Null), response.get("content")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;
    use proptest::prelude::*;
    use quarterdeck_contracts::ConfirmBy;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_question_shows_everything_that_would_be_done() {
        let request = ConfirmationRequest {
            token: None,
            expires: 0,
            tool: "pay".into(),
            args: json!({ "what": "rent\n`pay` would be run with: {}", "to": "a\u{200b}b" }),
            preview: "Pay the rent.".into(),
            reason: Some("More than 100 EUR.".into()),
            confirm_by: ConfirmBy::Any,
            code: None,
        };
        expect![[r#"
            Your approval is needed: Pay the rent.
            More than 100 EUR.

            `pay` would be run with exactly these arguments:
            {
              "what": "rent\n`pay` would be run with: {}",
              "to": "a⟨U+200B⟩b"
            }"#]]
        .assert_eq(&message(&request));
        let form = serde_json::to_value(form(&request)).unwrap();
        assert_eq!(form["params"]["mode"], "form");
        assert_eq!(
            form["params"]["requestedSchema"],
            json!({
                "type": "object", "required": ["confirm"],
                "properties": { "confirm": { "type": "boolean", "title": "Approve this call", "default": false } },
            })
        );
    }

    #[test]
    fn only_an_accepted_form_with_its_field_ticked_approves() {
        let accept = json!("accept");
        assert_eq!(decision(&accept, Some(&json!({ "confirm": true }))), ConfirmationAnswer::Approve);
        for (action, content) in [
            (json!("accept"), json!({ "confirm": false })),
            (json!("accept"), json!({ "confirm": "true" })),
            (json!("accept"), json!({ "confirm": 1 })),
            (json!("accept"), json!({ "Confirm": true })),
            (json!("accept"), json!({})),
            (json!("accept"), json!(true)),
            (json!("accept"), json!(["confirm", true])),
            (json!("decline"), json!({ "confirm": true })),
            (json!("cancel"), json!({ "confirm": true })),
            (json!("Accept"), json!({ "confirm": true })),
            (Value::Null, json!({ "confirm": true })),
        ] {
            assert_eq!(decision(&action, Some(&content)), ConfirmationAnswer::Deny, "{action} {content}");
        }
        assert_eq!(decision(&accept, None), ConfirmationAnswer::Deny);
    }

    #[test]
    fn an_answer_to_another_question_is_none_to_ours() {
        assert_eq!(decision_in(None), None);
        assert_eq!(decision_in(Some(&BTreeMap::new())), None);
        let accepted = json!({ "action": "accept", "content": { "confirm": true } });
        assert_eq!(decision_in(Some(&BTreeMap::from([("other".into(), accepted.clone())]))), None);
        assert_eq!(
            decision_in(Some(&BTreeMap::from([(FIELD.into(), accepted)]))),
            Some(ConfirmationAnswer::Approve)
        );
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop_oneof![Just("accept".to_owned()), Just("true".to_owned()), any::<String>()]
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let key = prop_oneof![
                Just("confirm".to_owned()),
                Just("action".to_owned()),
                Just("content".to_owned()),
                "[a-z]{1,3}"
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_else_a_client_answers_denies(response in json()) {
            let approves = response["action"] == "accept" && response["content"]["confirm"] == true;
            let decided = decision_in(Some(&BTreeMap::from([(FIELD.into(), response)])));
            prop_assert_eq!(decided == Some(ConfirmationAnswer::Approve), approves);
        }
    }
}
