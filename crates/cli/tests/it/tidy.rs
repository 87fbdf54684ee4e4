//! House rules that a compiler does not check.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// `mod name;` lines of a file lead to these files.
fn modules_of(file: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(file).unwrap();
    let folder = file.parent().unwrap();
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let below = if ["lib", "main", "mod"].contains(&stem) { folder.to_path_buf() } else { folder.join(stem) };
    let mut files = Vec::new();
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(given) = line.strip_prefix("#[path = \"") {
            path = given.split('"').next().map(|given| folder.join(given));
            continue;
        }
        let declared = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let declared = declared.trim_start_matches("pub(super) ");
        if let Some(name) = declared.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            let candidates = [below.join(format!("{name}.rs")), below.join(name).join("mod.rs")];
            files.extend(path.take().into_iter().chain(candidates).filter(|file| file.exists()));
        }
    }
    files
}

#[test]
fn every_source_file_belongs_to_a_crate() {
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    let mut todo = Vec::new();
    let mut all = BTreeSet::new();
    for top in ["crates", "bench", "e2e"].map(|top| root().join(top)) {
        for file in sources(&top) {
            let file = file.canonicalize().unwrap();
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let parent = file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
            let is_root = matches!(name.as_str(), "lib.rs" | "build.rs")
                || (name == "main.rs" && ["src", "it"].contains(&parent.as_str()))
                || ["examples", "benches", "tests"].contains(&parent.as_str());
            if is_root {
                todo.push(file.clone());
            }
            all.insert(file);
        }
    }
    while let Some(file) = todo.pop() {
        if reached.insert(file.clone()) {
            todo.extend(modules_of(&file).into_iter().map(|file| file.canonicalize().unwrap()));
        }
    }
    let orphans: Vec<&PathBuf> = all.difference(&reached).collect();
    assert!(all.len() > 100, "only {} files were found", all.len());
    assert!(orphans.is_empty(), "no module declares these: {orphans:?}");
}

#[test]
fn no_source_file_grows_beyond_one_concept() {
    for top in ["crates", "bench", "e2e"].map(|top| root().join(top)) {
        for file in sources(&top) {
            let lines = std::fs::read_to_string(&file).unwrap().lines().count();
            assert!(lines <= 800, "{} has {lines} lines: is it still one concept?", file.display());
        }
    }
}

#[test]
fn the_readme_names_the_two_commands_and_only_files_that_exist() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("cargo run --release -- up --demo") && readme.contains("./test"));
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(link.starts_with("http") || root().join(link).exists(), "README links to {link}");
    }
}
