//! Input files: every one is opened once, whether it is a file, a pipe or standard input.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokenwise_reader::Source;

use crate::{
    failure::{Failure, Result},
    progress::Progress,
};

/// An opened file.
pub(crate) enum Opened {
    /// A regular file, which can be read from any place.
    Disk(OnDisk),
    /// A pipe, a terminal, standard input.
    Stream(Box<dyn Read>),
}

/// Standard input.
const STANDARD: &str = "-";

pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD
}

/// Opens a file; `-` is standard input.
pub(crate) fn open(path: &Path, follow: bool) -> Result<Opened> {
    if is_standard(path) {
        return Ok(Opened::Stream(Box::new(io::stdin())));
    }
    let failed = |error| Failure::input(path, error);
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(Failure::input(path, "this is a folder"));
    }
    if follow {
        return Ok(Opened::Stream(Box::new(Followed { file })));
    }
    if !about.is_file() {
        return Ok(Opened::Stream(Box::new(file)));
    }
    Ok(Opened::Disk(OnDisk { file: Arc::new(file), progress: Progress::of_bytes(about.len()) }))
}

impl Opened {
    /// From its beginning to its end.
    pub(crate) fn stream(self) -> Box<dyn Read> {
        match self {
            Self::Disk(disk) => Box::new(Rest { disk, at: 0 }),
            Self::Stream(stream) => stream,
        }
    }
}

/// A file on a disk.
#[derive(Clone)]
pub(crate) struct OnDisk {
    file: Arc<File>,
    pub(crate) progress: Progress,
}

impl Source for OnDisk {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let read = read_at(&self.file, offset, out)?;
        self.progress.advance(read);
        Ok(read)
    }
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

#[cfg(not(any(unix, windows)))]
fn read_at(mut file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read(out)
}

struct Rest {
    disk: OnDisk,
    at: u64,
}

impl Read for Rest {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.disk.read_at(self.at, out)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A file that grows: its end is waited for. A file that became shorter has ended.
struct Followed {
    file: File,
}

/// How often a file that grows is looked at.
const WAIT: Duration = Duration::from_millis(200);

impl Read for Followed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        use std::io::Seek;
        loop {
            let read = self.file.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let regular = self.file.metadata()?;
            if !regular.is_file() || regular.len() < self.file.stream_position()? {
                return Ok(0);
            }
            std::thread::sleep(WAIT);
        }
    }
}

/// The names of files that hold rollouts.
const ENDINGS: [&str; 6] = ["jsonl", "ndjson", "json", "csv", "parquet", "safetensors"];

/// Deep enough for any storage layout.
const DEEPEST: usize = 32;

/// The files of the arguments: folders and patterns (`step_*/rank_*.jsonl`) are replaced by what they hold, in the
/// order of the numbers in their names.
pub(crate) fn expand(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for argument in arguments {
        if is_standard(argument) {
            files.push(argument.clone());
        } else if argument.is_dir() {
            let mut found = Vec::new();
            walk(argument, &mut |path| {
                if is_rollout_file(path) {
                    found.push(path.to_path_buf());
                }
            })?;
            if found.is_empty() {
                let endings = ENDINGS.join(", .");
                return Err(Failure::input(argument, format!("no .{endings} file below this folder")));
            }
            sort(&mut found);
            files.extend(found);
        } else if !argument.exists() && is_pattern(argument) {
            let mut found = matching(argument)?;
            if found.is_empty() {
                return Err(Failure::input(argument, "no file has a name like this"));
            }
            sort(&mut found);
            files.extend(found);
        } else {
            files.push(argument.clone());
        }
    }
    if files.iter().filter(|file| is_standard(file)).count() > 1 {
        return Err(Failure::usage("-: standard input can be read only once"));
    }
    Ok(files)
}

fn is_rollout_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    // prime-rl writes a summary beside each of its streams
    let is_index = name.ends_with(".index.jsonl");
    !name.starts_with('.') && !is_index && ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Calls `found` with every file below a folder; a folder that is linked twice is entered once.
pub(crate) fn walk(folder: &Path, found: &mut dyn FnMut(&Path)) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    if let Ok(real) = folder.canonicalize() {
        seen.insert(real);
    }
    walk_into(folder, found, &mut seen, 0)
}

fn walk_into(
    folder: &Path,
    found: &mut dyn FnMut(&Path),
    seen: &mut std::collections::HashSet<PathBuf>,
    depth: usize,
) -> Result<()> {
    let unreadable = |error| Failure::input(folder, error);
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    sort(&mut entries);
    for path in entries {
        if !path.is_dir() {
            found(&path);
            continue;
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if depth < DEEPEST && seen.insert(real) {
            // a folder without read permission does not hide the others
            if let Err(failure) = walk_into(&path, found, seen, depth + 1) {
                crate::output::warn(&failure.to_string());
            }
        }
    }
    Ok(())
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?'])
}

/// The files whose path matches a pattern, part by part: `*` stands for any letters, `?` for one.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy().into_owned();
        if !text.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let mut next = Vec::new();
        for folder in found {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            let Ok(entries) = fs::read_dir(here) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let hidden = name.starts_with('.') && !text.starts_with('.');
                if !hidden && is_like(text.as_bytes(), name.as_bytes()) {
                    next.push(folder.join(&name));
                }
            }
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    Ok(found)
}

/// In time of the product of both lengths.
fn is_like(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((place, from)) => {
                    (p, n) = (place + 1, from + 1);
                    star = Some((place, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|letter| *letter == b'*')
}

/// By the numbers in names: `step_9` before `step_10`.
pub(crate) fn sort(files: &mut [PathBuf]) {
    files.sort_by_cached_key(|path| natural(&path.to_string_lossy()));
}

fn natural(text: &str) -> Vec<(u8, u128, String)> {
    let mut parts: Vec<(u8, u128, String)> = Vec::new();
    for letter in text.chars() {
        let digit = letter.to_digit(10).map(u128::from);
        match (digit, parts.last_mut()) {
            (Some(digit), Some((0, number, _))) => *number = number.saturating_mul(10).saturating_add(digit),
            (Some(digit), _) => parts.push((0, digit, String::new())),
            (None, Some((1, _, word))) => word.push(letter),
            (None, _) => parts.push((1, 0, letter.to_string())),
        }
    }
    parts
}

/// The step in a path: `step_7/…`, `completions_00007.parquet`, or `7.jsonl`; the parts of prime-rl's `stream/` are
/// numbered otherwise.
pub(crate) fn step_of(path: &Path) -> Option<u64> {
    let number =
        |text: &str| (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse());
    let name = path.file_name()?.to_string_lossy().into_owned();
    let stem = name.split('.').next().unwrap_or_default();
    let of_name = |name: &str| {
        let digits =
            ["step_", "step-", "completions_", "global_step_"].iter().find_map(|start| name.strip_prefix(start));
        number(digits.unwrap_or_default()).and_then(|step| step.ok())
    };
    let folders = path.parent().into_iter().flat_map(Path::components);
    let in_folder = folders.filter_map(|part| of_name(&part.as_os_str().to_string_lossy())).next_back();
    let is_part = path.parent().is_some_and(|folder| folder.ends_with("stream"));
    number(stem).filter(|_| !is_part).and_then(|step| step.ok()).or_else(|| of_name(stem)).or(in_folder)
}

/// Whether two paths are the same file.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b) || is_same_node(a, b)
}

#[cfg(unix)]
fn is_same_node(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(not(unix))]
fn is_same_node(_: &Path, _: &Path) -> bool {
    false
}

/// Refuses an output that is one of the inputs.
pub(crate) fn check_output(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    match inputs.iter().find(|input| !is_standard(input) && is_same(input, output)) {
        Some(input) => {
            let what = format!("{}: the output would replace the input {}", output.display(), input.display());
            Err(Failure::usage(what))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_orders() {
        let like = |pattern: &str, name: &str| is_like(pattern.as_bytes(), name.as_bytes());
        assert!(like("rank_*.jsonl", "rank_0.jsonl") && like("*", "") && like("a?c*", "abc") && like("*a*b", "xaab"));
        assert!(!like("rank_?.jsonl", "rank_10.jsonl") && !like("", "a") && !like("a*b", "ac"));
        let mut files = ["step_10/a", "step_9/a", "step_9/B", "1.jsonl"].map(PathBuf::from);
        sort(&mut files);
        assert_eq!(files, ["1.jsonl", "step_9/B", "step_9/a", "step_10/a"].map(PathBuf::from));
    }

    #[test]
    fn steps_are_in_names() {
        for (path, step) in [
            ("dump/7.jsonl", Some(7)),
            ("exports/step_12/rank_0.jsonl", Some(12)),
            ("completions_00005.parquet", Some(5)),
            ("rollouts.jsonl", None),
            ("traces/stream/00002.jsonl", None),
            ("step_99999999999999999999.json", None),
        ] {
            assert_eq!(step_of(Path::new(path)), step, "{path}");
        }
    }
}
