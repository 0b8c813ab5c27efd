//! `quarterdeck config`.

use crate::ExitStatus;
use crate::arguments::Format;
use crate::arguments::serve::ConfigOptions;
use crate::config::{Config, Listing};
use crate::terminal::{print, report_error};

pub(crate) fn run(options: &ConfigOptions) -> anyhow::Result<ExitStatus> {
    if options.example {
        print(&Listing::of_defaults().to_example())?;
        return Ok(ExitStatus::Success);
    }
    let is_json = options.json || options.format == Format::Json;
    match Config::load(&options.serving) {
        Ok(loaded) if is_json => print(&format!("{:#}\n", loaded.listing.to_json()))?,
        Ok(loaded) => print(&loaded.listing.to_text())?,
        Err(problems) => {
            if is_json {
                print(&format!("{:#}\n", problems.to_json()))?;
            } else {
                report_error(&problems.into());
            }
            return Ok(ExitStatus::Problems);
        }
    }
    Ok(ExitStatus::Success)
}
