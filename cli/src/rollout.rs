//! Rollout files on disk, handed to the reader.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

pub(crate) use tokenwise_reader::{Column, Rollouts, Row};

use tokenwise_reader::{Error, Kind, Names, Options, Source};

use crate::{
    args::Reading,
    failure::{Failure, Result},
    progress::Progress,
};

/// The function that receives each batch.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&Rollouts) -> Result<()>;

/// Hands the batches of a file to `sink`, in order.
pub(crate) fn read(reading: &Reading, sink: Sink<'_>) -> Result<()> {
    let path = &reading.file;
    let failed = |error: Error| Failure::input(path, error);
    let names = Names::new(&reading.fields).map_err(|what| Failure::usage(format!("--field {what}")))?;
    let start = start(path)?;
    let kind = Kind::of(&path.to_string_lossy(), &start, &names).map_err(|fault| failed(fault.into()))?;
    let progress = Progress::of_file(path);
    let source = OnDisk { path: path.clone(), progress: progress.clone() };
    let options = Options { names, batch_tokens: reading.batch_tokens, ..Options::default() };
    let mut failure = None;
    let done = tokenwise_reader::read(&source, kind, &options, &mut |rollouts| match sink(rollouts) {
        Ok(()) => ControlFlow::Continue(()),
        Err(refused) => {
            failure = Some(refused);
            ControlFlow::Break(())
        }
    });
    progress.done();
    failure.map_or_else(|| done.map(|_| ()).map_err(failed), Err)
}

/// The first bytes of a file.
fn start(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Failure::input(path, error);
    let file = File::open(path).map_err(failed)?;
    if path.is_dir() {
        return Err(Failure::input(path, "this is a folder"));
    }
    let mut start = Vec::new();
    file.take(Kind::START).read_to_end(&mut start).map_err(failed)?;
    Ok(start)
}

/// A file that is opened anew for every place it is read from, so that none moves another.
#[derive(Clone)]
struct OnDisk {
    path: PathBuf,
    progress: Progress,
}

impl Source for OnDisk {
    fn size(&self) -> io::Result<u64> {
        Ok(self.path.metadata()?.len())
    }

    fn open(&self, offset: u64) -> io::Result<Box<dyn Read>> {
        let mut file = File::open(&self.path)?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))?;
        }
        Ok(Box::new(Counted { file, progress: self.progress.clone() }))
    }
}

/// Reports how much was read.
struct Counted {
    file: File,
    progress: Progress,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.progress.advance(read);
        Ok(read)
    }
}
