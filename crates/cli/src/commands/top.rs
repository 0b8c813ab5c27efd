//! `quarterdeck top`: a running server in a terminal, for an operator who has only SSH.
//!
//! One thread asks the server, so that keys are heard while it does not answer; this one draws. What is drawn is a pure
//! function of what was read ([`render()`]).

mod poll;
mod reading;
mod render;
mod screen;

use std::io::{IsTerminal, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::admin_client::AdminClient;
use crate::arguments::top::TopOptions;
use crate::config::LocalConfig;
use crate::environment::style_of_stdout;
use crate::shutdown::ShutdownSignal;
use crate::terminal::print;
use crate::{ExitStatus, wire};

use poll::Poller;
use reading::Reading;
use render::{View, render, to_text};
use screen::{Key, Screen};

/// How long the server may take for an answer before it counts as gone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How soon a key, another size of the window and a new reading are seen.
const KEY_TIMEOUT: Duration = Duration::from_millis(100);

pub(crate) fn run(options: &TopOptions) -> anyhow::Result<ExitStatus> {
    let client = AdminClient::new(&LocalConfig::load()?, &options.server).within(ANSWER_TIMEOUT);
    if options.once || !stdout().is_terminal() {
        let mut view = View::new(client.address().to_string());
        view.update(Ok(Reading::take(&client)?));
        print(&to_text(&render(&view, None)))?;
        return Ok(ExitStatus::Success);
    }
    let is_stopped = watch_signals();
    let mut screen = Screen::open()?;
    let shown = show(client, &mut screen, &is_stopped);
    drop(screen);
    shown?;
    Ok(ExitStatus::Success)
}

fn show(client: AdminClient, screen: &mut Screen, is_stopped: &AtomicBool) -> anyhow::Result<()> {
    let style = style_of_stdout();
    let mut view = View::new(client.address().to_string());
    let poller = Poller::start(client);
    let mut drawn = None;
    while !is_stopped.load(Ordering::Relaxed) {
        let mut is_new = false;
        while let Some(reading) = poller.next() {
            view.update(reading);
            is_new = true;
        }
        let size = screen.size();
        if is_new || drawn != Some(size) {
            screen.draw(&render(&view, Some(size)), style)?;
            drawn = Some(size);
        }
        match screen.wait_for_key(KEY_TIMEOUT)? {
            Some(Key::End) => break,
            Some(Key::Redraw) => drawn = None,
            None => {}
        }
    }
    Ok(())
}

/// Ctrl-C is a key here; SIGTERM must leave the terminal as it was too.
fn watch_signals() -> Arc<AtomicBool> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stopped = is_stopped.clone();
    std::thread::spawn(move || {
        let waited = wire::block_on(async { ShutdownSignal::listen().wait().await });
        if waited.is_ok() {
            stopped.store(true, Ordering::Relaxed);
        }
    });
    is_stopped
}
