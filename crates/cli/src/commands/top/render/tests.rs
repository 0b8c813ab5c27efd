use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::super::reading::{AlarmRow, FirstAudio, Sessions};
use super::*;

const TERMINAL: Size = Size { columns: 80, rows: 24 };

fn tool(id: &str, health: &str, calls: u64) -> ToolRow {
    ToolRow {
        id: id.to_owned(),
        health: health.to_owned(),
        calls,
        recent_calls: calls,
        errors: calls / 10,
        refused: calls / 20,
        p50: 7.25,
        p95: 412.6,
    }
}

fn reading(now_ms: u64, calls: u64) -> Reading {
    Reading {
        now_ms,
        registry: "1.0.287d0f29".into(),
        sessions: Sessions { text: 2, voice: 1, total: 41, turns: 120 },
        model: "openai/gpt".into(),
        voice: Some("gemini/live".into()),
        first_audio: Some(FirstAudio { p50: 640.2, p95: 1_210.0 }),
        tools: vec![tool("kb_search", "well", calls), tool("image_generate", "idle", 0)],
        ..Reading::default()
    }
}

fn view(readings: impl IntoIterator<Item = Reading>) -> View {
    let mut view = View::new("127.0.0.1:8080".into());
    readings.into_iter().for_each(|reading| view.update(Ok(reading)));
    view
}

const NINE: u64 = 1_768_294_800_000;

fn check(view: &View, size: Option<Size>, expected: Expect) {
    expected.assert_eq(&to_text(&render(view, size)));
}

#[test]
fn a_busy_server_fits_a_small_terminal() {
    let view = view([reading(NINE, 1_200), reading(NINE + 2_000, 1_207)]);
    check(
        &view,
        Some(TERMINAL),
        expect![[r#"
        quarterdeck top   127.0.0.1:8080   2026-01-13T09:00:02Z   registry 1.0.287d0f29…
        sessions  2 text, 1 voice; 41 since the start, 120 turns
        calls     3.5/s; 1207 since the start, 120 failed, 60 refused
        model     openai/gpt
        voice     gemini/live; first audio p50 640 ms, p95 1210 ms
        alarms    none

        TOOL                    HEALTH    CALLS      /S  FAILED REFUSED  P50 MS  P95 MS
        kb_search               well       1207     3.5     120      60     7.2     413
        image_generate          idle          0     0.0       0       0     7.2     413
        q ends
    "#]],
    );
}

#[test]
fn trouble_is_told_before_the_tools() {
    let alarm = |number: u32, state: &str| AlarmRow {
        id: format!("tool_errors:tool=t{number}"),
        severity: "critical".into(),
        state: state.into(),
        summary: "A tool fails more often than it should, and that for longer than a while".into(),
    };
    let view = view([Reading {
        trouble: Some("unreachable, 7 in a row; no model answers".into()),
        voice: None,
        lost_audit_lines: 3,
        alarms: (0..8).map(|number| alarm(number, "firing")).collect(),
        tools: vec![tool("pay", "failing", 123_456), tool("look", "slow", 12_345_678)],
        ..reading(NINE, 0)
    }]);
    check(
        &view,
        Some(TERMINAL),
        expect![[r#"
        quarterdeck top   127.0.0.1:8080   2026-01-13T09:00:00Z   registry 1.0.287d0f29…
        sessions  2 text, 1 voice; 41 since the start, 120 turns
        calls     -/s; 12M since the start, 1246k failed, 623k refused
        model     openai/gpt: FAILING (unreachable, 7 in a row; no model answers)
        voice     off
        audit     3 lines lost
        alarm     CRITICAL firing tool_errors:tool=t0: A tool fails more often than it …
        alarm     CRITICAL firing tool_errors:tool=t1: A tool fails more often than it …
        alarm     CRITICAL firing tool_errors:tool=t2: A tool fails more often than it …
        alarm     CRITICAL firing tool_errors:tool=t3: A tool fails more often than it …
        alarm     CRITICAL firing tool_errors:tool=t4: A tool fails more often than it …
                  3 more; `quarterdeck alerts` lists them

        TOOL                    HEALTH    CALLS      /S  FAILED REFUSED  P50 MS  P95 MS
        pay                     failing    123k       -   12345    6172     7.2     413
        look                    slow        12M       -   1234k    617k     7.2     413
        q ends
    "#]],
    );
    let tones: Vec<Tone> = render(&view, Some(TERMINAL)).iter().map(|line| line.tone).collect();
    assert!(tones.contains(&Tone::Alarm) && tones.contains(&Tone::Warning));
}

#[test]
fn a_server_that_has_gone_is_said_to_have_and_its_last_figures_stay() {
    let mut view = view([reading(NINE, 1), reading(NINE + 1_000, 2)]);
    for _ in 0..3 {
        view.update(Err(anyhow::anyhow!("no server answers on 127.0.0.1:8080\nhelp: start it")));
    }
    check(
        &view,
        Some(TERMINAL),
        expect![[r#"
        quarterdeck top   127.0.0.1:8080   2026-01-13T09:00:01Z   registry 1.0.287d0f29…
        NO ANSWER (3 times): no server answers on 127.0.0.1:8080; below is what it said…
        sessions  2 text, 1 voice; 41 since the start, 120 turns
        calls     -/s; 2 since the start, 0 failed, 0 refused
        model     openai/gpt
        voice     gemini/live; first audio p50 640 ms, p95 1210 ms
        alarms    none

        TOOL                    HEALTH    CALLS      /S  FAILED REFUSED  P50 MS  P95 MS
        kb_search               well          2       -       0       0     7.2     413
        image_generate          idle          0       -       0       0     7.2     413
        q ends
    "#]],
    );
    assert!(render(&view, Some(TERMINAL)).iter().all(|line| line.tone != Tone::Plain), "they are not of now");
    view.update(Ok(reading(NINE + 9_000, 2)));
    let text = to_text(&render(&view, Some(TERMINAL)));
    assert!(!text.contains("NO ANSWER") && text.contains("calls     -/s"), "{text}");
}

#[test]
fn before_the_first_answer_there_is_a_line_that_says_so() {
    let mut view = view([]);
    check(
        &view,
        Some(TERMINAL),
        expect![[r#"
        quarterdeck top   127.0.0.1:8080
        asking the server
        q ends
    "#]],
    );
    view.update(Err(anyhow::anyhow!("the server needs its admin token\nhelp: …")));
    check(
        &view,
        Some(TERMINAL),
        expect![[r#"
        quarterdeck top   127.0.0.1:8080
        NO ANSWER (once): the server needs its admin token
        q ends
    "#]],
    );
}

#[test]
fn tools_that_have_no_room_are_counted() {
    let tools = (0..50).map(|number| tool(&format!("tool_{number:02}"), "well", 1)).collect();
    let view = view([Reading { tools, ..reading(NINE, 0) }]);
    let lines = render(&view, Some(TERMINAL));
    assert_eq!(lines.len(), TERMINAL.rows);
    assert_eq!(lines[TERMINAL.rows - 2].text, "36 more tools");
    assert_eq!(lines[TERMINAL.rows - 1].text, "q ends");
    let all = to_text(&render(&view, None));
    assert!(all.contains("tool_49") && !all.contains("more tools") && !all.contains("q ends"), "{all}");
}

proptest! {
    #[test]
    fn no_size_is_overrun(
        columns in 0_usize..200,
        rows in 0_usize..60,
        tools in 0_usize..80,
        alarms in 0_usize..10,
        name in "[a-zäß…]{0,90}",
        is_gone in any::<bool>(),
    ) {
        let mut view = view([Reading {
            tools: vec![tool(&name, "well", u64::MAX / 200); tools],
            alarms: vec![AlarmRow { id: name.clone(), ..AlarmRow::default() }; alarms],
            ..reading(NINE, 0)
        }]);
        if is_gone {
            view.update(Err(anyhow::anyhow!("{name}")));
        }
        let lines = render(&view, Some(Size { columns, rows }));
        prop_assert!(lines.len() <= rows);
        prop_assert!(lines.iter().all(|line| line.text.chars().count() <= columns));
    }
}
