//! A JSON Lines file that grows step by step.

use std::{
    fs::{self, OpenOptions},
    path::Path,
};

use serde_json::{Map, Value};

use crate::{
    disk::sync_folder,
    error::{Error, Result},
    growing::Growing,
    history::replace,
    lock::Lock,
    read::strip_position,
    Resume, Survive,
};

/// The writer of a file with one JSON object per line.
///
/// Each line is one write. If a kill cuts it short, it is the last line and has no newline: [`read_lines`] skips it,
/// and [`JsonLines::open`] removes it. If a full disk cuts it short, [`JsonLines::append`] removes it.
#[derive(Debug)]
pub struct JsonLines {
    file: Growing,
    last_step: Option<u64>,
    /// The last line when the file was opened.
    found: Option<Map<String, Value>>,
    _lock: Lock,
}

/// A state of the file to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    len: u64,
    last_step: Option<u64>,
}

impl JsonLines {
    /// Opens or creates a file.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if another writer has it open; [`Error::Io`]; [`Error::Malformed`] if a line other than an
    /// unfinished last one is not a JSON object.
    pub fn open(path: &Path, survive: Survive, resume: Resume) -> Result<Self> {
        let lock = Lock::acquire(path)?;
        let (mut last_step, mut found) = (None, None);
        if path.exists() {
            let bytes = fs::read(path).map_err(Error::io(path))?;
            let mut kept = Vec::new();
            let mut whole = 0;
            for (line, object) in objects(path, &bytes)? {
                let step = object.get("step").and_then(Value::as_u64);
                whole += line.len() + 1;
                if !matches!((step, resume), (Some(step), Resume::At(from)) if step >= from) {
                    kept.extend(line);
                    kept.push(b'\n');
                    last_step = step.or(last_step);
                    found = Some(object);
                }
            }
            if kept.len() < whole || whole < bytes.len() {
                replace(path, &kept, survive)?;
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(Error::io(path))?;
        sync_folder(path, survive)?;
        let len = file.metadata().map_err(Error::io(path))?.len();
        Ok(Self { file: Growing::new(path, file, len, survive)?, last_step, found, _lock: lock })
    }

    /// The step of the last line that has one.
    pub fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// Appends a line.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the line has a `step` before the last one; [`Error::Io`], and then the line is not in the
    /// file and can be appended again.
    pub fn append(&mut self, object: &Map<String, Value>) -> Result<()> {
        let step = object.get("step").and_then(Value::as_u64);
        if let (Some(step), Some(last)) = (step, self.last_step) {
            if step < last {
                let why = format!("step {step} comes before step {last}: steps must not go backwards");
                return Err(Error::Refused { path: self.path().into(), why });
            }
        }
        let mut line = serde_json::to_vec(object).unwrap_or_default();
        line.push(b'\n');
        self.file.append(&line)?;
        self.last_step = step.or(self.last_step);
        Ok(())
    }

    /// The last line when the file was opened.
    pub(crate) fn found(&self) -> Option<&Map<String, Value>> {
        self.found.as_ref()
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { len: self.file.len(), last_step: self.last_step }
    }

    /// Removes the lines since the mark; at the latest with the next append.
    pub(crate) fn go_back(&mut self, mark: Mark) {
        self.last_step = mark.last_step;
        self.file.go_back(mark.len);
    }
}

/// Reads a file with one JSON object per line; skips an unfinished last line.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Malformed`] with the line.
pub fn read_lines(path: &Path) -> Result<Vec<Map<String, Value>>> {
    let bytes = fs::read(path).map_err(Error::io(path))?;
    Ok(objects(path, &bytes)?.into_iter().map(|(_, object)| object).collect())
}

/// A complete line and its content.
type Line<'a> = (&'a [u8], Map<String, Value>);

fn objects<'a>(path: &Path, bytes: &'a [u8]) -> Result<Vec<Line<'a>>> {
    let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else {
        return Ok(Vec::new());
    };
    let lines = bytes[..end].split(|&byte| byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace))
        .map(|(index, line)| {
            let object = serde_json::from_slice(line).map_err(|error| Error::Malformed {
                path: path.into(),
                line: Some(index + 1),
                record: None,
                why: strip_position(&error.to_string()),
            })?;
            Ok((line, object))
        })
        .collect()
}
