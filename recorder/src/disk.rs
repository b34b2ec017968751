//! Every change of a disk that the crate makes, in one place: tests look at the folder after each of them and try what
//! a power loss would leave.

use std::{
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    path::Path,
};

use crate::{
    error::{Error, Result},
    Survive,
};

#[cfg(unix)]
#[cfg(test)]
mod journal;
#[cfg(unix)]
#[cfg(test)]
mod tests;

/// What tests are told.
enum Change {
    /// Names or contents differ.
    Made,
    /// A file is on disk as it is.
    Synced,
    /// The names of a folder are on disk as they are.
    FolderSynced,
}

/// Creates a file, or empties it.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    tell(Change::Made, path);
    Ok(file)
}

/// Writes at the end of the first `len` bytes, after which nothing is left.
pub(crate) fn write_at(file: &mut File, path: &Path, len: u64, bytes: &[u8]) -> io::Result<()> {
    cut(file, path, len)?;
    write(file, path, bytes)
}

/// Writes where the file stands.
pub(crate) fn write(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    tell(Change::Made, path);
    Ok(())
}

/// Removes what follows the first `len` bytes, and goes there.
pub(crate) fn cut(file: &mut File, path: &Path, len: u64) -> io::Result<()> {
    file.set_len(len)?;
    file.seek(SeekFrom::Start(len))?;
    tell(Change::Made, path);
    Ok(())
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    tell(Change::Made, to);
    Ok(())
}

pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    tell(Change::Made, to);
    Ok(())
}

pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    tell(Change::Made, path);
    Ok(())
}

/// Waits until the bytes of a file are on disk, if that is asked for.
pub(crate) fn sync(file: &File, path: &Path, survive: Survive) -> io::Result<()> {
    if survive == Survive::PowerLoss {
        file.sync_data()?;
        tell(Change::Synced, path);
    }
    Ok(())
}

/// Syncs the folder of `path`, so that a new or renamed file survives a power loss; a no-op where folders cannot be
/// synced.
pub(crate) fn sync_folder(path: &Path, survive: Survive) -> Result<()> {
    if cfg!(unix) && survive == Survive::PowerLoss {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io(folder))?;
        tell(Change::FolderSynced, path);
    }
    Ok(())
}

#[cfg(all(test, unix))]
fn tell(change: Change, path: &Path) {
    journal::note(&change, path);
}

#[cfg(not(all(test, unix)))]
fn tell(_: Change, _: &Path) {}
