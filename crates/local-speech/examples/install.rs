//! Installs every engine into a folder: `cargo run --example install -- FOLDER [ARCHIVES]`. For the tests with real engines;
//! users have `quarterdeck speech install`.

use std::path::PathBuf;

use quarterdeck_local_speech::{Component, InstallSources, install};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let cache = arguments.next().ok_or("give a folder")?;
    let sources = InstallSources { archives: arguments.next(), ..InstallSources::default() };
    for component in Component::ALL {
        install(component, &cache, &sources, &mut |_| {})?;
    }
    Ok(())
}
