//! Rows, one by one and in order.

use quarterdeck_contracts::{Commit, MAX_KEY_BYTES, Scan, Table};
use serde_json::{Value, json};

use super::{Open, StoreFixture};

/// The life of a row.
pub fn a_row_is_there_once_it_was_put_and_gone_once_it_was_deleted(open: Open) {
    let fixture = StoreFixture::new(open);
    assert_eq!(fixture.row(Table::Values, "a"), None);
    fixture.put(Table::Values, "a", json!({ "n": 1 }));
    assert_eq!(fixture.value(Table::Values, "a"), Some(json!({ "n": 1 })));
    fixture.put(Table::Values, "a", json!(null));
    assert_eq!(fixture.value(Table::Values, "a"), Some(json!(null)));
    fixture
        .commit(Commit::default().delete(Table::Values, "a").delete(Table::Values, "never there"))
        .unwrap();
    assert_eq!(fixture.row(Table::Values, "a"), None);
}

/// Not by letters, nor by any language's rules.
pub fn a_scan_goes_by_bytes(open: Open) {
    let fixture = StoreFixture::new(open);
    let mut keys = ["b", "a", "B", "10", "9", "ä", "z", "\u{10000}", "\u{ffff}", "a\u{0}", "a ", ""];
    for key in keys {
        fixture.put(Table::Values, key, json!(key));
    }
    keys.sort_unstable_by_key(|key| key.as_bytes());
    assert_eq!(fixture.keys(Table::Values, Scan::prefix("", 100)), keys);
}

/// A prefix is text, not a pattern.
pub fn a_scan_keeps_to_its_prefix_and_its_limit(open: Open) {
    let fixture = StoreFixture::new(open);
    for key in ["a", "a%", "a%b", "aXb", "a_b", "ab", "b", "é", "éa", "\u{10ffff}", "\u{10ffff}a"] {
        fixture.put(Table::Values, key, json!(key));
    }
    let keys = |prefix, limit| fixture.keys(Table::Values, Scan::prefix(prefix, limit));
    assert_eq!(keys("a%", 9), ["a%", "a%b"]);
    assert_eq!(keys("a_", 9), ["a_b"]);
    assert_eq!(keys("a", 3), ["a", "a%", "a%b"]);
    assert_eq!(keys("é", 9), ["é", "éa"]);
    assert_eq!(keys("\u{10ffff}", 9), ["\u{10ffff}", "\u{10ffff}a"]);
    assert_eq!(keys("c", 9), [""; 0]);
    assert_eq!(keys("a", 0), [""; 0]);
    assert_eq!(keys("", usize::MAX).len(), 11);
}

/// Page by page.
pub fn a_scan_goes_on_after_a_key(open: Open) {
    let fixture = StoreFixture::new(open);
    for key in ["a", "b/1", "b/2", "b/3", "c"] {
        fixture.put(Table::Values, key, json!(key));
    }
    let after = |after: &str| {
        let scan = Scan { after: Some(after.into()), ..Scan::prefix("b/", 2) };
        fixture.keys(Table::Values, scan)
    };
    assert_eq!(after("b/1"), ["b/2", "b/3"]);
    assert_eq!(after("b/2"), ["b/3"]);
    assert_eq!(after("b/22"), ["b/3"], "the key need not be there");
    assert_eq!(after("b/3"), [""; 0]);
    assert_eq!(after(""), ["b/1", "b/2"], "before the prefix is before its first row");
    assert_eq!(after("c"), [""; 0], "beyond the prefix is beyond its last row");
}

/// Quotes, wildcards, nothing at all, and what ends a string in C.
pub fn keys_may_be_odd(open: Open) {
    let fixture = StoreFixture::new(open);
    let long = "k".repeat(MAX_KEY_BYTES);
    let keys =
        ["", "'", "\"; --", "%", "_", "\\", "\u{0}", "a\u{0}b", "a\u{0}c", "\u{1f600}", "e\u{301}", &long];
    for key in keys {
        fixture.put(Table::Values, key, json!(key));
    }
    for key in keys {
        assert_eq!(fixture.value(Table::Values, key), Some(json!(key)), "{key:?}");
        assert!(fixture.keys(Table::Values, Scan::prefix(key, 100)).contains(&key.to_owned()), "{key:?}");
    }
    assert_eq!(fixture.row(Table::Values, "é"), None, "two spellings are two keys");
    fixture.commit(Commit::default().delete(Table::Values, "a\u{0}b")).unwrap();
    assert_eq!(fixture.row(Table::Values, "a\u{0}b"), None);
    assert_eq!(fixture.value(Table::Values, "a\u{0}c"), Some(json!("a\u{0}c")));
}

/// One byte more than every engine's index holds.
pub fn a_key_that_is_too_long_is_refused(open: Open) {
    let fixture = StoreFixture::new(open);
    let long = "k".repeat(MAX_KEY_BYTES + 1);
    fixture.commit(Commit::default().put(Table::Values, long.clone(), json!(1))).unwrap_err();
    fixture.commit(Commit::default().check(Table::Values, long.clone(), None)).unwrap_err();
    fixture.store.queue(Commit::default().put(Table::Values, long.clone(), json!(1))).unwrap_err();
    assert_eq!(fixture.keys(Table::Values, Scan::prefix("", 10)), [""; 0]);
}

/// The same key in every table.
pub fn tables_do_not_mix(open: Open) {
    let fixture = StoreFixture::new(open);
    for table in Table::ALL {
        fixture.put(table, "key", json!(table.as_str()));
    }
    fixture.commit(Commit::default().delete(Table::Blocks, "key")).unwrap();
    for table in Table::ALL {
        let there = (table != Table::Blocks).then(|| json!(table.as_str()));
        assert_eq!(fixture.value(table, "key"), there);
        assert_eq!(fixture.keys(table, Scan::prefix("", 9)).len(), usize::from(there.is_some()));
    }
}

/// Integers beyond what a double can say, doubles to their last bit, text of any kind.
pub fn values_come_back_to_the_last_digit(open: Open) {
    let fixture = StoreFixture::new(open);
    let values = json!([
        9_007_199_254_740_993_u64, u64::MAX, i64::MIN, 0, -0.0, 0.1, 1e300, 5e-324, 1.0, f64::MAX, f64::MIN_POSITIVE,
        // Doubles that a careless parser misses by one bit.
        2.638344616030823e-256, 7.042055707759459e59,
        "\u{0}\u{1f600}\"\\", true, null, [], {}, { "": [{ "b": 1, "a": 2 }] },
    ]);
    fixture.put(Table::Values, "all", values.clone());
    let back = fixture.value(Table::Values, "all").unwrap();
    assert_eq!(back, values);
    assert_eq!(back.to_string(), values.to_string(), "the order of members and the kind of numbers too");
}

/// Large, and next to small ones.
pub fn a_megabyte_is_a_value_like_any_other(open: Open) {
    let fixture = StoreFixture::new(open);
    let large = json!("ä".repeat(512 * 1024));
    fixture.put(Table::Sessions, "large", large.clone());
    fixture.put(Table::Sessions, "small", json!(1));
    assert_eq!(fixture.value(Table::Sessions, "large"), Some(large));
    assert_eq!(fixture.value(Table::Sessions, "small"), Some(json!(1)));
}

/// What was acknowledged can be read.
pub fn a_value_is_refused_before_it_is_too_deep_to_be_read(open: Open) {
    let fixture = StoreFixture::new(open);
    let nested = |depth| (0..depth).fold(json!(1), |inner: Value, _| json!([inner]));
    fixture.put(Table::Values, "deep", nested(127));
    assert_eq!(fixture.value(Table::Values, "deep"), Some(nested(127)));
    fixture.commit(Commit::default().put(Table::Values, "deep", nested(128))).unwrap_err();
    fixture.store.queue(Commit::default().put(Table::Values, "deep", nested(128))).unwrap_err();
    assert_eq!(fixture.value(Table::Values, "deep"), Some(nested(127)));
}

/// At its time, not before, and only those with a time.
pub fn a_sweep_forgets_what_has_expired_and_nothing_else(open: Open) {
    let fixture = StoreFixture::new(open);
    let mut commit = Commit::default().put(Table::Rates, "for ever", json!(0));
    for n in 0..2500_u64 {
        let table = if n % 2 == 0 { Table::Rates } else { Table::Calls };
        commit = commit.put_until(table, format!("{n:04}"), json!(n), Some(n));
    }
    fixture.commit(commit).unwrap();
    let sweep = |now| crate::block_on(fixture.store.sweep(now)).unwrap();
    assert_eq!(sweep(2399), 2400);
    assert_eq!(sweep(2399), 0);
    assert_eq!(fixture.value(Table::Rates, "2400"), Some(json!(2400)));
    assert_eq!(sweep(u64::MAX), 100);
    assert_eq!(fixture.keys(Table::Rates, Scan::prefix("", 9)), ["for ever"]);
}

/// Writing without an expiry takes the old one away.
pub fn a_row_that_is_written_again_has_the_new_expiry(open: Open) {
    let fixture = StoreFixture::new(open);
    let until = |at| Commit::default().put_until(Table::Rates, "a", json!(1), at);
    fixture.commit(until(Some(10))).unwrap();
    fixture.commit(until(Some(20))).unwrap();
    assert_eq!(crate::block_on(fixture.store.sweep(10)), Ok(0));
    fixture.commit(until(None)).unwrap();
    assert_eq!(crate::block_on(fixture.store.sweep(30)), Ok(0));
}
