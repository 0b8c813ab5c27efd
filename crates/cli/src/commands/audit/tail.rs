//! `quarterdeck audit tail`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::line::show;
use super::trail::{Next, Trail, each};
use crate::arguments::operating::{AuditTailOptions, LineFormat};
use crate::config::Site;
use crate::output::Output;
use crate::terminal::say;
use crate::{Verdict, data};

/// How often to look for more.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) fn run(options: &AuditTailOptions) -> anyhow::Result<Verdict> {
    let site = Site::load()?;
    let data = options.data.or(&site);
    let mut trail = Trail::open_last(data, options.lines)?;
    let mut out = Output::to(None)?;
    if options.follow {
        return follow(trail, data, options.format, out);
    }
    let damaged =
        each(&mut trail, |line, value| Ok(out.write_all(show(line, value, options.format).as_bytes())?))?;
    out.finish()?;
    Ok(if damaged > 0 { Verdict::Problems } else { Verdict::Fine })
}

fn follow(mut trail: Trail, data: &Path, format: LineFormat, mut out: Output) -> anyhow::Result<Verdict> {
    let path = data::trail_file(data);
    loop {
        match trail.next()? {
            Next::Line(line, value) => out.write_all(show(&line, &value, format).as_bytes())?,
            Next::Damaged(what) => say(&format!("warning: {what}")),
            // The rest of a line that is being written comes in a moment.
            Next::Unfinished(_) | Next::End => {
                out.flush()?;
                std::thread::sleep(PAUSE);
                if fs::metadata(&path).is_ok_and(|file| file.len() < trail.offset) {
                    say(
                        "warning: the trail is shorter than it was: it was cut off or replaced; from its beginning:",
                    );
                    trail = Trail::open(data)?;
                }
            }
        }
    }
}
