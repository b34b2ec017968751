//! Where things are, and how programs are called.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{bail, Context, Result};

/// The checked-out workspace.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target directory, wherever the user put it.
    pub(crate) target: PathBuf,
    /// The target triple programs run on without help.
    pub(crate) host: String,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        // compiled in, so that the command works from any folder below the root
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = root.parent().context("xtask has no parent folder")?.to_path_buf();
        let mut metadata = Command::new(cargo_program());
        metadata.current_dir(&root).args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: serde_json::Value = serde_json::from_str(&stdout_of(&mut metadata)?)?;
        let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
        let version = stdout_of(Command::new("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
        Ok(Self { target: target.into(), host: host.into(), root })
    }

    /// A program run from the root.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    pub(crate) fn cargo(&self) -> Command {
        self.command(cargo_program())
    }

    /// Cargo with exactly these compiler flags, in a target directory of their own: changed flags would rebuild everything.
    pub(crate) fn cargo_with_flags(&self, flags: &str, folder: &str) -> Command {
        let mut command = self.cargo();
        command.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", self.target.join("xtask").join(folder));
        command.env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }
}

fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Where a program lies on the search path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut text = String::new();
    for (index, word) in words.enumerate() {
        let word = word.to_string_lossy();
        // the folder of the toolchain says nothing to the reader
        let word = if index == 0 { word.rsplit('/').next().unwrap_or(&word) } else { &word };
        text.push_str(if index == 0 { "" } else { " " });
        text.push_str(word);
    }
    text
}

/// Runs a command and returns what it printed; on failure the error holds what it complained about.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({})\n{}", shown(command), output.status, complaint.trim_end());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a command whose output goes where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}
