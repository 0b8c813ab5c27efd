//! The functions that modules import. They run inside a step and take no time: what does is begun when the step ends.

use std::time::UNIX_EPOCH;

use quarterdeck_contracts::handler::LogLevel;
use wasmtime::{Caller, Linker};

use crate::call_state::{CallState, Channel};
use crate::interface::{CALL, IMPORT_MODULE};
use crate::memory::{bytes, bytes_mut, fault, memory_of};
use crate::request::Request;

/// Random bytes that a module may ask for at once, as in browsers.
const MAX_RANDOM_BYTES: u32 = 64 << 10;

pub(crate) fn add_to(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.func_wrap(IMPORT_MODULE, CALL, call)?;
    linker.func_wrap(IMPORT_MODULE, "log", log)?;
    linker.func_wrap(IMPORT_MODULE, "now", |caller: Caller<'_, CallState>| now(caller.data()))?;
    linker.func_wrap(IMPORT_MODULE, "random", random)?;
    Ok(())
}

/// Begins a request and returns its id; zero when there are too many.
fn call(
    mut caller: Caller<'_, CallState>,
    name: u32,
    name_length: u32,
    args: u32,
    args_length: u32,
) -> wasmtime::Result<u32> {
    let (memory, state) = memory_of(&mut caller)?.data_and_store_mut(&mut caller);
    let name = bytes(memory, name, name_length, "the name of its request")?;
    let args = bytes(memory, args, args_length, "the text of its request")?;
    let Some(id) = state.allocate_id(args.len()) else { return Ok(0) };
    let request = Request::read(state, name, args);
    state.begin(id, request);
    Ok(id)
}

/// Writes a line to the operator's log.
fn log(mut caller: Caller<'_, CallState>, level: u32, text: u32, length: u32) -> wasmtime::Result<()> {
    let (memory, state) = memory_of(&mut caller)?.data_and_store_mut(&mut caller);
    let text = bytes(memory, text, length, "its line for the log")?;
    let level = match level {
        0 => LogLevel::Debug,
        2 => LogLevel::Warn,
        3 => LogLevel::Error,
        _ => LogLevel::Info,
    };
    if let Some(context) = state.charge(Channel::Log, text.len()) {
        context.log(level, &String::from_utf8_lossy(text));
    }
    Ok(())
}

/// Milliseconds since 1970 by the call's clock.
fn now(state: &CallState) -> i64 {
    let whole = |ms: u128| i64::try_from(ms).unwrap_or(i64::MAX);
    match state.context.now().duration_since(UNIX_EPOCH) {
        Ok(since) => whole(since.as_millis()),
        Err(before) => -whole(before.duration().as_millis()),
    }
}

/// Fills a part of the memory with random bytes of the operating system, which cannot be guessed.
fn random(mut caller: Caller<'_, CallState>, address: u32, length: u32) -> wasmtime::Result<()> {
    if length > MAX_RANDOM_BYTES {
        return Err(fault(format!("it asked for more than {MAX_RANDOM_BYTES} random bytes at once")));
    }
    let memory = memory_of(&mut caller)?.data_mut(&mut caller);
    let target = bytes_mut(memory, address, length, "the place for its random bytes")?;
    getrandom::fill(target).map_err(|error| fault(format!("there is no randomness: {error}")))
}
