//! The output that the authoring guide shows is the output that the command gives.

use quarterdeck_testkit::tree;

use crate::readme::check_block;
use crate::terminal::quarterdeck;

/// One folder, five mistakes of five kinds.
const REFUND: &str = r#"
    //- tools/refund/schema.json
    {
      "toolId": "refund",
      "version": "1.0.0",
      "description": "Looks up an order and pays its price back.",
      "category": "retrieval",
      "sideEffects": "writes",
      "idempotent": true,
      "requiresConfirmation": false,
      "allowedModes": ["text"],
      "latencyBudgetMs": 800,
      "timeout": 5000,
      "parameters": {
        "type": "object",
        "additionalProperties": false,
        "required": ["order"],
        "properties": {
          "order": { "type": "string", "minLenght": 8, "description": "The order number." },
          "reason": { "type": "string", "enum": ["broken", "late"], "description": "Why." }
        }
      }
    }
    //- tools/refund/guide.md
    # Refund

    Pays an order's price back. Use it when someone is entitled to their money.

    ## Examples

    ```json
    { "order": "FR-18930624", "reason": "unhappy" }
    ```
    //- tools/refund/handler.js
    import stripe from 'stripe';

    export async function execute({ args }) {
      return { ok: true, data: await stripe.refund(args.order) };
    }
"#;

#[test]
fn five_mistakes_read_well_and_are_shown_to_authors() {
    let files = tree(REFUND);
    let output = quarterdeck(files.path(), &["build"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
    check_block("tools/README.md", "five mistakes", "quarterdeck build", &printed);
}
