//! The npm package: both modules of the whole and of the chain, chosen when they are loaded.

use std::{fs, path::Path};

use anyhow::{bail, Result};

use crate::{
    wasm_build::{compile_part, generate, Host, Part, Simd},
    workspace::Workspace,
};

/// Which of the two modules this machine can run.
const SIMD: &str = "\
/** Whether this machine has 128-bit vectors: it knows a module that uses them. */
export const simd = WebAssembly.validate(new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]));
";

const NODE: &str = "\
import { readFileSync } from \"node:fs\";
import { simd } from \"./simd.js\";
import { initSync } from \"./tokenwise.js\";

export * from \"./tokenwise.js\";

const file = simd ? new URL(\"tokenwise_simd.wasm\", import.meta.url) : new URL(\"tokenwise_plain.wasm\", import.meta.url);
initSync({ module: readFileSync(file) });

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

const INIT: &str = "
/**
 * Loads the module; to be awaited before the first call. The build with 128-bit vectors is taken where there are any. In Node
 * it has been loaded by the import, and this does nothing.
 */
export default function init(module?: URL | string | Response | BufferSource): Promise<void>;
";

/// Writes the package; the declarations are those of `node` and `chain`, folders made for Node.
pub(crate) fn package(workspace: &Workspace, folder: &Path, node: &Path, chain: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    entry(workspace, Part::Full, node, folder)?;
    entry(workspace, Part::Chain, chain, &folder.join("chain"))?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(workspace.root.join(name), folder.join(name))?;
    }
    fs::copy(workspace.root.join("wasm/PACKAGE.md"), folder.join("README.md"))?;
    fs::write(folder.join("package.json"), description())?;
    Ok(())
}

/// As text: the order of the conditions counts, the first that holds is taken.
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
    // `sideEffects`: in Node the import instantiates the module
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
    "./package.json": "./package.json"
  }},
  "sideEffects": ["./node.js", "./chain/node.js"],
  "engines": {{ "node": ">=18" }}
}}
"#,
        whole = from(""),
        chain = from("chain/"),
    )
}

/// One entry of the package: two modules, the glue for both, and who loads them.
fn entry(workspace: &Workspace, part: Part, node: &Path, folder: &Path) -> Result<()> {
    let scratch = workspace.target.join("wasm/scratch");
    generate(&compile_part(workspace, Simd::Plain, part)?, Host::Package, &scratch)?;
    let glue = fs::read_to_string(scratch.join("tokenwise.js"))?;
    fs::create_dir_all(folder)?;
    fs::copy(scratch.join("tokenwise_bg.wasm"), folder.join("tokenwise_plain.wasm"))?;
    generate(&compile_part(workspace, Simd::Simd128, part)?, Host::Package, &scratch)?;
    if fs::read_to_string(scratch.join("tokenwise.js"))? != glue {
        bail!("the two modules want different glue");
    }
    fs::copy(scratch.join("tokenwise_bg.wasm"), folder.join("tokenwise_simd.wasm"))?;
    fs::remove_dir_all(&scratch)?;
    fs::write(folder.join("tokenwise.js"), glue.replace("/* @ts-self-types=\"./tokenwise.d.ts\" */\n", ""))?;
    fs::write(folder.join("simd.js"), SIMD)?;
    fs::write(folder.join("node.js"), NODE)?;
    fs::write(folder.join("web.js"), WEB)?;
    fs::write(folder.join("index.d.ts"), fs::read_to_string(node.join("tokenwise.d.ts"))? + INIT)?;
    Ok(())
}
