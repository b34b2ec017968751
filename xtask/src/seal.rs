//! The last step of building the page: writes the list of files and a hash of the build into the service worker, which
//! caches them for offline use, and preload hints into index.html.

use std::{
    collections::BTreeSet,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};

/// The modules loaded first; they import the others.
const FIRST: [&str; 3] = ["main.js", "chain/page.js", "pkg/chain-simd/tokenwise.js"];
/// The script element of index.html; the hints are inserted before it.
const START: &str = "<script type=\"module\" src=\"main.js\">";

/// Completes the assembled page in `folder`.
pub(crate) fn seal(folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    list(folder, "", &mut files)?;
    files.sort();
    let mut build = Fingerprint::new();
    for file in &files {
        build.add(file.as_bytes());
        build.add(&fs::read(folder.join(file))?);
    }
    let build = format!("{:016x}", build.0);

    let worker = folder.join("sw.js");
    let code = fs::read_to_string(&worker).with_context(|| worker.display().to_string())?;
    let kept: Vec<&str> = files.iter().map(|file| if file == "index.html" { "./" } else { file }).collect();
    let kept: Vec<&str> = kept.into_iter().filter(|file| is_loaded(file)).collect();
    fs::write(&worker, format!("const BUILD = {build:?};\nconst FILES = {};\n{code}", serde_json::to_string(&kept)?))?;

    let index = folder.join("index.html");
    let page = fs::read_to_string(&index)?;
    let Some(start) = page.find(START) else { bail!("{} does not start main.js", index.display()) };
    let mut hints = format!("<meta name=\"build\" content=\"{build}\">\n");
    for module in imported(folder)? {
        writeln!(hints, "<link rel=\"modulepreload\" href=\"{module}\">")?;
    }
    // not the module: which one depends on the page, and browsers warn of what was fetched and not used
    fs::write(&index, format!("{}{hints}{}", &page[..start], &page[start..]))?;
    Ok(())
}

/// Whether the page loads this file: it never loads declarations, and the browser caches the service worker itself.
fn is_loaded(file: &str) -> bool {
    !(file.ends_with(".d.ts") || file.ends_with("package.json") || file.ends_with(".md") || file == "sw.js")
}

/// All files below a folder, as relative paths with `/`.
fn list(folder: &Path, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_str().context("a file name that is not UTF-8")?);
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// The first modules and everything they import, directly or indirectly.
fn imported(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = FIRST.map(String::from).into();
    while let Some(module) = open.pop() {
        let path = folder.join(&module);
        let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        open.extend(
            imports(&source).into_iter().filter_map(|name| resolve(&module, name)).filter(|next| !found.contains(next)),
        );
        found.insert(module);
    }
    Ok(found)
}

/// The paths in static `import` declarations of a module, without dynamic `import()`.
fn imports(source: &str) -> Vec<&str> {
    let code = source.lines().map(str::trim_start).filter(|line| !line.starts_with(['*', '/']));
    let named = code.filter_map(|line| {
        let after = line.split_once(" from \"").or_else(|| line.split_once("import \""))?.1;
        after.split_once('"').map(|(name, _)| name)
    });
    named.filter(|name| name.starts_with('.')).collect()
}

/// The path of an import, relative to the page.
fn resolve(module: &str, name: &str) -> Option<String> {
    let mut path = PathBuf::from(module);
    path.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => {
                path.pop();
            }
            _ => path.push(part),
        }
    }
    Some(path.to_str()?.replace('\\', "/"))
}

/// FNV-1a: enough to distinguish builds.
struct Fingerprint(u64);

impl Fingerprint {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        // with the length, so that moving bytes from one file to the next changes the hash
        for &byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_and_resolved() {
        let source = "import { a } from \"./a.js\";\n// from \"./no.js\"\nimport {\n  b,\n} from \"../x/b.js\";\n\
                      import \"./c.js\";\nconst d = import(\"./d.js\");\n";
        assert_eq!(imports(source), ["./a.js", "../x/b.js", "./c.js"]);
        assert_eq!(resolve("chain/page.js", "../parts/dom.js").as_deref(), Some("parts/dom.js"));
        assert_eq!(resolve("main.js", "./shell.js").as_deref(), Some("shell.js"));
    }

    #[test]
    fn a_changed_file_is_another_build() {
        let folder = std::env::temp_dir().join(format!("tokenwise-seal-{}", std::process::id()));
        let sealed = |text: &str| {
            for (file, content) in [
                ("index.html", format!("<head>{START}</script>").as_str()),
                ("sw.js", "// keeps\n"),
                ("main.js", "import \"./parts/a.js\";\n"),
                ("parts/a.js", text),
                ("chain/page.js", ""),
                ("pkg/chain-simd/tokenwise.js", ""),
                ("pkg/simd/tokenwise.d.ts", ""),
            ] {
                fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
                fs::write(folder.join(file), content).unwrap();
            }
            seal(&folder).unwrap();
            fs::read_to_string(folder.join("sw.js")).unwrap()
        };
        let one = sealed("1");
        assert_eq!(one, sealed("1"));
        assert_ne!(one, sealed("2"));
        assert!(one.contains("\"parts/a.js\"") && one.contains("\"./\"") && !one.contains(".d.ts"), "{one}");
        let page = fs::read_to_string(folder.join("index.html")).unwrap();
        assert!(page.contains("<link rel=\"modulepreload\" href=\"parts/a.js\">"), "{page}");
        fs::remove_dir_all(folder).unwrap();
    }
}
