//! Reads a scenario from JSON.

use std::time::Duration;

use quarterdeck_json_fields::{Fault, Field, Fields};
use serde_json::{Map, Value};

use super::read_step::step;
use super::{
    ConnectionRule, DisconnectAfter, FrameKind, Interruption, Pace, Refusal, Scenario, ScenarioError,
    ScriptedTurn, TurnEnd, TurnTrigger,
};

pub(super) fn scenario(text: &str) -> Result<Scenario, ScenarioError> {
    quarterdeck_json_fields::read(text, "the scenario", read)
}

fn read(root: &Field<'_>) -> Result<Scenario, Fault> {
    if let Value::Array(_) = root.value {
        let turns = Field { value: root.value, path: root.path.field("turns") };
        return Ok(Scenario { turns: all_turns(&turns)?, ..empty() });
    }
    let known = ["about", "frames", "silenceMs", "audio", "turnEnds", "atEnd", "connections", "turns"];
    let all = root.object(&known)?;
    all.text("about")?;
    let mut pace = all.find("audio").map(|audio| pace(&audio)).transpose()?.unwrap_or_default();
    pace.waits_for_playback = all.choice("turnEnds", &[("heard", true), ("said", false)])?;
    let connections = all.find("connections").map(|list| list.items()).transpose()?.unwrap_or_default();
    let turns = all_turns(&all.needed("turns")?)?;
    let repeats = all.choice("atEnd", &[("silent", false), ("again", true)])?;
    if repeats && turns.iter().all(|turn| turn.trigger == TurnTrigger::Start) {
        return Err(all.wrong("atEnd", "“again” needs a turn that waits for the client"));
    }
    Ok(Scenario {
        turns,
        repeats,
        frame_kind: all.choice("frames", &[("binary", FrameKind::Binary), ("text", FrameKind::Text)])?,
        silence: all.pause("silenceMs")?,
        pace,
        connections: connections.iter().map(connection).collect::<Result<_, _>>()?,
        disconnects: Vec::new(),
    })
}

fn empty() -> Scenario {
    Scenario {
        turns: Vec::new(),
        repeats: false,
        frame_kind: FrameKind::Binary,
        silence: None,
        pace: Pace::default(),
        connections: Vec::new(),
        disconnects: Vec::new(),
    }
}

fn pace(field: &Field<'_>) -> Result<Pace, Fault> {
    let all = field.object(&["partMs", "partsPerFrame", "speed"])?;
    let usual = Pace::default();
    let within = |name: &str, usual: u64, most: u64| match all.find(name).map(|it| it.number()).transpose()? {
        None => Ok(usual),
        Some(number) if number <= most => Ok(number),
        Some(_) => Err(all.wrong(name, &format!("must be at most {most}"))),
    };
    let part = within("partMs", 40, 1_000)?.max(1);
    Ok(Pace {
        part: Duration::from_millis(part),
        parts_per_frame: within("partsPerFrame", usual.parts_per_frame as u64, 100)?.max(1) as usize,
        speed: within("speed", u64::from(usual.speed), 1_000)? as u32,
        waits_for_playback: usual.waits_for_playback,
    })
}

fn connection(field: &Field<'_>) -> Result<ConnectionRule, Fault> {
    let all = field.object(&["nth", "refuse", "setupDelayMs", "cut", "beginsAt"])?;
    let counted = |name: &str| match all.find(name).map(|it| it.number()).transpose()? {
        Some(0) => Err(all.wrong(name, "is counted from 1")),
        number => Ok(number.map(|number| number as usize)),
    };
    Ok(ConnectionRule {
        nth: counted("nth")?,
        refusal: all.find("refuse").map(|it| refusal(&it)).transpose()?,
        setup_delay: all.pause("setupDelayMs")?.unwrap_or_default(),
        cut: all.find("cut").map(|it| cut(&it)).transpose()?,
        begins_at: counted("beginsAt")?.map(|nth| nth - 1),
    })
}

fn refusal(field: &Field<'_>) -> Result<Refusal, Fault> {
    let all = field.object(&["status", "code", "reason"])?;
    let reason = all.text("reason")?.unwrap_or("the scenario says so").to_owned();
    match all.find("status") {
        Some(status) => match status.number()? {
            number @ 400..=599 => Ok(Refusal::Http(number as u16, reason)),
            _ => Err((status.path, "must be an HTTP status from 400 to 599".into())),
        },
        None => Ok(Refusal::Close(code(&all)?.unwrap_or(1008), reason)),
    }
}

fn cut(field: &Field<'_>) -> Result<DisconnectAfter, Fault> {
    let all = field.object(&["afterSent", "afterReceived"])?;
    match (all.find("afterSent"), all.find("afterReceived")) {
        (Some(sent), None) => Ok(DisconnectAfter::Sent(sent.number()? as usize)),
        (None, Some(received)) => Ok(DisconnectAfter::Received(received.number()? as usize)),
        _ => Err((field.path.clone(), "must have either “afterSent” or “afterReceived”".into())),
    }
}

fn all_turns(field: &Field<'_>) -> Result<Vec<ScriptedTurn>, Fault> {
    field.items()?.iter().map(turn).collect()
}

fn turn(field: &Field<'_>) -> Result<ScriptedTurn, Fault> {
    let all = field.object(&["about", "begins", "containing", "heard", "steps", "interruption", "end"])?;
    all.text("about")?;
    let begins = [
        TurnTrigger::Anything,
        TurnTrigger::Speech,
        TurnTrigger::Text,
        TurnTrigger::Content,
        TurnTrigger::Start,
        TurnTrigger::Answers,
    ];
    let heard = all.find("heard").map(|it| it.one_or_many()).unwrap_or_default();
    let steps = all.find("steps").map(|it| it.items()).transpose()?.unwrap_or_default();
    let interruptions =
        [("keep", Interruption::Keep), ("cancel", Interruption::Cancel), ("ignore", Interruption::Ignore)];
    Ok(ScriptedTurn {
        trigger: all.choice("begins", &begins.map(|it| (it.word(), it)))?,
        containing: all.text("containing")?.map(str::to_lowercase),
        heard: heard.iter().map(|piece| piece.string().map(str::to_owned)).collect::<Result<_, _>>()?,
        steps: steps.iter().map(step).collect::<Result<_, _>>()?,
        interruption: all.choice("interruption", &interruptions)?,
        end: match all.find("end") {
            None => TurnEnd::Complete(Map::new()),
            Some(Field { value: Value::Object(beside), .. }) => TurnEnd::Complete(beside.clone()),
            Some(Field { value: Value::String(word), .. }) if word == "never" => TurnEnd::Never,
            Some(other) => return other.fault("an object of what comes with “turnComplete”, or “never”"),
        },
    })
}

/// The code of a close frame.
pub(super) fn code(all: &Fields<'_>) -> Result<Option<u16>, Fault> {
    match all.find("code").map(|code| code.number()).transpose()? {
        None => Ok(None),
        Some(code @ (1000..=1003 | 1007..=1014 | 3000..=4999)) => Ok(Some(code as u16)),
        Some(_) => Err(all.wrong("code", "may not be sent; 1001, 1007, 1008, 1011 and 1013 are usual")),
    }
}
