//! A terminal of the system, and a screen that obeys what is written to it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

const TIMEOUT: Duration = Duration::from_secs(40);

pub(super) struct PseudoTerminal {
    pub(super) screen: Screen,
    ours: File,
    /// The end that programs have; held, so that its modes can be read when they have ended.
    theirs: OwnedFd,
    written: Receiver<Vec<u8>>,
}

impl PseudoTerminal {
    pub(super) fn open(columns: usize, rows: usize) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let ours = File::from(ours);
        let (sender, written) = channel();
        let mut reader = ours.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut terminal = Self { screen: Screen::new(columns, rows), ours, theirs, written };
        terminal.resize(columns, rows);
        terminal
    }

    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        let size = Winsize { ws_col: columns as u16, ws_row: rows as u16, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.ours, size).unwrap();
        self.screen.resize(columns, rows);
    }

    pub(super) fn run(&self, command: &mut Command) -> Child {
        let end = || Stdio::from(self.theirs.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub(super) fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    pub(super) fn modes(&self) -> LocalModes {
        tcgetattr(&self.theirs).unwrap().local_modes
    }

    /// Draws what is written until the screen is as wanted.
    pub(super) fn wait_for(&mut self, what: &str, is_there: impl Fn(&Screen) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_there(&self.screen) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.written.recv_timeout(left) else {
                panic!("{what} does not come:\n{}", self.screen.text());
            };
            self.screen.write(&bytes);
        }
    }
}

pub(super) fn wait(child: &mut Child, timeout: Duration) -> ExitStatus {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Knows the sequences that are used, and fails on any other.
pub(super) struct Screen {
    cells: Vec<Vec<char>>,
    columns: usize,
    place: (usize, usize),
    pending: Vec<u8>,
    pub(super) is_alternate: bool,
    pub(super) has_cursor: bool,
    /// Whether something of the last frame was written beyond the right edge or the last row.
    pub(super) is_overrun: bool,
}

impl Screen {
    fn new(columns: usize, rows: usize) -> Self {
        let cells = vec![vec![' '; columns]; rows];
        let (is_alternate, has_cursor, is_overrun) = (false, true, false);
        Self { cells, columns, place: (0, 0), pending: Vec::new(), is_alternate, has_cursor, is_overrun }
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        self.columns = columns;
        self.cells.resize(rows, Vec::new());
        self.cells.iter_mut().for_each(|row| row.resize(columns, ' '));
    }

    pub(super) fn row(&self, number: usize) -> String {
        self.cells[number].iter().collect::<String>().trim_end().to_owned()
    }

    pub(super) fn text(&self) -> String {
        (0..self.cells.len()).map(|row| self.row(row) + "\n").collect()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        // A character or a sequence may be cut in two.
        let whole = match std::str::from_utf8(&self.pending) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let mut text = String::from_utf8(self.pending[..whole].to_vec()).unwrap();
        let is_end = |rest: &str| rest[1..].chars().any(|letter| letter.is_ascii_alphabetic());
        if let Some(start) = text.rfind('\u{1b}').filter(|start| !is_end(&text[*start..])) {
            text.truncate(start);
        }
        self.pending.drain(..text.len());
        let mut rest = text.as_str();
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            match letter {
                '\u{1b}' => {
                    let end = rest.find(|letter: char| letter.is_ascii_alphabetic()).unwrap() + 1;
                    self.obey(&rest[..end]);
                    rest = &rest[end..];
                }
                '\r' => self.place.1 = 0,
                '\n' => self.place.0 += 1,
                letter => self.put(letter),
            }
        }
    }

    fn put(&mut self, letter: char) {
        let (row, column) = self.place;
        match self.cells.get_mut(row).and_then(|row| row.get_mut(column)) {
            Some(cell) => *cell = letter,
            None => self.is_overrun = true,
        }
        self.place.1 += 1;
    }

    fn obey(&mut self, sequence: &str) {
        let (row, column) = self.place;
        match sequence {
            // A frame begins.
            "[H" => (self.place, self.is_overrun) = ((0, 0), false),
            "[K" => {
                if let Some(row) = self.cells.get_mut(row) {
                    row.iter_mut().skip(column).for_each(|cell| *cell = ' ');
                }
            }
            "[J" => {
                self.obey("[K");
                self.cells.iter_mut().skip(row + 1).for_each(|row| row.fill(' '));
            }
            "[?1049h" => self.is_alternate = true,
            "[?1049l" => self.is_alternate = false,
            "[?25h" => self.has_cursor = true,
            "[?25l" => self.has_cursor = false,
            style if style.ends_with('m') => {}
            other => panic!("unknown sequence {other:?}"),
        }
    }
}
