//! `cargo xtask playground`: builds the page and serves it.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};

use crate::{
    modules::reader,
    seal::seal,
    server,
    wasm::{build, Host, Part, Simd},
    workspace::Workspace,
};

/// Build the page and serve it
///
/// Assembles www/ and the WebAssembly modules (pkg/plain and pkg/simd, chain-plain and chain-simd for the start page,
/// pkg/reader for files, pkg/gpu for WebGPU) in target/playground and serves it on 127.0.0.1 until Ctrl-C. Any static host can serve the
/// folder, from any path; where the browser allows it, the page then works offline too.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Do not serve
    #[arg(long)]
    build_only: bool,
    /// 0 takes any free port
    #[arg(long, value_name = "N", default_value_t = 8000)]
    port: u16,
    /// Take the package from a pkg folder built before
    #[arg(long, value_name = "DIR")]
    package: Option<PathBuf>,
}

pub(crate) fn playground(workspace: &Workspace, options: &Options) -> Result<()> {
    let port = options.port;
    let folder = workspace.target.join("playground");
    assemble(workspace, &folder, options.package.as_deref())?;
    if options.build_only {
        println!("{}", folder.display());
        return Ok(());
    }
    let listener = TcpListener::bind(("127.0.0.1", port))
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}; choose another port by --port N"))?;
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
    for (simd, part, name) in [
        (Simd::Plain, Part::Full, "plain"),
        (Simd::Simd128, Part::Full, "simd"),
        (Simd::Plain, Part::Chain, "chain-plain"),
        (Simd::Simd128, Part::Chain, "chain-simd"),
    ] {
        let own = folder.join("pkg").join(name);
        match package {
            Some(package) => copy(&package.join(name), &own)?,
            None => build(workspace, simd, part, Host::Web, &own)?,
        }
    }
    match package.map(|package| package.join("gpu")).filter(|gpu| gpu.exists()) {
        Some(gpu) => copy(&gpu, &folder.join("pkg/gpu"))?,
        None => build(workspace, Simd::Simd128, Part::Gpu, Host::Web, &folder.join("pkg/gpu"))?,
    }
    match package.map(|package| package.join("reader")).filter(|reader| reader.exists()) {
        Some(reader) => copy(&reader, &folder.join("pkg/reader"))?,
        None => reader(workspace, &folder.join("pkg/reader"))?,
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
