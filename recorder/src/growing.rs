//! A file that grows by whole records: a write that fails half-way is undone.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use crate::{
    disk,
    error::{Error, Result},
    Survive,
};

/// A file open for writing whose first `len` bytes are complete records.
#[derive(Debug)]
pub(crate) struct Growing {
    path: PathBuf,
    file: File,
    survive: Survive,
    /// Length of the complete records.
    len: u64,
    /// Whether bytes may follow the complete records.
    torn: bool,
}

impl Growing {
    /// Removes what follows the first `len` bytes.
    pub(crate) fn new(path: &Path, file: File, len: u64, survive: Survive) -> Result<Self> {
        let mut growing = Self { path: path.into(), file, survive, len, torn: true };
        growing.truncate().map_err(Error::io(path))?;
        Ok(growing)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the complete records.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends a record by one write. After an error the record is not in the file and can be appended again.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<()> {
        if self.torn {
            self.truncate().map_err(Error::io(&self.path))?;
        }
        if let Err(source) = self.write(record) {
            self.torn = true;
            // if this fails too, the next append or the next open removes the bytes
            let _ = self.truncate();
            return Err(Error::Io { path: self.path.clone(), source });
        }
        self.len += record.len() as u64;
        Ok(())
    }

    /// Removes the records after the first `len` bytes; at the latest with the next append.
    pub(crate) fn go_back(&mut self, len: u64) {
        (self.len, self.torn) = (len, true);
        let _ = self.truncate();
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        disk::write(&mut self.file, &self.path, record)?;
        disk::sync(&self.file, &self.path, self.survive)
    }

    /// What is removed must not come back after a power loss.
    fn truncate(&mut self) -> io::Result<()> {
        disk::cut(&mut self.file, &self.path, self.len)?;
        disk::sync(&self.file, &self.path, self.survive)?;
        self.torn = false;
        Ok(())
    }
}
