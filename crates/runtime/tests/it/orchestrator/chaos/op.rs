//! What can happen to a session, drawn at random.

use proptest::prelude::{Strategy, any, prop, prop_oneof};
use proptest::strategy::Just;
use quarterdeck_contracts::ConfirmationAnswer;

/// Something that happens.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// A message with calls.
    Frame(Vec<CallTemplate>),
    /// An earlier message again, with the same ids.
    Again(usize),
    /// The client reads one reply of an open batch.
    Read(usize),
    /// The client stops reading an open batch.
    Drop(usize),
    BeginTurn,
    Interrupt,
    Cancel(usize),
    Disconnect,
    Connect,
    /// The user decides, perhaps twice at once.
    Answer(usize, ConfirmationAnswer, bool),
    Wait(u64),
    /// The process dies here and now.
    Crash,
    /// The process will die in a commit.
    CrashInCommit(u32, bool),
    /// Another node takes the session over; the one that had it lives on and does not know.
    TakeOver,
    /// The session is given to another node, if nothing is going on in it.
    HandOver,
}

#[derive(Debug, Clone)]
pub(super) struct CallTemplate {
    pub(super) tool: &'static str,
    pub(super) what: u8,
    pub(super) has_id: bool,
}

/// What happens where several nodes share the store.
pub(super) fn op_of_nodes() -> impl Strategy<Value = Op> {
    prop_oneof![40 => op(), 3 => Just(Op::TakeOver), 2 => Just(Op::HandOver)]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let tool = prop_oneof![
        4 => Just("book"), 3 => Just("slow_book"), 3 => Just("look"), 2 => Just("slow_look"), 3 => Just("pay"),
        1 => Just("count"), 1 => Just("hang_up"), 1 => Just("crash"), 1 => Just("no_such_tool"),
    ];
    let template =
        (tool, 0_u8..3, any::<bool>()).prop_map(|(tool, what, has_id)| CallTemplate { tool, what, has_id });
    let answer = prop_oneof![3 => Just(ConfirmationAnswer::Approve), 1 => Just(ConfirmationAnswer::Deny)];
    prop_oneof![
        8 => prop::collection::vec(template, 1..5).prop_map(Op::Frame),
        4 => any::<usize>().prop_map(Op::Again),
        6 => any::<usize>().prop_map(Op::Read),
        2 => any::<usize>().prop_map(Op::Drop),
        3 => Just(Op::BeginTurn),
        2 => Just(Op::Interrupt),
        2 => any::<usize>().prop_map(Op::Cancel),
        2 => Just(Op::Disconnect),
        2 => Just(Op::Connect),
        4 => (any::<usize>(), answer, any::<bool>()).prop_map(|(which, answer, twice)| Op::Answer(which, answer, twice)),
        4 => (0_u64..4_000).prop_map(Op::Wait),
        1 => Just(Op::Crash),
        1 => (0_u32..4, any::<bool>()).prop_map(|(after, applied)| Op::CrashInCommit(after, applied)),
    ]
}
