//! Rollout files of every kind, read a batch at a time. What they may look like: `docs/rollout-files.md`.

mod batch;
mod csv_table;
mod feeder;
mod fields;
mod json;
mod numbers;
mod object;
mod parquet_table;
mod plain;
#[cfg(test)]
mod readings;
mod tensors;

use std::{fs::File, io::Read, path::Path};

pub(crate) use batch::{Rollouts, Row};
pub(crate) use fields::Column;

use crate::{
    args::Reading,
    failure::{Failure, Result},
    progress::Progress,
};
use feeder::{Feeder, Sink};
use fields::Names;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    JsonLines,
    Json,
    Csv,
    Parquet,
    Tensors,
}

/// Hands the batches of a file to `sink`, in order.
pub(crate) fn read(reading: &Reading, sink: Sink<'_>) -> Result<()> {
    let path = &reading.file;
    let names = Names::new(&reading.fields)?;
    let kind = kind(path)?;
    let progress = Progress::of_file(path);
    let mut feeder = Feeder::new(reading.batch_tokens, sink);
    let done = match kind {
        Kind::JsonLines => json::lines(path, &names, &mut feeder, &progress),
        Kind::Json => json::documents(path, &names, &mut feeder, &progress),
        Kind::Csv => csv_table::read(path, &names, &mut feeder, &progress),
        Kind::Parquet => parquet_table::read(path, &names, &mut feeder),
        Kind::Tensors => tensors::read(path, &names, &mut feeder, &progress),
    };
    let done = done.and_then(|()| feeder.finish());
    progress.done();
    if let Some(failure) = feeder.failure.take() {
        return Err(failure);
    }
    done.map_err(|what| Failure::input(path, what))?;
    if feeder.sequences == 0 {
        return Err(Failure::input(path, "there is no rollout in it: no field has a name of docs/rollout-files.md"));
    }
    Ok(())
}

fn kind(path: &Path) -> Result<Kind> {
    let failed = |error| Failure::input(path, error);
    let mut file = File::open(path).map_err(failed)?;
    if path.is_dir() {
        return Err(Failure::input(path, "this is a folder"));
    }
    let mut start = [0; 64];
    let mut filled = 0;
    while filled < start.len() {
        match file.read(&mut start[filled..]).map_err(failed)? {
            0 => break,
            more => filled += more,
        }
    }
    let start = &start[..filled];
    if start.iter().all(u8::is_ascii_whitespace) && filled < 64 {
        return Err(Failure::input(path, "the file is empty"));
    }
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    Ok(match extension.as_deref() {
        Some("jsonl" | "ndjson") => Kind::JsonLines,
        Some("json") => Kind::Json,
        Some("csv") => Kind::Csv,
        Some("parquet") => Kind::Parquet,
        Some("safetensors") => Kind::Tensors,
        _ if start.starts_with(b"PAR1") => Kind::Parquet,
        _ if start.trim_ascii_start().starts_with(b"{") || start.trim_ascii_start().starts_with(b"[") => Kind::Json,
        _ => {
            let what = "unknown kind of file: expected .json, .jsonl, .csv, .parquet or .safetensors";
            return Err(Failure::input(path, what));
        }
    })
}
