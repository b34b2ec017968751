//! An event file that grows step by step.

use std::{
    fs::{self, File, OpenOptions},
    io::BufReader,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use prost::Message;

use crate::{
    disk::sync_folder,
    distribution::Distribution,
    error::{Error, Result},
    growing::Growing,
    lock::Lock,
    Resume, Survive,
};

use super::{
    frame::{framed, next, Next, FRAME, LONGEST},
    message,
};

/// The version that the first record of a file names.
const VERSION: &str = "brain.Event:2";
/// TensorBoard reads the files of a folder whose names contain `tfevents`; W&B reads the seconds that follow.
const PREFIX: &str = "events.out.tfevents.";

/// The writer of an event file `events.out.tfevents.<seconds>.<experiment>` for TensorBoard.
///
/// A step is one record, with a checksum of its own, and one write. If a kill or a full disk cuts it short, readers
/// ignore it and [`EventFile::open`] removes it. Numbers have the precision of `f32`, which is that of the format.
///
/// ```
/// use tokenwise_recorder::{read_events, EventFile, Resume, Survive};
///
/// let folder = std::env::temp_dir().join(format!("tokenwise-events-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let mut events = EventFile::open(&folder, "solver", Survive::Kill, Resume::End)?;
/// events.record(1, &[("policy/entropy", 4.5), ("analysis/wH_sum", 0.25)])?;
/// events.record_with(2, &[("policy/entropy", 4.25)], &[("H", &[0.5, 1.0, 1.5])])?;
///
/// let steps = read_events(events.path())?;
/// assert_eq!(steps[1].step, 2);
/// assert_eq!(steps[1].scalars, [("policy/entropy".to_string(), 4.25)]);
/// assert_eq!(steps[1].histograms[0].1.count, 3.0);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EventFile {
    file: Growing,
    last_step: Option<u64>,
    _lock: Lock,
}

/// One step of an event file.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The training step.
    pub step: u64,
    /// When it was recorded, in seconds since 1970.
    pub wall_time: f64,
    /// Tags and numbers, in the order of the file.
    pub scalars: Vec<(String, f32)>,
    /// Tags and histograms, in the order of the file.
    pub histograms: Vec<(String, EventHistogram)>,
}

/// A histogram of an event file.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHistogram {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of values.
    pub count: f64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_squares: f64,
    /// Right edge and count of each bucket, from left to right.
    pub buckets: Vec<(f64, f64)>,
}

impl EventFile {
    /// Opens the event file of an experiment in an existing folder, or creates it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the experiment's name is not a valid file name; [`Error::Locked`] if another writer has
    /// the file open; [`Error::Io`]; [`Error::Malformed`] with the record if the file is damaged anywhere but at its
    /// end.
    pub fn open(folder: &Path, experiment: &str, survive: Survive, resume: Resume) -> Result<Self> {
        if experiment.is_empty() || experiment.contains(['/', '\\', '\0']) {
            let why = format!("the experiment's name must be a valid file name, got {experiment:?}");
            return Err(Error::Refused { path: folder.into(), why });
        }
        // not the name of the event file: it differs from second to second, and TensorBoard would read the lock
        let lock = Lock::acquire(&folder.join(format!("tensorboard_{experiment}")))?;
        let path = match existing(folder, experiment)? {
            Some(path) => path,
            None => folder.join(format!("{PREFIX}{}.{experiment}", now() as u64)),
        };
        let options = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = options().map_err(Error::io(&path))?;
        let (mut len, mut last_step) = (0, None);
        visit(&path, &file, |event, end| {
            let step = event.summary.is_some().then_some(event.step.max(0) as u64);
            if matches!((step, resume), (Some(step), Resume::At(from)) if step >= from) {
                return false;
            }
            len = end;
            last_step = step.or(last_step);
            true
        })?;
        let file = Growing::new(&path, file, len, survive)?;
        let mut events = Self { file, last_step, _lock: lock };
        if len == 0 {
            let version = message::Event { file_version: Some(VERSION.into()), ..Default::default() };
            events.append(&message::Event { wall_time: now(), ..version })?;
        }
        sync_folder(&path, survive)?;
        Ok(events)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The last step in the file; a resumed run continues after it.
    pub fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// Appends the scalars of a step; their keys become the tags.
    ///
    /// # Errors
    ///
    /// Those of [`Self::record_with`].
    pub fn record(&mut self, step: u64, metrics: &[(&str, f64)]) -> Result<()> {
        self.record_with(step, metrics, &[])
    }

    /// Like [`Self::record`], with histograms: 20 equal-width buckets over the finite values. Without any finite value
    /// there is no histogram.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the step does not come after the last one, a tag is empty or occurs twice, or the record
    /// would be too long; [`Error::Io`]. Then the file does not have the step, and it can be recorded again.
    pub fn record_with(&mut self, step: u64, metrics: &[(&str, f64)], values: &[(&str, &[f64])]) -> Result<()> {
        let refused = |why| Err(Error::Refused { path: self.path().into(), why });
        match self.last_step {
            Some(last) if step <= last => return refused(format!("step {step} does not come after step {last}")),
            _ => {}
        }
        let Ok(number) = i64::try_from(step) else {
            return refused(format!("step {step} is larger than {}, the largest of the format", i64::MAX));
        };
        let mut tags: Vec<&str> =
            metrics.iter().map(|(tag, _)| *tag).chain(values.iter().map(|(tag, _)| *tag)).collect();
        tags.sort_unstable();
        if tags.first().is_some_and(|tag| tag.is_empty()) {
            return refused(format!("step {step}: a tag must not be empty"));
        }
        if let Some(pair) = tags.windows(2).find(|pair| pair[0] == pair[1]) {
            return refused(format!("step {step}: the tag {:?} is given twice", pair[0]));
        }
        let scalars = metrics.iter().map(|(tag, value)| message::Value {
            tag: (*tag).into(),
            simple_value: Some(*value as f32),
            histo: None,
        });
        let histograms = values.iter().filter_map(|(tag, values)| {
            Some(message::Value { tag: (*tag).into(), simple_value: None, histo: Some(histogram(values)?) })
        });
        let summary = message::Summary { value: scalars.chain(histograms).collect() };
        let event = message::Event { wall_time: now(), step: number, file_version: None, summary: Some(summary) };
        self.append(&event)?;
        self.last_step = Some(step);
        Ok(())
    }

    fn append(&mut self, event: &message::Event) -> Result<()> {
        let data = event.encode_to_vec();
        if data.len() as u64 > LONGEST {
            let why = format!("step {}: a record has at most {LONGEST} bytes, got {}", event.step, data.len());
            return Err(Error::Refused { path: self.path().into(), why });
        }
        self.file.append(&framed(&data))
    }
}

/// Reads the steps of an event file, also while [`EventFile`] writes it; skips an unfinished last record and what has
/// neither scalars nor histograms.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Malformed`] with the record.
pub fn read_events(path: &Path) -> Result<Vec<Event>> {
    let file = File::open(path).map_err(Error::io(path))?;
    let mut events = Vec::new();
    visit(path, &file, |event, _| {
        if let Some(summary) = event.summary {
            let mut found = Event {
                step: event.step.max(0) as u64,
                wall_time: event.wall_time,
                scalars: vec![],
                histograms: vec![],
            };
            for value in summary.value {
                if let Some(number) = value.simple_value {
                    found.scalars.push((value.tag, number));
                } else if let Some(histogram) = value.histo {
                    found.histograms.push((value.tag, histogram.into()));
                }
            }
            events.push(found);
        }
        true
    })?;
    Ok(events)
}

/// Calls `each` with every complete record and the offset of its end, until it returns false. Holds one record at a
/// time.
fn visit(path: &Path, file: &File, mut each: impl FnMut(message::Event, u64) -> bool) -> Result<()> {
    let mut source = BufReader::new(file);
    let (mut end, mut record) = (0, 0);
    loop {
        record += 1;
        let malformed = |why| Error::Malformed { path: path.into(), line: None, record: Some(record), why };
        let data = match next(&mut source).map_err(Error::io(path))? {
            Next::End => return Ok(()),
            Next::Damaged(why) => return Err(malformed(why)),
            Next::Data(data) => data,
        };
        let event = message::Event::decode(&data[..]).map_err(|error| malformed(error.to_string()))?;
        if record == 1 && event.file_version.as_deref() != Some(VERSION) {
            let found = event.file_version.as_deref().unwrap_or("none");
            return Err(malformed(format!("the first record must name the version {VERSION:?}, got {found:?}")));
        }
        end += FRAME + data.len() as u64;
        if !each(event, end) {
            return Ok(());
        }
    }
}

/// The newest event file of an experiment.
fn existing(folder: &Path, experiment: &str) -> Result<Option<PathBuf>> {
    let mut newest: Option<(u64, PathBuf)> = None;
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let middle = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(experiment)?.strip_suffix('.'));
        let Some(seconds) = middle.and_then(|seconds| seconds.parse().ok()) else { continue };
        if newest.as_ref().is_none_or(|(before, _)| *before < seconds) {
            newest = Some((seconds, path));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn histogram(values: &[f64]) -> Option<message::Histogram> {
    let found = Distribution::of(values)?;
    let (count, [min, .., max]) = (found.count as f64, found.quantiles);
    // equal values have one bucket: buckets without width would lie on top of each other
    let bins = if min < max { &found.bins[..] } else { &found.bins[..1] };
    let edge = |index: usize| {
        let share = (index + 1) as f64 / bins.len() as f64;
        if index + 1 < bins.len() {
            min * (1.0 - share) + max * share
        } else {
            max
        }
    };
    Some(message::Histogram {
        min,
        max,
        num: count,
        sum: found.mean * count,
        sum_squares: (found.std * found.std + found.mean * found.mean) * count,
        bucket_limit: (0..bins.len()).map(edge).collect(),
        bucket: bins.iter().map(|&count| count as f64).collect(),
    })
}

impl From<message::Histogram> for EventHistogram {
    fn from(histogram: message::Histogram) -> Self {
        Self {
            min: histogram.min,
            max: histogram.max,
            count: histogram.num,
            sum: histogram.sum,
            sum_squares: histogram.sum_squares,
            buckets: histogram.bucket_limit.into_iter().zip(histogram.bucket).collect(),
        }
    }
}
