//! Where a command's data goes when there may be a lot of it.

use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tempfile::NamedTempFile;

/// Standard output, or a new file that appears when it is complete, for its owner alone.
pub(crate) enum Output {
    Terminal(BufWriter<Stdout>),
    File { partial: BufWriter<NamedTempFile>, to: PathBuf },
}

impl Output {
    pub(crate) fn to(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(to) = file else { return Ok(Self::Terminal(BufWriter::new(io::stdout()))) };
        let folder = check_new(to)?;
        let partial =
            NamedTempFile::new_in(folder).with_context(|| format!("cannot write {}", to.display()))?;
        Ok(Self::File { partial: BufWriter::new(partial), to: to.to_owned() })
    }

    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Terminal(mut out) => out.flush()?,
            Self::File { partial, to } => {
                let cannot = || format!("cannot write {}", to.display());
                let file =
                    partial.into_inner().map_err(|failure| failure.into_error()).with_context(cannot)?;
                file.as_file().sync_all().with_context(cannot)?;
                file.persist_noclobber(&to).map_err(|failure| failure.error).with_context(cannot)?;
            }
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Terminal(out) => out.write(bytes),
            Self::File { partial, .. } => partial.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Terminal(out) => out.flush(),
            Self::File { partial, .. } => partial.flush(),
        }
    }
}

/// The folder of a file that does not exist yet.
pub(crate) fn check_new(file: &Path) -> anyhow::Result<&Path> {
    if file.symlink_metadata().is_ok() {
        bail!("{} exists already and was left alone; choose another name", file.display());
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!("cannot write {}: there is no folder {}", file.display(), folder.display());
    }
    Ok(folder)
}
