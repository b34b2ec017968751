//! What a tier needs beyond a Rust toolchain, and how it is had.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{bail, Context, Result};

use crate::workspace::{find_program, stdout_of, Workspace};

/// Something that can be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// A target of the Rust toolchain.
    Target(&'static str),
    /// A component of the Rust toolchain, and the cargo command it brings.
    Component(&'static str, &'static str),
    /// A program, and the Debian package that holds it.
    Program(&'static str, &'static str),
    /// The browser, under one of its names.
    Chromium,
    /// A font with Chinese characters: boxes in its place would pass for text.
    ChineseFont,
    /// Vulkan in software.
    Lavapipe,
    /// A processor with AVX2: the limits of the guards are those of its instructions.
    Avx2,
    /// The pinned npm packages of a folder with a lock file; nothing if it has none.
    Npm(&'static str),
    /// NumPy in a Python environment of its own under target/: the page hands out scripts that need it.
    NumPy,
}

impl Need {
    /// Installs it if it is missing; the error says why it cannot be had.
    pub(crate) fn ensure(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Target(target) => {
                let installed =
                    stdout_of(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
                if !Path::new(installed.trim()).exists() {
                    eprintln!("    rustup target add {target}");
                    stdout_of(Command::new("rustup").args(["target", "add", target]))?;
                }
                Ok(())
            }
            Self::Component(component, command) => {
                if stdout_of(Command::new("cargo").args([command, "--version"])).is_err() {
                    eprintln!("    rustup component add {component}");
                    stdout_of(Command::new("rustup").args(["component", "add", component]))?;
                }
                Ok(())
            }
            Self::Program(program, package) => apt(&[package], || find_program(program).is_some()),
            Self::Chromium => apt(&["chromium"], || chromium().is_some()),
            // fontconfig brings the program that lists fonts
            Self::ChineseFont => apt(&["fonts-noto-cjk", "fontconfig"], has_chinese_font),
            Self::Lavapipe => apt(&["mesa-vulkan-drivers", "libvulkan1"], || lavapipe().is_some()),
            Self::Avx2 if has_avx2() => Ok(()),
            Self::Avx2 => bail!("this processor has no AVX2"),
            Self::Npm(folder) => npm(workspace, folder),
            Self::NumPy => numpy(workspace),
        }
    }
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The browser.
pub(crate) fn chromium() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(find_program)
}

/// The description of the software driver that the Vulkan loader reads.
pub(crate) fn lavapipe() -> Option<PathBuf> {
    let folder = fs::read_dir("/usr/share/vulkan/icd.d").ok()?;
    folder.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // a machine may hold drivers for other architectures too
        name.starts_with("lvp_icd") && (name == "lvp_icd.json" || name.contains(env::consts::ARCH))
    })
}

fn has_chinese_font() -> bool {
    stdout_of(Command::new("fc-list").arg(":lang=zh-cn")).is_ok_and(|fonts| !fonts.trim().is_empty())
}

/// Installs Debian packages unless `present` already holds.
fn apt(packages: &[&str], present: impl Fn() -> bool) -> Result<()> {
    if present() {
        return Ok(());
    }
    let names = packages.join(" ");
    if find_program("apt-get").is_none() {
        bail!("not found, and there is no apt-get: please install {names}");
    }
    let root = is_root();
    if !root && stdout_of(Command::new("sudo").args(["-n", "true"])).is_err() {
        bail!("not found, and only root can install it: apt-get install {names}");
    }
    let apt_get = |arguments: &[&str]| {
        let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
        if !root {
            command.args(["-n", "apt-get"]);
        }
        stdout_of(command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments))
    };
    static UPDATED: OnceLock<bool> = OnceLock::new();
    eprintln!("    apt-get install {names}");
    // a stale list may still do; the install itself tells
    UPDATED.get_or_init(|| apt_get(&["update"]).is_ok());
    apt_get(&[&["install", "-y", "--no-install-recommends"], packages].concat())?;
    if !present() {
        bail!("apt-get installed {names}, but what is needed is still missing");
    }
    Ok(())
}

fn is_root() -> bool {
    stdout_of(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs the packages of a folder as its lock file says, unless that has been done.
fn npm(workspace: &Workspace, folder: &str) -> Result<()> {
    Need::Program("node", "nodejs").ensure(workspace)?;
    let path = workspace.root.join(folder);
    let Ok(lock) = fs::read(path.join("package-lock.json")) else { return Ok(()) };
    // written last, so that an installation that broke off is done again
    let done = path.join("node_modules/.installed-lock.json");
    if fs::read(&done).ok().as_ref() != Some(&lock) {
        Need::Program("npm", "npm").ensure(workspace)?;
        eprintln!("    npm ci in {folder}");
        let mut npm = Command::new("npm");
        npm.current_dir(&path).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        stdout_of(&mut npm)?;
        fs::write(&done, &lock).with_context(|| done.display().to_string())?;
    }
    Ok(())
}

/// Makes the environment, unless one that works is there.
fn numpy(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target.join("xtask/numpy");
    let python = folder.join("bin/python");
    let works = || stdout_of(Command::new(&python).args(["-c", "import numpy"])).is_ok();
    if works() {
        return Ok(());
    }
    Need::Program("python3", "python3").ensure(workspace)?;
    eprintln!("    pip install numpy in {}", folder.display());
    let make = || stdout_of(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    if make().is_err() {
        // Debian keeps the module in a package of its own
        apt(&["python3-venv"], || make().is_ok())?;
    }
    stdout_of(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "numpy>=1.24",
    ]))?;
    if !works() {
        bail!("pip installed numpy, but it cannot be imported");
    }
    Ok(())
}
