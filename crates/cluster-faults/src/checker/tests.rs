//! The checker finds what is planted, and nothing where nothing is.

use super::*;

/// Three asks of one client in one session: done, unknown and done outside, not done.
fn honest() -> Evidence {
    let ask = |told| Ask { client: "c1".into(), session: "s1".into(), told, story: Vec::new() };
    let effect = |key: &str, receipt| Effect { key: key.into(), session: "s1".into(), receipt };
    let call = |key: &str, is_ok| LedgerCall { key: key.into(), session: "s1".into(), is_ok };
    Evidence {
        asks: [
            ("c1-1".to_owned(), ask(vec![Told::Done(Some(1))])),
            ("c1-2".to_owned(), ask(vec![Told::Unknown])),
            ("c1-3".to_owned(), ask(vec![Told::NotDone("TRANSIENT".into())])),
            ("c1-4".to_owned(), ask(vec![Told::Unknown, Told::Done(Some(3))])),
        ]
        .into(),
        strays: Vec::new(),
        effects: vec![effect("c1-1", 1), effect("c1-2", 2), effect("c1-4", 3)],
        calls: vec![call("c1-1", true), call("c1-2", false), call("c1-4", true)],
        values: [("c1-1".to_owned(), 1), ("c1-4".to_owned(), 3)].into(),
    }
}

type Plant = fn(&mut Evidence);

const PLANTS: [(&str, Plant); 13] = [
    ("done 2 times", |it| it.effects.push(Effect { receipt: 4, ..it.effects[0].clone() })),
    ("the outside world knows nothing of it", |it| drop(it.effects.remove(0))),
    ("the ledger has no record of it", |it| drop(it.calls.remove(0))),
    ("the ledger has no record of it", |it| it.calls[0].is_ok = false),
    ("the value that is stored with its record is missing", |it| it.values.retain(|key, _| key != "c1-1")),
    ("was told: TRANSIENT", |it| it.effects.push(Effect { key: "c1-3".into(), ..it.effects[0].clone() })),
    ("was never answered", |it| it.asks.get_mut("c1-2").unwrap().told.clear()),
    ("exclude each other", |it| it.asks.get_mut("c1-1").unwrap().told.push(Told::NotDone("no".into()))),
    ("exclude each other", |it| it.asks.get_mut("c1-1").unwrap().told.push(Told::Unknown)),
    ("with the receipt of c1-2", |it| it.asks.get_mut("c1-1").unwrap().told = vec![Told::Done(Some(2))]),
    ("c1 was sent c2-1", |it| it.strays.push("c1 was sent c2-1".into())),
    ("no client asked for it", |it| it.effects.push(Effect { key: "c9-1".into(), ..it.effects[0].clone() })),
    ("was done in another session", |it| it.effects[0].session = "s2".into()),
];

#[test]
fn what_is_honest_passes() {
    assert_eq!(check(&honest()), []);
    assert_eq!(count(&honest()), Counts { asked: 4, done: 2, unknown: 1, not_done: 1 });
}

#[test]
fn every_planted_violation_is_found() {
    for (expected, plant) in PLANTS {
        let mut evidence = honest();
        plant(&mut evidence);
        let found: Vec<String> = check(&evidence).iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
    }
}
