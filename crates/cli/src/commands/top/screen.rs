//! The terminal: keys without Enter, its size, and a screen that leaves what was there before.

use std::io::{self, Write, stdout};
use std::time::Duration;

use quarterdeck_compiler::Style;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use super::render::{Line, Size, Tone};
use crate::terminal::paint;

/// The other screen, without a cursor; and back.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";
const CTRL_C: u8 = 3;
const CTRL_L: u8 = 12;
/// What a terminal has that does not say.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

pub(super) struct Screen {
    /// How the terminal was; `None` where there are no keys, because standard input is none.
    before: Option<Termios>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    End,
    Redraw,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let before = match isatty(stdin()) {
            true => Some(tcgetattr(stdin())?),
            false => None,
        };
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        }
        let screen = Self { before };
        write(ENTER)?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> Size {
        let size = tcgetwinsize(rustix::stdio::stdout()).ok();
        let size = size.map(|size| Size { columns: size.ws_col.into(), rows: size.ws_row.into() });
        size.filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(DEFAULT_SIZE)
    }

    /// Draws over what was there, in one write, so that nothing flickers.
    pub(super) fn draw(&mut self, lines: &[Line], style: Style) -> io::Result<()> {
        let mut text = HOME.to_owned();
        for (number, line) in lines.iter().enumerate() {
            // Not after the last: the terminal would scroll.
            if number > 0 {
                text.push_str("\r\n");
            }
            text.push_str(&painted(line, style));
            text.push_str(CLEAR_LINE);
        }
        text.push_str(CLEAR_BELOW);
        write(&text)
    }

    /// Waits for a key that means something, or for the time to pass.
    pub(super) fn wait_for_key(&mut self, timeout: Duration) -> io::Result<Option<Key>> {
        if self.before.is_none() {
            std::thread::sleep(timeout);
            return Ok(None);
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
        let mut waited = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        match poll(&mut waited, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        let read = rustix::io::read(stdin(), &mut bytes)?;
        // Nothing to read, and yet ready: the terminal has gone.
        if read == 0 {
            return Ok(Some(Key::End));
        }
        Ok(bytes[..read].iter().find_map(|byte| match *byte {
            b'q' | b'Q' | CTRL_C => Some(Key::End),
            CTRL_L => Some(Key::Redraw),
            _ => None,
        }))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone cannot be put back.
        let _ = write(LEAVE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(stdin(), OptionalActions::Flush, before);
        }
    }
}

fn painted(line: &Line, style: Style) -> String {
    let code = match line.tone {
        Tone::Plain => return line.text.clone(),
        Tone::Title => "1",
        Tone::Dim => "2",
        Tone::Warning => "33",
        Tone::Alarm => "1;31",
    };
    paint(&line.text, code, style)
}

fn write(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
