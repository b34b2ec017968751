//! Paths of the workspace, and how programs are run.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{bail, Context, Result};

/// The workspace this program was built from.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
    /// The target triple of this machine.
    pub(crate) host: String,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        // known at compile time, so that the command works from any folder
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

    /// A program under another Rust toolchain than the one this program runs under.
    pub(crate) fn with_toolchain(&self, toolchain: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command("rustup");
        command.args(["run", toolchain]).arg(program);
        // set by the cargo that started us, and preferred by its subcommands
        ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"].iter().for_each(|name| {
            command.env_remove(name);
        });
        command
    }

    /// Where a tool installed by `Need::Tool` is.
    pub(crate) fn tool(&self, name: &str) -> PathBuf {
        self.target.join("xtask/tools/bin").join(name)
    }

    /// Cargo with exactly these compiler flags, in a target directory of their own: changed flags would rebuild
    /// everything.
    pub(crate) fn cargo_with_flags(&self, flags: &str, folder: &str) -> Command {
        let mut command = self.cargo();
        command.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", self.target.join("xtask").join(folder));
        command.env_remove("CARGO_ENCODED_RUSTFLAGS");
        // these programs are run once, not debugged
        command.env("CARGO_PROFILE_RELEASE_DEBUG", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }
}

fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The first program of this name on the search path.
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
        // without its folder, which is long and of no interest
        let word = if index == 0 { word.rsplit('/').next().unwrap_or(&word) } else { &word };
        text.push_str(if index == 0 { "" } else { " " });
        text.push_str(word);
    }
    text
}

/// Runs a command and returns its standard output; on failure the error holds its standard error.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({})\n{}", shown(command), output.status, stderr.trim_end());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a command that prints to our own output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}
