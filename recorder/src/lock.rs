//! One writer per file.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    history::beside,
};

/// An exclusive lock of the operating system on `.NAME.lock`, which ends with the process, however that ends. The file
/// itself cannot be locked: its name moves between two copies.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// [`Error::Locked`] if another writer has the file open.
    pub(crate) fn acquire(of: &Path) -> Result<Self> {
        let path = beside(of, "lock");
        loop {
            let file = File::create(&path).map_err(Error::io(&path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: of.into() }),
                Err(TryLockError::Error(source)) => return Err(Error::Io { path, source }),
            }
            // the previous holder may have removed the name between the two calls: then the lock is on a file that
            // nobody else will open
            if is_at(&file, &path) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // before the lock is released; where open files cannot be removed, an empty file stays
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the path still refers to the open file; assumed where files have no identity.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        match (file.metadata(), fs::metadata(path)) {
            (Ok(file), Ok(path)) => identity(file) == identity(path),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}
