//! The npm package: the whole library and the chain, each with and without simd128, chosen when it is loaded; and the
//! whole library with WebGPU.

use std::{fs, path::Path};

use anyhow::{bail, Result};

use super::build::{build, Host, Part, Simd};
use crate::workspace::Workspace;

/// Detects simd128.
const SIMD: &str = "\
/** Whether this machine has 128-bit vectors: it knows a module that uses them. */
export const simd = WebAssembly.validate(new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]));
";

const NODE: &str = "\
import { readFileSync } from \"node:fs\";
import \"./memory.js\";
import { simd } from \"./simd.js\";
import { initSync } from \"./tokenwise.js\";

export * from \"./tokenwise.js\";

const own = () =>
  simd ? new URL(\"tokenwise_simd.wasm\", import.meta.url) : new URL(\"tokenwise_plain.wasm\", import.meta.url);
initSync({ module: readFileSync(own()) });

/** Nothing is left to do in Node. */
export default async function init() {}
";

const WEB: &str = "\
import { simd } from \"./simd.js\";
import load from \"./tokenwise.js\";

export * from \"./tokenwise.js\";

/** Loads the module: the one that fits this browser, or what is handed over (an address, a response, bytes). */
export default async function init(module) {
  const own = () =>
    simd ? new URL(\"tokenwise_simd.wasm\", import.meta.url) : new URL(\"tokenwise_plain.wasm\", import.meta.url);
  await load({ module_or_path: module ?? own() });
}
";

const GPU_NODE: &str = "\
import { readFileSync } from \"node:fs\";
import \"./memory.js\";
import { initSync } from \"./tokenwise.js\";

export * from \"./tokenwise.js\";

initSync({ module: readFileSync(new URL(\"tokenwise_gpu.wasm\", import.meta.url)) });

/** Nothing is left to do in Node. */
export default async function init() {}
";

const GPU_WEB: &str = "\
import load from \"./tokenwise.js\";

export * from \"./tokenwise.js\";

/** Loads the module, or what is handed over (an address, a response, bytes). */
export default async function init(module) {
  await load({ module_or_path: module ?? new URL(\"tokenwise_gpu.wasm\", import.meta.url) });
}
";

const INIT: &str = "
/**
 * Loads the module; await it before the first call. The build with 128-bit vectors is taken where they are supported.
 * In Node the import has already loaded it, and this does nothing.
 */
export default function init(module?: URL | string | Response | BufferSource): Promise<void>;
";

/// Writes the package; the declarations come from the builds for Node in `node`, `chain` and `gpu`.
pub(crate) fn package(workspace: &Workspace, folder: &Path, node: &Path, chain: &Path, gpu: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    entry(workspace, Part::Full, node, folder)?;
    entry(workspace, Part::Chain, chain, &folder.join("chain"))?;
    gpu_entry(workspace, gpu, &folder.join("gpu"))?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(workspace.root.join(name), folder.join(name))?;
    }
    fs::copy(workspace.root.join("wasm/PACKAGE.md"), folder.join("README.md"))?;
    fs::write(folder.join("package.json"), description())?;
    Ok(())
}

/// package.json, as text because the order of the conditions matters: the first that holds is taken.
fn description() -> String {
    let from = |prefix: &str| {
        let conditions = [
            ("types", "index.d.ts"),
            ("node", "node.js"),
            ("browser", "web.js"),
            ("import", "web.js"),
            ("default", "web.js"),
        ];
        conditions.map(|(condition, file)| format!("\"{condition}\": \"./{prefix}{file}\"")).join(", ")
    };
    let (version, license) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_LICENSE"));
    // `sideEffects`: in Node the import instantiates the module and prepares malloc
    format!(
        r#"{{
  "name": "tokenwise",
  "version": "{version}",
  "description": "Token-level reinforcement-learning formulas for language models: masks, gradients, the same bits everywhere",
  "license": "{license}",
  "keywords": ["reinforcement-learning", "ppo", "grpo", "rlhf", "webassembly"],
  "type": "module",
  "main": "./node.js",
  "browser": "./web.js",
  "types": "./index.d.ts",
  "exports": {{
    ".": {{ {whole} }},
    "./chain": {{ {chain} }},
    "./gpu": {{ {gpu} }},
    "./package.json": "./package.json"
  }},
  "sideEffects": [
    "./node.js", "./chain/node.js", "./gpu/node.js", "./gpu/tokenwise.js",
    "./memory.js", "./chain/memory.js", "./gpu/memory.js"
  ],
  "engines": {{ "node": ">=18" }}
}}
"#,
        whole = from(""),
        chain = from("chain/"),
        gpu = from("gpu/"),
    )
}

/// One entry point of the package: two modules, their common bindings and facade, and the loaders.
fn entry(workspace: &Workspace, part: Part, node: &Path, folder: &Path) -> Result<()> {
    let scratch = workspace.target.join("wasm/scratch");
    build(workspace, Simd::Simd128, part, Host::Package, &scratch)?;
    let bindings = fs::read_to_string(scratch.join("bindings.js"))?;
    let simd = fs::read(scratch.join("bindings_bg.wasm"))?;
    build(workspace, Simd::Plain, part, Host::Package, &scratch)?;
    if fs::read_to_string(scratch.join("bindings.js"))? != bindings {
        bail!("the two modules have different bindings");
    }
    copy_scripts(&scratch, folder)?;
    fs::copy(scratch.join("bindings_bg.wasm"), folder.join("tokenwise_plain.wasm"))?;
    fs::write(folder.join("tokenwise_simd.wasm"), simd)?;
    fs::remove_dir_all(&scratch)?;
    fs::write(folder.join("simd.js"), SIMD)?;
    fs::write(folder.join("node.js"), NODE)?;
    fs::write(folder.join("web.js"), WEB)?;
    fs::write(folder.join("index.d.ts"), fs::read_to_string(node.join("tokenwise.d.ts"))? + INIT)?;
    Ok(())
}

/// The entry point with WebGPU: one module. Its errors are the class of the whole library.
fn gpu_entry(workspace: &Workspace, node: &Path, folder: &Path) -> Result<()> {
    let scratch = workspace.target.join("wasm/scratch");
    build(workspace, Simd::Simd128, Part::Gpu, Host::Package, &scratch)?;
    copy_scripts(&scratch, folder)?;
    fs::copy(scratch.join("bindings_bg.wasm"), folder.join("tokenwise_gpu.wasm"))?;
    fs::remove_dir_all(&scratch)?;
    fs::write(folder.join("error.js"), "export * from \"../error.js\";\n")?;
    fs::write(folder.join("node.js"), GPU_NODE)?;
    fs::write(folder.join("web.js"), GPU_WEB)?;
    fs::write(folder.join("index.d.ts"), fs::read_to_string(node.join("tokenwise.d.ts"))? + INIT)?;
    Ok(())
}

/// Copies the scripts of a build.
fn copy_scripts(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "js") {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}
