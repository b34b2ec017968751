//! What a tier needs beyond a Rust toolchain, and how to install it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, OnceLock, PoisonError},
};

use anyhow::{bail, Context, Result};

use crate::{
    terminal::say,
    workspace::{find_program, stdout_of, Workspace},
};

/// Something that can be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// A target of the Rust toolchain.
    Target(&'static str),
    /// A component of the Rust toolchain, and the cargo command it brings.
    Component(&'static str, &'static str),
    /// Another Rust toolchain, with components.
    Toolchain(&'static str, &'static [&'static str]),
    /// A program from crates.io, at exactly this version, under target/.
    Tool(&'static str, &'static str),
    /// A program, and the Debian package that contains it.
    Program(&'static str, &'static str),
    /// The browser, under one of its names.
    Chromium,
    /// A font with Chinese characters: without it, screenshots and layout tests see boxes.
    ChineseFont,
    /// Vulkan in software.
    Lavapipe,
    /// A processor with AVX2: the limits on instruction counts are for its instructions.
    Avx2,
    /// The pinned npm packages of a folder with a lock file; nothing if it has none.
    Npm(&'static str),
    /// A private Python environment under target/, with NumPy (the page exports scripts that use it) and what tests the
    /// Python package.
    Python,
    /// Another one with torch, verl, TRL and OpenRLHF at the versions of tests/reference/requirements.txt.
    Frameworks,
}

impl Need {
    /// The command that would install it, or `None` if it is present or cannot be installed.
    pub(crate) fn missing(self, workspace: &Workspace) -> Option<String> {
        let apt = |packages: &str, present: bool| (!present).then(|| format!("apt-get install {packages}"));
        match self {
            Self::Target(target) => (!has_target(target)).then(|| format!("rustup target add {target}")),
            Self::Component(component, command) => {
                (!has_component(command)).then(|| format!("rustup component add {component}"))
            }
            Self::Toolchain(name, components) => {
                (!has_toolchain(name, components)).then(|| format!("rustup {}", toolchain(name, components).join(" ")))
            }
            Self::Tool(name, version) => (!has_tool(workspace, name, version))
                .then(|| format!("cargo install {name} --version {version} (into target/xtask/tools)")),
            Self::Program(program, package) => apt(package, find_program(program).is_some()),
            Self::Chromium => apt("chromium", chromium().is_some()),
            Self::ChineseFont => apt(&CHINESE_FONT.join(" "), has_chinese_font()),
            Self::Lavapipe => apt(&LAVAPIPE.join(" "), lavapipe().is_some()),
            Self::Avx2 => None,
            Self::Npm(folder) => {
                let missing = npm_lock(workspace, folder).is_some_and(|lock| !has_npm(workspace, folder, &lock));
                missing.then(|| format!("npm ci in {folder}"))
            }
            Self::Python => {
                let packages = PYTHON_PACKAGES.map(|(package, _)| package).join(" ");
                (!has_python(workspace)).then(|| format!("pip install {packages} (into target/xtask/python)"))
            }
            Self::Frameworks => (!has_frameworks(workspace))
                .then(|| format!("pip install --no-deps -r {FRAMEWORKS} (into target/xtask/frameworks)")),
        }
    }

    /// Installs it if it is missing; the error says why it cannot be installed.
    pub(crate) fn ensure(self, workspace: &Workspace) -> Result<()> {
        // rustup and apt-get fail if they run twice at once
        static INSTALLING: Mutex<()> = Mutex::new(());
        if let Self::Avx2 = self {
            return if has_avx2() { Ok(()) } else { bail!("this processor has no AVX2") };
        }
        let one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(step) = self.missing(workspace) else { return Ok(()) };
        say(&format!("    {step}"));
        match self {
            Self::Target(target) => rustup(&["target", "add", target]),
            Self::Component(component, _) => rustup(&["component", "add", component]),
            Self::Toolchain(name, components) => rustup(&toolchain(name, components)),
            Self::Program(program, package) => apt(&[package], || find_program(program).is_some()),
            Self::Chromium => apt(&["chromium"], || chromium().is_some()),
            Self::ChineseFont => apt(&CHINESE_FONT, has_chinese_font),
            Self::Lavapipe => apt(&LAVAPIPE, || lavapipe().is_some()),
            Self::Avx2 => Ok(()),
            Self::Npm(folder) => {
                drop(one);
                npm(workspace, folder)
            }
            Self::Python => {
                drop(one);
                python(workspace)
            }
            Self::Frameworks => {
                drop(one);
                install_frameworks(workspace)
            }
            // takes minutes, and cargo has locks of its own
            Self::Tool(name, version) => {
                drop(one);
                let mut cargo = workspace.cargo();
                cargo.args(["install", name, "--locked", "--version", &format!("={version}"), "--root"]);
                stdout_of(cargo.arg(workspace.target.join("xtask/tools"))).map(drop)
            }
        }
    }
}

// fontconfig contains fc-list, which lists fonts
const CHINESE_FONT: [&str; 2] = ["fonts-noto-cjk", "fontconfig"];
const LAVAPIPE: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

fn rustup(arguments: &[&str]) -> Result<()> {
    stdout_of(Command::new("rustup").args(arguments)).map(drop)
}

fn has_target(target: &str) -> bool {
    let folder = stdout_of(Command::new("rustc").args(["--print", "target-libdir", "--target", target]));
    folder.is_ok_and(|folder| Path::new(folder.trim()).exists())
}

fn has_component(command: &str) -> bool {
    stdout_of(Command::new("cargo").args([command, "--version"])).is_ok()
}

/// The arguments of rustup that install a toolchain.
fn toolchain<'a>(name: &'a str, components: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["toolchain", "install", name, "--profile", "minimal"];
    components.iter().for_each(|component| arguments.extend(["--component", component]));
    arguments
}

fn has_toolchain(name: &str, components: &[&str]) -> bool {
    let installed = stdout_of(Command::new("rustup").args(["component", "list", "--installed", "--toolchain", name]));
    // components are listed with the host triple after their name
    let has = |list: &str, component: &str| list.lines().any(|line| line.starts_with(component));
    installed.is_ok_and(|list| has(&list, "rustc") && components.iter().all(|component| has(&list, component)))
}

fn has_tool(workspace: &Workspace, name: &str, version: &str) -> bool {
    let list = fs::read_to_string(workspace.target.join("xtask/tools/.crates.toml")).unwrap_or_default();
    list.contains(&format!("\"{name} {version} (")) && workspace.tool(name).is_file()
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The path of the browser.
pub(crate) fn chromium() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(find_program)
}

/// The description of the software driver that the Vulkan loader reads.
pub(crate) fn lavapipe() -> Option<PathBuf> {
    let folder = fs::read_dir("/usr/share/vulkan/icd.d").ok()?;
    folder.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // drivers of other architectures may be installed too
        name.starts_with("lvp_icd") && (name == "lvp_icd.json" || name.contains(env::consts::ARCH))
    })
}

fn has_chinese_font() -> bool {
    stdout_of(Command::new("fc-list").arg(":lang=zh-cn")).is_ok_and(|fonts| !fonts.trim().is_empty())
}

/// Installs Debian packages, after which `present` must hold.
fn apt(packages: &[&str], present: impl Fn() -> bool) -> Result<()> {
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
    // if this fails, an older list of packages may still do
    UPDATED.get_or_init(|| apt_get(&["update"]).is_ok());
    apt_get(&[&["install", "-y", "--no-install-recommends"], packages].concat())?;
    if !present() {
        bail!("apt-get installed {names}, but the program is still not found");
    }
    Ok(())
}

fn is_root() -> bool {
    stdout_of(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn npm_lock(workspace: &Workspace, folder: &str) -> Option<Vec<u8>> {
    fs::read(workspace.root.join(folder).join("package-lock.json")).ok()
}

/// The copy of the lock file that says what has been installed.
fn npm_done(workspace: &Workspace, folder: &str) -> PathBuf {
    workspace.root.join(folder).join("node_modules/.installed-lock.json")
}

fn has_npm(workspace: &Workspace, folder: &str, lock: &[u8]) -> bool {
    find_program("node").is_some() && fs::read(npm_done(workspace, folder)).is_ok_and(|done| done == lock)
}

/// Installs the packages of a folder as its lock file says.
fn npm(workspace: &Workspace, folder: &str) -> Result<()> {
    Need::Program("node", "nodejs").ensure(workspace)?;
    Need::Program("npm", "npm").ensure(workspace)?;
    let mut npm = workspace.command("npm");
    npm.current_dir(workspace.root.join(folder)).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    stdout_of(&mut npm)?;
    // written last, so that an interrupted installation is repeated
    let done = npm_done(workspace, folder);
    fs::write(&done, npm_lock(workspace, folder).unwrap_or_default()).with_context(|| done.display().to_string())
}

/// What is installed into the Python environment, and the name that it is imported by.
const PYTHON_PACKAGES: [(&str, &str); 5] = [
    ("numpy>=1.24", "numpy"),
    ("mpmath", "mpmath"),
    ("pytest", "pytest"),
    ("mypy", "mypy"),
    ("typing_extensions", "typing_extensions"),
];

/// The interpreter of the Python environment.
pub(crate) fn environment(workspace: &Workspace) -> PathBuf {
    workspace.target.join("xtask/python/bin/python")
}

fn has_python(workspace: &Workspace) -> bool {
    let imports = PYTHON_PACKAGES.map(|(_, name)| name).join(", ");
    stdout_of(Command::new(environment(workspace)).args(["-c", &format!("import {imports}")])).is_ok()
}

/// Makes the Python environment.
fn python(workspace: &Workspace) -> Result<()> {
    make_environment(workspace, &workspace.target.join("xtask/python"))?;
    let mut pip = pip(environment(workspace));
    pip.args(PYTHON_PACKAGES.map(|(package, _)| package));
    stdout_of(&mut pip)?;
    if !has_python(workspace) {
        bail!("pip installed the packages, but they cannot be imported");
    }
    Ok(())
}

fn make_environment(workspace: &Workspace, folder: &Path) -> Result<()> {
    Need::Program("python3", "python3").ensure(workspace)?;
    let make = || stdout_of(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder));
    if make().is_err() {
        // Debian has the module in a separate package
        say("    apt-get install python3-venv");
        apt(&["python3-venv"], || make().is_ok())?;
    }
    Ok(())
}

fn pip(interpreter: PathBuf) -> Command {
    let mut pip = Command::new(interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

const FRAMEWORKS: &str = "tests/reference/requirements.txt";

/// The interpreter of the environment with the frameworks.
pub(crate) fn frameworks(workspace: &Workspace) -> PathBuf {
    workspace.target.join("xtask/frameworks/bin/python")
}

/// A copy of the list of packages, written when all were installed.
fn frameworks_done(workspace: &Workspace) -> PathBuf {
    workspace.target.join("xtask/frameworks/installed.txt")
}

fn has_frameworks(workspace: &Workspace) -> bool {
    let wanted = fs::read(workspace.root.join(FRAMEWORKS));
    matches!((wanted, fs::read(frameworks_done(workspace))), (Ok(wanted), Ok(installed)) if wanted == installed)
}

fn install_frameworks(workspace: &Workspace) -> Result<()> {
    make_environment(workspace, &workspace.target.join("xtask/frameworks"))?;
    let list = workspace.root.join(FRAMEWORKS);
    // the frameworks ask for versions that exclude each other
    stdout_of(pip(frameworks(workspace)).args(["--no-deps", "--requirement"]).arg(&list))?;
    stdout_of(pip(frameworks(workspace)).args(["pytest", "mypy", "hypothesis"]))?;
    let done = frameworks_done(workspace);
    fs::copy(&list, &done).map(drop).with_context(|| done.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_as_a_command() {
        let workspace = Workspace { root: "/nowhere".into(), target: "/nowhere/target".into(), host: "none".into() };
        let missing = |need: Need| need.missing(&workspace);
        assert_eq!(missing(Need::Program("no-such-program", "package")).as_deref(), Some("apt-get install package"));
        assert!(missing(Need::Tool("cargo-fuzz", "1.2.3")).is_some_and(|step| step.contains("--version 1.2.3")));
        assert!(missing(Need::Target("no-such-target")).is_some_and(|step| step == "rustup target add no-such-target"));
        assert_eq!(missing(Need::Npm("folder/without/lock")), None);
        assert_eq!(
            toolchain("1.2.3", &["a", "b"]).join(" "),
            "toolchain install 1.2.3 --profile minimal --component a --component b"
        );
    }
}
