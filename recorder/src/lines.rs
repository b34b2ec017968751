//! A JSON Lines file that grows step by step.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::{
    error::{Error, Result},
    history::replace,
    read::strip_position,
    Resume, Survive,
};

/// The writer of a file with one JSON object per line.
///
/// Each line is one write. If a kill cuts it short, it is the last line and has no newline: [`read_lines`] skips it,
/// and [`JsonLines::open`] removes it.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: File,
    survive: Survive,
    last_step: Option<u64>,
}

impl JsonLines {
    /// Opens or creates a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Malformed`] if a line other than an unfinished last one is not a JSON object.
    pub fn open(path: &Path, survive: Survive, resume: Resume) -> Result<Self> {
        let mut last_step = None;
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
                }
            }
            if kept.len() < whole || whole < bytes.len() {
                replace(path, &kept, survive)?;
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(Error::io(path))?;
        Ok(Self { path: path.into(), file, survive, last_step })
    }

    /// The step of the last line that has one.
    pub fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// Appends a line.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn append(&mut self, object: &Map<String, Value>) -> Result<()> {
        let mut line = serde_json::to_vec(object).unwrap_or_default();
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::io(&self.path))?;
        if self.survive == Survive::PowerLoss {
            self.file.sync_data().map_err(Error::io(&self.path))?;
        }
        self.last_step = object.get("step").and_then(Value::as_u64).or(self.last_step);
        Ok(())
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
