//! Where the bytes of a file come from.

use std::{
    io::{self, Read},
    sync::Arc,
};

use bytes::Bytes;

use crate::{budget::Budget, fault::Fault};

/// A file that was opened once and can be read from any place.
pub trait Source: Send + Sync + 'static {
    /// How many bytes it has.
    ///
    /// # Errors
    ///
    /// If the length cannot be determined.
    fn size(&self) -> io::Result<u64>;

    /// Reads bytes from `offset` on; returns how many, 0 at the end.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
}

impl Source for Bytes {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// The rest of a source, with a position of its own.
#[derive(Clone)]
pub(crate) struct Tail {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) at: u64,
}

impl Read for Tail {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(self.at, out)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The first bytes of a stream, at most `most`: two lines, or as much as there is. A file that
/// grows may have no more yet.
pub(crate) fn first(stream: &mut dyn Read, most: usize) -> io::Result<Vec<u8>> {
    let mut start = vec![0; most];
    let mut length = 0;
    let lines = |start: &[u8]| start.trim_ascii_start().iter().filter(|byte| **byte == b'\n').count();
    while length < most && lines(&start[..length]) < 2 {
        match stream.read(&mut start[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    start.truncate(length);
    Ok(start)
}

/// A whole stream in memory, for formats that are read from their end.
pub(crate) fn whole(mut stream: Box<dyn Read>, budget: Budget) -> Result<Bytes, Fault> {
    let mut bytes = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        let read = match stream.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            return Ok(bytes.into());
        }
        if bytes.capacity() - bytes.len() < read {
            let capacity = crate::budget::grown(&bytes, read);
            budget.check("a file that is not on a disk, in this format,", capacity as u64)?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&part[..read]);
    }
}

/// Exactly `length` bytes from `offset` on.
pub(crate) fn exactly(source: &dyn Source, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let left = source.size()?.saturating_sub(offset);
    if length as u64 > left {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        match source.read_at(offset + done as u64, &mut bytes[done..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
