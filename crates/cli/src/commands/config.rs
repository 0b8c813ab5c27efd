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
    // What a server would only warn about is a problem of the configuration all the same.
    let loaded = Config::load(&options.serving).and_then(|loaded| match loaded.model_problems.is_empty() {
        true => Ok(loaded),
        false => Err(loaded.model_problems),
    });
    match loaded {
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
