//! A folder that is removed in the end, and runs of the command in it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tokenwise-lab-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The command with tiny networks, writing here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        // at run time: some compiler wrappers do not hand on variables with a hyphen
        let mut command = Command::new(std::env::var("CARGO_BIN_EXE_tokenwise-lab").unwrap());
        command.args(["run", "--tiny", "--no-report", "--out"]).arg(&self.0).args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The content of every file that must not differ between two runs.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.0.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    open.push(path);
                } else if name != "timing.jsonl" && !name.contains("tfevents") && !name.starts_with('.') {
                    found.insert(path.strip_prefix(&self.0).unwrap().to_owned(), fs::read(&path).unwrap());
                }
            }
        }
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
