//! A file that was opened once.

use std::{
    io::{Cursor, Read},
    sync::Arc,
};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::{
    csv_table,
    fault::{Error, Fault},
    feeder::{Feeder, Sink},
    json,
    kind::Kind,
    parquet_table,
    source::{first, whole, Source, Tail},
    tensors, Options, Summary,
};

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTANDARD: &[u8] = b"\x28\xb5\x2f\xfd";

/// The window that Zstandard needs at most, unless it was told to use a larger one.
const WINDOW: u64 = 128 << 20;

/// A rollout file whose format is known.
pub struct File {
    kind: Kind,
    body: Body,
}

enum Body {
    Random(Arc<dyn Source>),
    Stream(Box<dyn Read>),
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl File {
    /// A file on a disk or in memory. The extension of its name determines the format; if that is none of ours, the
    /// first bytes do.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is empty, or its format is unknown.
    pub fn open(name: &str, source: impl Source, options: &Options) -> Result<Self, Error> {
        let source: Arc<dyn Source> = Arc::new(source);
        let mut tail = Tail { source: Arc::clone(&source), at: 0 };
        let start = first(&mut tail, Kind::START)?;
        if start.starts_with(GZIP) || start.starts_with(ZSTANDARD) {
            return Self::unzipped(name, &start, Box::new(Tail { source, at: 0 }), options);
        }
        Ok(Self { kind: Kind::of(name, &start, &options.names)?, body: Body::Random(source) })
    }

    /// A stream, such as a pipe, which is read from its beginning to its end. Parquet and safetensors, which begin at
    /// their end, are kept in memory.
    ///
    /// # Errors
    ///
    /// As for [`File::open`].
    pub fn stream(name: &str, mut stream: Box<dyn Read>, options: &Options) -> Result<Self, Error> {
        let start = first(&mut stream, Kind::START)?;
        if start.starts_with(GZIP) || start.starts_with(ZSTANDARD) {
            return Self::unzipped(name, &start.clone(), Box::new(Cursor::new(start).chain(stream)), options);
        }
        let kind = Kind::of(name, &start, &options.names)?;
        Ok(Self { kind, body: Body::Stream(Box::new(Cursor::new(start).chain(stream))) })
    }

    fn unzipped(name: &str, start: &[u8], zipped: Box<dyn Read>, options: &Options) -> Result<Self, Error> {
        let bad = |reason: &dyn std::fmt::Display| Fault::BadArchive { reason: reason.to_string() };
        let ending = name.rsplit_once('.').filter(|(_, ending)| matches!(&*ending.to_lowercase(), "gz" | "zst"));
        let name = ending.map_or(name, |(name, _)| name);
        let mut stream: Box<dyn Read> = if start.starts_with(GZIP) {
            Box::new(MultiGzDecoder::new(zipped))
        } else {
            let window = WINDOW.min(options.memory.bytes() / 2);
            Box::new(StreamingDecoder::new_with_max_window_size(zipped, window).map_err(|error| bad(&error))?)
        };
        let start = first(&mut stream, Kind::START).map_err(|error| bad(&error))?;
        let kind = Kind::of(name, &start, &options.names)?;
        Ok(Self { kind, body: Body::Stream(Box::new(Cursor::new(start).chain(stream))) })
    }

    /// Its format.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Passes its batches to `sink`, in order, until it breaks. A batch is the sequences of one step.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, and where; [`Fault::Stopped`] if the sink stopped the reading.
    pub fn read(self, options: &Options, sink: Sink<'_>) -> Result<Summary, Error> {
        let mut session = Session::new(options, sink);
        session.add(self, None)?;
        session.finish()
    }
}

/// Several files read as one: a step that ends one file and begins the next is one batch.
pub struct Session<'a> {
    options: &'a Options,
    feeder: Feeder<'a>,
    files: u32,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<'a> Session<'a> {
    /// Batches go to `sink`.
    pub fn new(options: &'a Options, sink: Sink<'a>) -> Self {
        Self { options, feeder: Feeder::new(options, sink), files: 0 }
    }

    /// Reads a file. `step` is that of records without one, such as the step in the name of the file.
    ///
    /// # Errors
    ///
    /// As for [`File::read`].
    pub fn add(&mut self, file: File, step: Option<u64>) -> Result<(), Error> {
        let Self { options, feeder, files } = self;
        feeder.begin_file(*files, step);
        feeder.traces.step = step;
        *files += 1;
        match file.kind {
            Kind::JsonLines => json::lines(file.body.stream(), feeder),
            Kind::Json => json::documents(file.body.stream(), feeder),
            Kind::Csv => csv_table::read(file.body.stream(), feeder),
            Kind::Parquet => parquet_table::read(&file.body.random(options)?, feeder),
            Kind::Tensors => tensors::read(&file.body.random(options)?, feeder),
        }
    }

    /// Hands the last batch on.
    ///
    /// # Errors
    ///
    /// [`Fault::NoRollout`] if there was no sequence.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.feeder.fold_traces()?;
        Ok(self.feeder.finish()?)
    }
}

impl Body {
    fn stream(self) -> Box<dyn Read> {
        match self {
            Self::Random(source) => Box::new(Tail { source, at: 0 }),
            Self::Stream(stream) => stream,
        }
    }

    fn random(self, options: &Options) -> Result<Arc<dyn Source>, Fault> {
        match self {
            Self::Random(source) => Ok(source),
            Self::Stream(stream) => Ok(Arc::new(whole(stream, options.memory)?)),
        }
    }
}
