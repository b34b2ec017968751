//! Where the bytes of a file come from.

use std::io::{self, Read};

use bytes::{Buf, Bytes};

/// A file that can be read from any place. Formats keep several places open at once, so each reader has a position of
/// its own.
pub trait Source: Clone + Send + Sync + 'static {
    /// How many bytes it has.
    ///
    /// # Errors
    ///
    /// If the length cannot be determined.
    fn size(&self) -> io::Result<u64>;

    /// Its bytes from `offset` on, unbuffered.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or has no such offset.
    fn open(&self, offset: u64) -> io::Result<Box<dyn Read>>;
}

impl Source for Bytes {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn open(&self, offset: u64) -> io::Result<Box<dyn Read>> {
        let offset = usize::try_from(offset).map_or(self.len(), |offset| offset.min(self.len()));
        Ok(Box::new(self.slice(offset..).reader()))
    }
}
