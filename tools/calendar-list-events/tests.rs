//! What the case files cannot say.

use quarterdeck_contracts::Event;
use quarterdeck_testkit::FakeContext;

use super::{Args, EventList, MAX_EVENTS, execute};
use crate::world::ready;

fn list(events: Vec<Event>) -> EventList {
    let context = FakeContext::new();
    context.set_events(events);
    let args = Args {
        start_date: "2026-01-13T00:00:00Z".into(),
        end_date: "2026-01-14T00:00:00Z".into(),
        calendars: vec!["primary".into()],
        query: String::new(),
    };
    ready(execute(args, context)).unwrap()
}

fn event(minute: usize) -> Event {
    Event {
        id: format!("event_{minute}"),
        start: format!("2026-01-13T{:02}:{:02}:00Z", minute / 60, minute % 60),
        end: "2026-01-13T23:00:00Z".into(),
        calendar: "primary".into(),
        changeable: true,
        ..Event::default()
    }
}

#[test]
fn a_long_list_is_cut_and_says_how_long_it_is() {
    let answer = list((0..70).map(event).collect());
    assert_eq!((answer.events.len(), answer.total), (MAX_EVENTS, 70));
    assert_eq!(answer.summary, "70 events, 50 of which can be moved or cancelled, the first 50 listed");
}

#[test]
fn an_empty_calendar_has_no_events() {
    let answer = list(Vec::new());
    assert_eq!(answer.summary, "0 events, 0 of which can be moved or cancelled");
}
