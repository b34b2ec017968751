//! The golden cases in the form that the Python package ships: all files in one, compressed.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result};
use flate2::{read::GzDecoder, Compression, GzBuilder};

use crate::workspace::Workspace;

pub(super) const NAME: &str = "conformance/golden.json.gz";

/// All files with cases, in the order of their names.
pub(super) fn text(workspace: &Workspace) -> Result<String> {
    let mut files = Vec::new();
    for stage in fs::read_dir(workspace.root.join("tests/golden"))? {
        let stage = stage?.path();
        if stage.is_dir() {
            for file in fs::read_dir(&stage)? {
                let file = file?.path();
                if file.extension().is_some_and(|extension| extension == "json") {
                    files.push(file);
                }
            }
        }
    }
    files.sort();
    let mut parts = Vec::new();
    for file in files {
        parts.push(fs::read_to_string(&file).with_context(|| file.display().to_string())?.trim_end().to_owned());
    }
    Ok(format!("{{\"format\":\"tokenwise-golden/1\",\"files\":[\n{}\n]}}\n", parts.join(",\n")))
}

/// What a file holds; empty if there is none. The bytes are not compared: they depend on the version of the compressor.
pub(super) fn held(path: &Path) -> String {
    let mut text = String::new();
    match fs::File::open(path).map(|file| GzDecoder::new(file).read_to_string(&mut text)) {
        Ok(Ok(_)) => text,
        _ => String::new(),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let file = fs::File::create(path).with_context(|| path.display().to_string())?;
    // no name and no time, so that the same cases give the same file
    let mut packed = GzBuilder::new().mtime(0).write(file, Compression::best());
    packed.write_all(text.as_bytes())?;
    packed.finish()?;
    Ok(())
}
