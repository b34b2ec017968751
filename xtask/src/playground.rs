//! `cargo xtask playground`: the page, built and served.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};

use crate::{
    options::Options,
    seal::seal,
    server,
    wasm_build::{compile, generate, Host, Simd},
    workspace::Workspace,
};

pub(crate) const HELP: &str = "\
cargo xtask playground [--build-only] [--port N] [--package DIR]

Assembles www/ and the WebAssembly package (pkg/plain and pkg/simd) in target/playground and serves it on 127.0.0.1 until
Ctrl-C. Any static host can serve the folder, from any path; where browsers allow it, it then works offline too.

  --build-only    does not serve
  --port N        default 8000; 0 takes any free port
  --package DIR   takes the package from a pkg folder built before
";

const DEFAULT_PORT: u16 = 8000;

pub(crate) fn playground(workspace: &Workspace, mut options: Options) -> Result<()> {
    let build_only = options.flag("--build-only");
    let port = options.value("--port")?.unwrap_or(DEFAULT_PORT);
    let package = options.value::<PathBuf>("--package")?;
    options.finish()?;

    let folder = workspace.target.join("playground");
    assemble(workspace, &folder, package.as_deref())?;
    if build_only {
        println!("{}", folder.display());
        return Ok(());
    }
    let listener = TcpListener::bind(("127.0.0.1", port))
        .with_context(|| format!("port {port} of 127.0.0.1; another one: --port N"))?;
    println!("http://{}/  (Ctrl-C ends)", listener.local_addr()?);
    server::serve(&listener, &folder)
}

fn assemble(workspace: &Workspace, folder: &Path, package: Option<&Path>) -> Result<()> {
    let page = workspace.root.join("www");
    if !page.join("index.html").exists() {
        bail!("there is no page (www/index.html)");
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    copy(&page, folder)?;
    for (simd, name) in [(Simd::Plain, "pkg/plain"), (Simd::Simd128, "pkg/simd")] {
        let Some(package) = package else {
            generate(&compile(workspace, simd)?, Host::Web, &folder.join(name))?;
            continue;
        };
        copy(&package.join(name.trim_start_matches("pkg/")), &folder.join(name))?;
    }
    seal(folder)
}

/// Copies a folder, but not the tests of the page.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "tests" || name == "node_modules" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(name))?;
        } else {
            fs::copy(entry.path(), to.join(name)).with_context(|| entry.path().display().to_string())?;
        }
    }
    Ok(())
}
