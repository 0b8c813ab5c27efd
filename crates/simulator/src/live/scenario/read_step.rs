//! Reads the steps of a turn.

use std::time::Duration;

use quarterdeck_json_fields::{Fault, Field, Fields};
use serde_json::{Map, Value};

use super::read::code;
use super::{Behaviour, CallId, Ending, ScriptedCall, Step};

/// The steps, by the field that names each.
const STEPS: [&str; 13] = [
    "say",
    "think",
    "call",
    "await",
    "cancel",
    "interrupt",
    "expectInterruption",
    "goAway",
    "drop",
    "wait",
    "frame",
    "malformed",
    "resumable",
];

pub(super) fn step(field: &Field<'_>) -> Result<Step, Fault> {
    let Some(fields) = field.value.as_object() else { return field.fault("an object") };
    let mut words = STEPS.iter().filter(|word| fields.contains_key(**word));
    let (Some(word), None) = (words.next(), words.next()) else {
        return Err((field.path.clone(), format!("must have exactly one of {}", STEPS.join(", "))));
    };
    let with = |more: &[&str]| field.object(&[&[*word, "on"], more].concat());
    let what = Field { value: &fields[*word], path: field.path.field(word) };
    let on = Field { value: fields.get("on").unwrap_or(&Value::Null), path: field.path.field("on") };
    let step = plain_step(word, &what, &with)?;
    Ok(match on.value {
        Value::Null => step,
        _ => Step::Only { on: on.number()? as usize, step: Box::new(step) },
    })
}

fn plain_step<'a>(
    word: &str,
    what: &Field<'a>,
    with: &dyn Fn(&[&str]) -> Result<Fields<'a>, Fault>,
) -> Result<Step, Fault> {
    Ok(match word {
        "say" => {
            let all = with(&["audio", "transcript"])?;
            let text = what.string()?.to_owned();
            Step::Say { text, audio: all.flag("audio")?, transcript: all.flag("transcript")? }
        }
        "think" => with(&[]).and(what.string()).map(|text| Step::Think(text.to_owned()))?,
        "call" => calls(what, &with(&["behavior", "with"])?)?,
        "await" => {
            let all = with(&["withinMs"])?;
            all.choice("await", &[("answers", ())])?;
            Step::Await { within: all.pause("withinMs")? }
        }
        "cancel" => with(&[]).and(cancelled(what))?,
        "interrupt" => with(&[]).and(what.must_be_true()).map(|()| Step::Interrupt)?,
        "expectInterruption" => {
            let all = with(&["withinMs"])?;
            what.must_be_true()?;
            Step::ExpectInterruption(all.pause("withinMs")?.unwrap_or(Duration::from_secs(10)))
        }
        "goAway" => with(&[]).and(going_away(what))?,
        "drop" => with(&[]).and(ending(what)).map(Step::Drop)?,
        "wait" => Step::Wait(with(&[])?.pause("wait")?.unwrap_or_default()),
        "frame" => {
            let after = with(&["afterMs"])?.pause("afterMs")?.unwrap_or_default();
            Step::Send { bytes: what.value.to_string().into_bytes(), after }
        }
        "malformed" => with(&[]).and(malformed(what))?,
        _ => match what.value {
            Value::Bool(is_resumable) => with(&[]).map(|_| Step::Resumable(*is_resumable))?,
            _ => return what.fault("true or false"),
        },
    })
}

fn calls(what: &Field<'_>, all: &Fields<'_>) -> Result<Step, Fault> {
    let calls = what.one_or_many().iter().map(call).collect::<Result<Vec<_>, _>>()?;
    let behaviours = [
        ("declared", None),
        ("blocking", Some(Behaviour::Blocking)),
        ("nonBlocking", Some(Behaviour::NonBlocking)),
    ];
    let with = match all.find("with") {
        None => Map::new(),
        Some(Field { value: Value::Object(with), .. }) => with.clone(),
        Some(other) => return other.fault("an object of what else is in the frame"),
    };
    Ok(Step::Call { calls, behaviour: all.choice("behavior", &behaviours)?, with })
}

fn call(field: &Field<'_>) -> Result<ScriptedCall, Fault> {
    let all = field.object(&["name", "id", "args"])?;
    Ok(ScriptedCall {
        id: match all.find("id") {
            None => CallId::Fresh,
            Some(Field { value: Value::Null, .. }) => CallId::Missing,
            Some(id) => CallId::Given(id.string()?.to_owned()),
        },
        name: all.needed("name")?.string()?.to_owned(),
        args: all.find("args").map(|args| args.value.clone()),
    })
}

fn cancelled(what: &Field<'_>) -> Result<Step, Fault> {
    if what.value == "all" {
        return Ok(Step::Cancel(None));
    }
    let ids = what.one_or_many();
    let ids = ids.iter().map(|id| id.string().map(str::to_owned)).collect::<Result<_, _>>()?;
    Ok(Step::Cancel(Some(ids)))
}

fn going_away(what: &Field<'_>) -> Result<Step, Fault> {
    let all = what.object(&["leftMs", "closesAfterMs", "code", "reason"])?;
    let left = all.pause("leftMs")?;
    let closes_after = all.pause("closesAfterMs")?.or(left).unwrap_or(Duration::from_secs(10));
    let reason = all.text("reason")?.unwrap_or("The session has reached its time limit.").to_owned();
    let ending = Ending::Close(code(&all)?.unwrap_or(1001), reason);
    Ok(Step::GoAway { left, closes_after, ending })
}

fn ending(what: &Field<'_>) -> Result<Ending, Fault> {
    if what.value == &Value::Bool(true) {
        return Ok(Ending::Abort);
    }
    let all = what.object(&["code", "reason"])?;
    Ok(Ending::Close(code(&all)?.unwrap_or(1011), all.text("reason")?.unwrap_or_default().to_owned()))
}

fn malformed(what: &Field<'_>) -> Result<Step, Fault> {
    let bytes = match what.value {
        Value::Object(_) => {
            let coded = what.object(&["base64"])?.needed("base64")?;
            let bytes = base64_simd::STANDARD.decode_to_vec(coded.string()?);
            bytes.map_err(|_| (coded.path, "is no base64".to_owned()))?
        }
        _ => what.string()?.as_bytes().to_vec(),
    };
    Ok(Step::Send { bytes, after: Duration::ZERO })
}
