//! `quarterdeck config`.

use crate::Verdict;
use crate::arguments::Format;
use crate::arguments::serving::ConfigOptions;
use crate::config::{Config, Listing};
use crate::terminal::{complain, print};

pub(crate) fn run(options: &ConfigOptions) -> anyhow::Result<Verdict> {
    if options.example {
        print(&Listing::of_defaults().to_example())?;
        return Ok(Verdict::Fine);
    }
    let is_json = options.json || options.format == Format::Json;
    match Config::load(&options.serving) {
        Ok(loaded) if is_json => print(&format!("{:#}\n", loaded.listing.to_json()))?,
        Ok(loaded) => print(&loaded.listing.to_text())?,
        Err(problems) => {
            if is_json {
                print(&format!("{:#}\n", problems.to_json()))?;
            } else {
                complain(&problems.into());
            }
            return Ok(Verdict::Problems);
        }
    }
    Ok(Verdict::Fine)
}
