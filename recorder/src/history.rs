//! An entropy history that grows step by step.

use std::{
    fs::{self, File, OpenOptions},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::{
    disk,
    error::{Error, Result},
    lock::Lock,
    read::parse_history,
    Resume, Survive,
};

const TAIL: &[u8] = b"\n]\n";

/// The writer of one `entropy_history_<experiment>.json`; the crate's documentation says how the file stays complete.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    survive: Survive,
    last_step: Option<u64>,
    /// The copy that has the public name.
    public: Copy,
    /// The other copy, after the first append.
    hidden: Option<Copy>,
    /// The record that the hidden copy lacks.
    missing: Vec<u8>,
    /// The last record has the public name, but the rename is not known to be on disk.
    unsynced: bool,
    _lock: Lock,
}

#[derive(Debug)]
struct Copy {
    file: File,
    /// Offset of the end of the last record.
    end: u64,
}

impl History {
    /// Opens or creates a history; also one written by another program.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if another writer has it open; [`Error::Io`]; [`Error::Malformed`] if the file exists and is
    /// not a history.
    pub fn open(path: &Path, survive: Survive, resume: Resume) -> Result<Self> {
        let io = || Error::io(path);
        let lock = Lock::acquire(path)?;
        for leftover in [beside(path, "hidden"), beside(path, "swap"), beside(path, "new")] {
            if leftover.exists() {
                disk::remove(&leftover).map_err(Error::io(&leftover))?;
            }
        }
        if !path.exists() {
            replace(path, b"[\n]\n", survive)?;
        }
        let mut bytes = fs::read(path).map_err(io())?;
        let mut records = parse_history(path, &bytes)?;
        if let Resume::At(step) = resume {
            let kept = records.partition_point(|record| record.step < step);
            if kept < records.len() {
                records.truncate(kept);
                bytes = b"[".to_vec();
                for (index, record) in records.iter().enumerate() {
                    bytes.extend(entry(record.step, record.entropy, &record.extra, index > 0));
                }
                bytes.extend(TAIL);
                replace(path, &bytes, survive)?;
            }
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io())?;
        let public = Copy { file, end: end_of_records(&bytes) as u64 };
        let last_step = records.last().map(|record| record.step);
        Ok(Self {
            path: path.into(),
            survive,
            last_step,
            public,
            hidden: None,
            missing: Vec::new(),
            unsynced: false,
            _lock: lock,
        })
    }

    /// The step of the last record.
    pub fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// Appends a record; `extra` adds further keys after `step` and `entropy`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the step is not after the last one, the entropy is not finite, or `extra` has one of the
    /// two keys; [`Error::Io`], and then the public file is unchanged or has the record, and the step can be retried.
    pub fn append(&mut self, step: u64, entropy: f64, extra: &Map<String, Value>) -> Result<()> {
        if self.unsynced && self.last_step == Some(step) {
            return self.sync_rename();
        }
        self.check(step, entropy, extra)?;
        let record = entry(step, entropy, extra, self.last_step.is_some());
        let (hidden_path, swap_path) = (beside(&self.path, "hidden"), beside(&self.path, "swap"));
        let hidden = match self.extended_copy(&hidden_path, &record) {
            Ok(hidden) => hidden,
            Err(source) => {
                // the copy is in an unknown state, and on a full disk its room is needed
                let _ = disk::remove(&hidden_path);
                return Err(Error::Io { path: hidden_path, source });
            }
        };
        let linked = disk::link(&self.path, &swap_path).is_ok();
        if let Err(source) = disk::rename(&hidden_path, &self.path) {
            let _ = disk::remove(&swap_path);
            return Err(Error::Io { path: self.path.clone(), source });
        }
        self.last_step = Some(step);
        let previous = std::mem::replace(&mut self.public, hidden);
        if linked && disk::rename(&swap_path, &hidden_path).is_ok() {
            self.hidden = Some(previous);
            self.missing = record;
        }
        self.sync_rename()
    }

    /// The next append modifies the copy that had the public name until now: the rename must be on disk before.
    fn sync_rename(&mut self) -> Result<()> {
        self.unsynced = true;
        disk::sync_folder(&self.path, self.survive)?;
        self.unsynced = false;
        Ok(())
    }

    fn check(&self, step: u64, entropy: f64, extra: &Map<String, Value>) -> Result<()> {
        let refused = |why| Err(Error::Refused { path: self.path.clone(), why });
        match self.last_step {
            Some(last) if step <= last => return refused(format!("step {step} does not come after step {last}")),
            _ if !entropy.is_finite() => {
                return refused(format!("step {step}: an entropy must be finite, got {entropy}"))
            }
            _ => {}
        }
        match ["step", "entropy"].iter().find(|key| extra.contains_key(**key)) {
            Some(key) => refused(format!("step {step}: extra keys must not contain {key:?}")),
            None => Ok(()),
        }
    }

    /// The hidden copy, or a new one, with all records and this one.
    fn extended_copy(&mut self, path: &Path, record: &[u8]) -> std::io::Result<Copy> {
        let mut text = std::mem::take(&mut self.missing);
        let mut hidden = match self.hidden.take() {
            Some(hidden) => hidden,
            None => {
                text.clear();
                let mut file = disk::create(path)?;
                disk::write(&mut file, path, &fs::read(&self.path)?)?;
                Copy { file, end: self.public.end }
            }
        };
        text.extend(record);
        hidden.extend(path, &text)?;
        disk::sync(&hidden.file, path, self.survive)?;
        Ok(hidden)
    }
}

impl Drop for History {
    fn drop(&mut self) {
        if self.hidden.is_some() {
            // a file left behind is removed when the history is opened again
            let _ = disk::remove(&beside(&self.path, "hidden"));
        }
    }
}

impl Copy {
    fn extend(&mut self, path: &Path, text: &[u8]) -> std::io::Result<()> {
        disk::write_at(&mut self.file, path, self.end, &[text, TAIL].concat())?;
        self.end += text.len() as u64;
        Ok(())
    }
}

/// The text of a record, starting with the separator.
fn entry(step: u64, entropy: f64, extra: &Map<String, Value>, follows: bool) -> Vec<u8> {
    let mut text = if follows { ",\n  " } else { "\n  " }.to_string();
    text += &format!("{{\"step\": {step}, \"entropy\": {}", Value::from(entropy));
    for (key, value) in extra {
        text += &format!(", {}: {value}", Value::from(key.as_str()));
    }
    text.push('}');
    text.into_bytes()
}

/// End of the last record, or of the opening bracket; `bytes` is a JSON array.
fn end_of_records(bytes: &[u8]) -> usize {
    let bracket = bytes.iter().rposition(|&byte| byte == b']').unwrap_or(bytes.len());
    let last = bytes[..bracket].iter().rposition(|byte| !byte.is_ascii_whitespace());
    last.map_or(bracket, |last| last + 1)
}

/// A hidden name in the same folder, which no search for histories matches.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{suffix}"))
}

/// Writes a file under a temporary name and renames it.
pub(crate) fn replace(path: &Path, bytes: &[u8], survive: Survive) -> Result<()> {
    let new = beside(path, "new");
    let write = || {
        let mut file = disk::create(&new)?;
        disk::write(&mut file, &new, bytes)?;
        disk::sync(&file, &new, survive)?;
        disk::rename(&new, path)
    };
    write().map_err(|source| {
        let _ = disk::remove(&new);
        Error::Io { path: path.into(), source }
    })?;
    disk::sync_folder(path, survive)
}
