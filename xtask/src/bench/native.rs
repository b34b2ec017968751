//! Native measurements: builds the programs, installs the peers, runs both.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{
    launch::{pools, raised, Progress},
    records::Records,
};
use crate::{
    install::Need,
    workspace::{stdout_of, Workspace},
};

pub(super) const REQUIREMENTS: [&str; 2] = ["bench/requirements.txt", "tests/reference/requirements.txt"];

/// How the library is built.
#[derive(Clone, Copy)]
pub(super) enum Build {
    /// With run-time detection of CPU features.
    Dispatch,
    /// Compiled for AVX2.
    Avx2,
    /// Compiled for the baseline of the target.
    Baseline,
    /// Like `Dispatch`, with feature `rayon`.
    Parallel,
}

impl Build {
    const fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Avx2 => "avx2",
            Self::Baseline => "baseline",
            Self::Parallel => "parallel",
        }
    }

    const fn features(self) -> &'static str {
        match self {
            Self::Dispatch | Self::Avx2 => "std",
            Self::Baseline => "",
            Self::Parallel => "std,tokenwise/rayon",
        }
    }

    const fn flags(self) -> &'static str {
        match self {
            Self::Avx2 => "-C target-feature=+avx2",
            _ => "",
        }
    }
}

pub(super) struct Native<'a> {
    pub(super) workspace: &'a Workspace,
    /// Only this item, or all.
    pub(super) only: Option<&'a str>,
}

impl Native<'_> {
    /// Measures the library alone, then beside the peers.
    pub(super) fn measure(
        &self,
        quick: bool,
        threads: Option<usize>,
        records: &mut Records,
        progress: &mut Progress,
    ) -> Result<()> {
        let wanted = |count| threads.is_none_or(|threads| threads == count);
        progress.show("building");
        let parallel = self.has_rayon()?;
        let dispatch = self.program(Build::Dispatch)?;
        let baseline = self.program(Build::Baseline)?;
        self.alone("bits-dispatch", &dispatch, 1, &["--bits"], records, progress)?;
        self.alone("bits-baseline", &baseline, 1, &["--bits"], records, progress)?;
        if wanted(1) {
            self.alone("alone-1", &dispatch, 1, &[], records, progress)?;
        }
        if wanted(2) && parallel {
            let program = self.program(Build::Parallel)?;
            self.alone("bits-2", &program, 2, &["--bits"], records, progress)?;
            self.alone("alone-2", &program, 2, &[], records, progress)?;
        }
        if quick {
            return Ok(());
        }
        let python = self.environment(progress)?;
        for count in [1, 2].into_iter().filter(|&count| wanted(count)) {
            let mut peers = raised(self.workspace, &python);
            peers.arg("bench/peers/run.py").arg(library(&dispatch)?).envs(pools(count));
            peers.env("TORCHINDUCTOR_CACHE_DIR", progress.folder.join("inductor"));
            if let Some(only) = self.only {
                peers.args(["--only", only]);
            }
            if count > 1 {
                peers.arg("--without-ours");
            }
            progress.run(&format!("peers-{count}"), &mut peers, records)?;
        }
        Ok(())
    }

    /// Measures the time per token as batches grow.
    pub(super) fn growth(&self, records: &mut Records, progress: &mut Progress) -> Result<()> {
        progress.show("building");
        let program = self.program(Build::Dispatch)?;
        progress.run("growth", raised(self.workspace, program).arg("--growth"), records)
    }

    fn alone(
        &self,
        run: &str,
        program: &Path,
        threads: usize,
        arguments: &[&str],
        records: &mut Records,
        progress: &mut Progress,
    ) -> Result<()> {
        let mut command = raised(self.workspace, program);
        command.args(arguments).envs(pools(threads));
        if let Some(only) = self.only {
            // forward and gradient are one call of this library
            command.args(["--only", if only == "ppo-forward" { "ppo" } else { only }]);
        }
        progress.run(run, &mut command, records)
    }

    /// Whether the library can use more than one thread.
    fn has_rayon(&self) -> Result<bool> {
        let mut metadata = self.workspace.cargo();
        metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: serde_json::Value = serde_json::from_str(&stdout_of(&mut metadata)?)?;
        let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
        Ok(packages.iter().any(|package| package["name"] == "tokenwise" && !package["features"]["rayon"].is_null()))
    }

    /// Builds the measuring program and the library beside it.
    pub(super) fn program(&self, build: Build) -> Result<PathBuf> {
        // separate folders, since the outputs have the same names
        let folder = format!("bench-{}", build.name());
        let mut cargo = self.workspace.cargo_with_flags(build.flags(), &folder);
        cargo.args(["build", "--quiet", "--release", "--package", "tokenwise-bench", "--features", build.features()]);
        stdout_of(&mut cargo)?;
        let products = self.workspace.target.join("xtask").join(folder).join("release");
        Ok(products.join(format!("measure{}", std::env::consts::EXE_SUFFIX)))
    }

    /// The Python environment of the peers, made if it is missing or its pinned versions have changed.
    fn environment(&self, progress: &Progress) -> Result<PathBuf> {
        let root = &self.workspace.root;
        let folder = self.workspace.target.join("bench-venv");
        let (python, done) = (folder.join("bin/python"), folder.join("installed.txt"));
        let pins = REQUIREMENTS.map(|file| fs::read_to_string(root.join(file)).with_context(|| file.to_owned()));
        let pins = pins.into_iter().collect::<Result<String>>()?;
        if fs::read_to_string(&done).is_ok_and(|installed| installed == pins) {
            return Ok(python);
        }
        Need::Program("python3", "python3").ensure(self.workspace)?;
        // torch.compile calls it
        Need::Program("g++", "g++").ensure(self.workspace)?;
        progress.show("installing the peers (several minutes, once)");
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&folder);
        if stdout_of(&mut venv).is_err() {
            Need::Program("pyvenv", "python3-venv").ensure(self.workspace).ok();
            stdout_of(&mut venv)?;
        }
        let mut pip = self.workspace.command(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--requirement", REQUIREMENTS[0]]);
        stdout_of(&mut pip)?;
        // written last, so that an interrupted installation is repeated
        fs::write(&done, pins).with_context(|| done.display().to_string())?;
        Ok(python)
    }
}

/// The C library beside the measuring program.
fn library(program: &Path) -> Result<PathBuf> {
    let folder = program.parent().context("a program is in a folder")?;
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    Ok(folder.join(format!("{prefix}tokenwise_bench{suffix}")))
}
