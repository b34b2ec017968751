//! One metric over steps, from every kind of file that a run leaves behind: entropy histories, metrics in JSON Lines
//! (ours, and verl's with `data`), CSV of W&B, TensorBoard event files.

use std::{
    cell::Cell,
    fmt,
    io::{BufRead, BufReader, Cursor, Read},
    path::Path,
};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use tokenwise_reader::Budget;

use super::events;
use crate::{
    failure::{Failure, Result},
    input,
    output::{count, warn},
};

/// Step and value.
pub(super) type Points = Vec<(f64, f64)>;

/// Where the entropy is, if nothing else is asked for.
const ENTROPY_KEYS: [&str; 4] = ["policy/entropy", "actor/entropy", "entropy", "train/entropy"];
/// Names of the step.
const STEP_KEYS: [&str; 5] = ["step", "_step", "global_step", "Step", "training/global_step"];
/// Bytes that are looked at to find out what a file is.
const START: u64 = 1 << 16;
/// Steps up to here are exact.
const LAST_STEP: f64 = (1_u64 << 53) as f64;

/// A run of a file: what distinguishes it from the others in the file, and its points.
pub(super) struct Series {
    pub(super) name: Option<String>,
    pub(super) points: Points,
}

/// Reads all runs of a file; a history that is being written may change meanwhile and is then read again.
pub(super) fn read(path: &Path, key: Option<&str>, memory: Budget) -> Result<Vec<Series>> {
    const ATTEMPTS: usize = 20;
    let state = || path.metadata().ok().map(|about| (about.len(), about.modified().ok()));
    for _ in 1..ATTEMPTS {
        let before = state();
        match once(path, key, memory) {
            Err(_) if before.is_some_and(|_| path.is_file()) && before != state() => {}
            done => return done,
        }
    }
    once(path, key, memory)
}

fn once(path: &Path, key: Option<&str>, memory: Budget) -> Result<Vec<Series>> {
    let failed = |what: &dyn fmt::Display| Failure::input(path, what);
    let mut stream = input::open(path, false)?.stream();
    let mut start = Vec::new();
    (&mut stream).take(START).read_to_end(&mut start).map_err(|error| failed(&error))?;
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let skipped = start.len() - text.len();
    let first = text.trim_ascii_start().first().copied();
    let is_binary = start.contains(&0)
        || std::str::from_utf8(&text[..text.len().min(1024)]).is_err_and(|error| error.error_len().is_some());
    let is_event = events::begins(&start);
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
    let mut stream: Box<dyn Read> = Box::new(Cursor::new(start.split_off(skipped)).chain(stream));
    let collect = Collect { memory, points: Vec::new() };
    if is_event {
        return event_file(&mut stream, key, collect).map_err(|what| failed(&what));
    }
    match first {
        None => Err(failed(&"the file is empty")),
        Some(_) if is_binary => Err(failed(&"this is a binary file, not an entropy history")),
        Some(b'[') => {
            let name = key.unwrap_or("entropy");
            history(stream, name, collect)
                .map_err(|what| Failure { message: format!("{}{what}", path.display()), ..failed(&"") })
        }
        Some(b'{') => lines(stream, key, collect).map_err(|what| failed(&what)),
        Some(_) if line.contains(&b',') || line.starts_with(b"\"") => match key {
            Some(key) => table(stream, key, collect).map_err(|what| failed(&what)),
            None => Err(failed(
                &"this is CSV; expected a JSON array of {\"step\", \"entropy\"} (use --key for a metrics file)",
            )),
        },
        Some(_) => Err(failed(&"expected a JSON array of {\"step\", \"entropy\"}, JSON Lines, CSV or an event file")),
    }
}

/// Points within the budget.
struct Collect {
    memory: Budget,
    points: Points,
}

impl Collect {
    fn push(&mut self, step: f64, value: f64) -> std::result::Result<(), String> {
        push(&mut self.points, self.memory, (step, value))
    }
}

fn push(points: &mut Points, memory: Budget, point: (f64, f64)) -> std::result::Result<(), String> {
    if points.len() == points.capacity() {
        let capacity = (2 * points.capacity()).max(1024);
        memory.check("a history", 16 * capacity as u64).map_err(|fault| format!("{fault} (see --memory)"))?;
        points.reserve_exact(capacity - points.len());
    }
    points.push(point);
    Ok(())
}

fn step(x: f64) -> std::result::Result<f64, String> {
    match (0.0..=LAST_STEP).contains(&x) && x.fract() == 0.0 {
        true => Ok(x),
        false => Err(format!("step is {x}; expected a whole number from 0")),
    }
}

/// In order of steps; where a step occurs twice, as after a restart, the last value counts. Both are told.
fn ordered(mut points: Points, what: &str) -> Points {
    let unsorted = points.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    if unsorted > 0 {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let before = points.len();
    points.reverse();
    points.dedup_by_key(|point| point.0.to_bits());
    points.reverse();
    let twice = before - points.len();
    if unsorted > 0 {
        warn(&format!("{what}: the steps go back {}; they are drawn in order", count(unsorted as u64, "time")));
    }
    if twice > 0 {
        let steps = if twice == 1 { "1 step occurs".into() } else { format!("{twice} steps occur") };
        warn(&format!("{what}: {steps} again; the last value of each counts"));
    }
    points
}

/// A JSON array of records.
fn history(mut stream: Box<dyn Read>, key: &str, mut collect: Collect) -> std::result::Result<Vec<Series>, String> {
    let mut bytes = Vec::new();
    let most = collect.memory.bytes() / 2;
    (&mut stream).take(most + 1).read_to_end(&mut bytes).map_err(|error| format!(": {error}"))?;
    if bytes.len() as u64 > most {
        let fault = collect.memory.check("a history", 2 * (most + 1)).err();
        return Err(format!(": {} (see --memory)", fault.map_or_else(String::new, |fault| fault.to_string())));
    }
    let record = Cell::new(0);
    let mut refused = None;
    let mut parser = serde_json::Deserializer::from_slice(&bytes);
    let seed = Records { key, record: &record, collect: &mut collect, refused: &mut refused };
    let done = seed.deserialize(&mut parser).and_then(|()| parser.end());
    if let Some(what) = refused {
        return Err(format!(", record {}: {what}", record.get() + 1));
    }
    done.map_err(|error| {
        let what = syntax(&error);
        let line = bytes.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
        let near = &line[error.column().saturating_sub(2).min(line.len())..];
        let word = ["NaN", "-Infinity", "Infinity", "nan", "inf"]
            .into_iter()
            .find(|word| near.windows(word.len()).take(3).any(|part| part == word.as_bytes()));
        let place = format!(", line {}, record {}", error.line(), record.get() + 1);
        match word {
            Some(word) => format!("{place}: {key} is {word}; expected a finite number"),
            None if error.is_eof() => format!("{place}: the file ends too early"),
            None => format!("{place}: {what}"),
        }
    })?;
    if collect.points.is_empty() {
        return Err(": the history is empty".into());
    }
    Ok(vec![Series { name: None, points: collect.points }])
}

fn syntax(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    short(&message[..end])
}

/// The beginning of a text, for a message.
fn short(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

struct Records<'r> {
    key: &'r str,
    record: &'r Cell<usize>,
    collect: &'r mut Collect,
    refused: &'r mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Records<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Records<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        while let Some(found) = list.next_element_seed(OneRecord { key: self.key })? {
            let added = found.and_then(|(x, value)| {
                if let Some((last, _)) = self.collect.points.last() {
                    if *last == x {
                        return Err(format!("step {x} occurs twice"));
                    }
                    if *last > x {
                        return Err(format!("step {x} comes after step {last}: steps must increase"));
                    }
                }
                self.collect.push(x, value)
            });
            if let Err(what) = added {
                *self.refused = Some(what);
                return Err(serde::de::Error::custom("refused"));
            }
            self.record.set(self.record.get() + 1);
        }
        Ok(())
    }
}

struct OneRecord<'k> {
    key: &'k str,
}

impl<'de> DeserializeSeed<'de> for OneRecord<'_> {
    type Value = std::result::Result<(f64, f64), String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneRecord<'_> {
    type Value = std::result::Result<(f64, f64), String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with step and entropy")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let (mut at, mut value) = (None, None);
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            match &*name {
                "step" => at = Some(map.next_value::<Number>()?),
                name if name == self.key => value = Some(map.next_value::<Number>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let finite = |name: &str, found: Option<Number>| match found {
            None => Err(format!("field {name:?} is missing")),
            Some(Number(Ok(x))) if x.is_finite() => Ok(x),
            Some(Number(Ok(x))) => Err(format!("{name} is {x}; expected a finite number")),
            Some(Number(Err(found))) => Err(format!("{name} is {found}; expected a finite number")),
        };
        Ok(finite("step", at).and_then(step).and_then(|at| Ok((at, finite(self.key, value)?))))
    }
}

/// A number, or what was there instead.
struct Number(std::result::Result<f64, String>);

impl<'de> serde::Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct AnyNumber;
        impl<'de> Visitor<'de> for AnyNumber {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E>(self, x: f64) -> std::result::Result<Number, E> {
                Ok(Number(Ok(x)))
            }

            fn visit_u64<E>(self, x: u64) -> std::result::Result<Number, E> {
                Ok(Number(Ok(x as f64)))
            }

            fn visit_i64<E>(self, x: i64) -> std::result::Result<Number, E> {
                Ok(Number(Ok(x as f64)))
            }

            fn visit_bool<E>(self, x: bool) -> std::result::Result<Number, E> {
                Ok(Number(Err(x.to_string())))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Number, E> {
                Ok(Number(Err(format!("{:?}", short(text)))))
            }

            fn visit_unit<E>(self) -> std::result::Result<Number, E> {
                Ok(Number(Err("null".into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Number, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Number(Err("a list".into())))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Number, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Number(Err("an object".into())))
            }
        }
        deserializer.deserialize_any(AnyNumber)
    }
}

/// The longest line of a metrics file.
const LONGEST_LINE: u64 = 64 << 20;

/// JSON Lines: keys beside `step`, or under `data` as verl's file logger has them.
fn lines(stream: Box<dyn Read>, key: Option<&str>, mut collect: Collect) -> std::result::Result<Vec<Series>, String> {
    let mut file = BufReader::new(stream);
    let mut line = Vec::new();
    let mut chosen = key.map(String::from);
    let mut names: Vec<String> = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let most = LONGEST_LINE.min(collect.memory.bytes() / 8);
        let read = (&mut file).take(most).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let ended = line.ends_with(b"\n");
        if !ended && read as u64 == most {
            return Err(format!("line {number} is longer than {most} bytes"));
        }
        let text = std::str::from_utf8(&line).map_err(|_| format!("line {number} is not UTF-8 text"))?;
        let object: Map<String, Value> = match serde_json::from_str(&finite_text(text)) {
            Ok(object) => object,
            // a line that is being written
            Err(error) if error.is_eof() && !ended && !collect.points.is_empty() => break,
            Err(error) if error.is_eof() && ended => {
                return Err(format!(
                    "line {number} is not a complete object; if it is pretty-printed JSON, it is not a metrics file"
                ));
            }
            Err(error) => return Err(format!("line {number}: {}", syntax(&error))),
        };
        let inner = object.get("data").and_then(Value::as_object);
        let found = |name: &str| object.get(name).or_else(|| inner.and_then(|inner| inner.get(name)));
        if names.len() < 30 {
            for name in object.keys().chain(inner.into_iter().flat_map(Map::keys)) {
                if names.len() < 30 && !names.contains(name) {
                    names.push(short(name));
                }
            }
        }
        let wanted = match &chosen {
            Some(name) => Some(name.as_str()),
            None => ENTROPY_KEYS.into_iter().find(|name| found(name).is_some()),
        };
        let Some((name, value)) = wanted.and_then(|name| Some((name, found(name)?))) else { continue };
        let at = STEP_KEYS.iter().find_map(|name| found(name)).ok_or_else(|| format!("line {number} has no step"))?;
        let at =
            at.as_f64().ok_or_else(|| format!("line {number}: step is {}; expected a number", short(&at.to_string())));
        let at = at.and_then(|at| step(at).map_err(|what| format!("line {number}: {what}")))?;
        let value = match value.as_f64() {
            Some(value) => value,
            None => {
                let found = value.as_str().map_or_else(|| value.to_string(), String::from);
                return Err(format!("line {number}: {name} is {}; expected a finite number", short(&found)));
            }
        };
        let name = name.to_string();
        collect.push(at, value)?;
        chosen = Some(name);
    }
    if collect.points.is_empty() {
        let wanted = chosen.map_or_else(|| format!("none of {}", ENTROPY_KEYS.join(", ")), |key| format!("no {key:?}"));
        return Err(format!("{wanted} in this file; found {}. Choose one with --key", names.join(", ")));
    }
    Ok(vec![Series { name: None, points: ordered(collect.points, &chosen.unwrap_or_default()) }])
}

/// With quotes around Python's bare words.
fn finite_text(line: &str) -> String {
    if !line.contains("NaN") && !line.contains("Infinity") {
        return line.into();
    }
    let mut text = line.to_string();
    for space in [": ", ":"] {
        for word in ["NaN", "-Infinity", "Infinity"] {
            text = text.replace(&format!("\"{space}{word}"), &format!("\"{space}\"{word}\""));
        }
    }
    text
}

/// A CSV table: a column for the step, and one or more for the metric, as W&B exports them (`run - key`).
fn table(stream: Box<dyn Read>, key: &str, collect: Collect) -> std::result::Result<Vec<Series>, String> {
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(stream);
    let header = table.headers().map_err(|error| error.to_string())?.clone();
    let at = header.iter().position(|name| STEP_KEYS.contains(&name));
    let at = at.ok_or_else(|| {
        format!("no column for the step; found {}", short(&header.iter().collect::<Vec<_>>().join(", ")))
    })?;
    let suffix = format!(" - {key}");
    let columns: Vec<(usize, Option<String>)> = header
        .iter()
        .enumerate()
        .filter_map(|(index, name)| match name.strip_suffix(&suffix) {
            Some(run) => Some((index, Some(run.to_string()))),
            None => (name == key).then_some((index, None)),
        })
        .collect();
    if columns.is_empty() {
        let names = header.iter().map(short).collect::<Vec<_>>().join(", ");
        return Err(format!("no column {key:?}; found {}", short(&names)));
    }
    let mut all: Vec<Points> = columns.iter().map(|_| Vec::new()).collect();
    let mut row = csv::StringRecord::new();
    while table.read_record(&mut row).map_err(|error| error.to_string())? {
        let line = row.position().map_or(0, csv::Position::line);
        let number = |index: usize, name: &str| {
            let cell = row.get(index).unwrap_or_default();
            let x: Option<f64> = cell.parse().ok().filter(|x: &f64| x.is_finite());
            x.ok_or_else(|| format!("line {line}: {name} is {:?}; expected a finite number", short(cell)))
        };
        let x = step(number(at, "step")?).map_err(|what| format!("line {line}: {what}"))?;
        for ((index, _), points) in columns.iter().zip(&mut all) {
            // a run that has no value at this step
            if !row.get(*index).unwrap_or_default().is_empty() {
                push(points, collect.memory, (x, number(*index, key)?))?;
            }
        }
    }
    let series = columns.into_iter().zip(all).filter(|(_, points)| !points.is_empty());
    let series: Vec<Series> = series
        .map(|((_, name), points)| {
            let what = name.clone().unwrap_or_else(|| key.into());
            Series { name, points: ordered(points, &what) }
        })
        .collect();
    match series.is_empty() {
        true => Err(format!("the column {key:?} is empty")),
        false => Ok(series),
    }
}

fn event_file(
    stream: &mut dyn Read,
    key: Option<&str>,
    mut collect: Collect,
) -> std::result::Result<Vec<Series>, String> {
    let mut chosen = key.map(String::from);
    let mut tags: Vec<String> = Vec::new();
    events::read(&mut BufReader::new(stream), &mut |scalar| {
        if chosen.is_none() && ENTROPY_KEYS.contains(&scalar.tag.as_str()) {
            chosen = Some(scalar.tag.clone());
        }
        if chosen.as_ref() == Some(&scalar.tag) {
            if !scalar.value.is_finite() {
                let events::Scalar { tag, step, value } = scalar;
                return Err(format!("step {step}: {tag} is {value}; expected a finite number"));
            }
            collect.push(step(scalar.step as f64)?, scalar.value)?;
        } else if tags.len() < 30 && !tags.contains(&scalar.tag) {
            tags.push(short(&scalar.tag));
        }
        Ok(())
    })?;
    if collect.points.is_empty() {
        let wanted = chosen.map_or_else(|| format!("none of {}", ENTROPY_KEYS.join(", ")), |key| format!("no {key:?}"));
        let found = if tags.is_empty() { "no scalars".into() } else { tags.join(", ") };
        return Err(format!("{wanted} in this event file; found {found}. Choose one with --key"));
    }
    Ok(vec![Series { name: None, points: ordered(collect.points, &chosen.unwrap_or_default()) }])
}
