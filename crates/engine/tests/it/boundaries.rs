//! What must stay out of the engine.

use std::path::Path;

#[test]
fn model_and_engine_depend_on_nothing_that_does_io_or_reads_a_clock() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (folder, allowed) in [("model", &["thiserror"][..]), ("engine", &["tutti-model", "rustc-hash"][..])] {
        let manifest = std::fs::read_to_string(crates.join(folder).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
        for line in dependencies.lines().filter(|line| !line.trim().is_empty()) {
            let name = line.split(['.', ' ', '=']).next().unwrap();
            assert!(allowed.contains(&name), "{folder} must not depend on {name}");
        }
    }
}

#[test]
fn the_sources_of_model_and_engine_name_no_clock_file_thread_or_random_map() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let forbidden = [
        "std::time",
        "std::fs",
        "std::net",
        "std::thread",
        "std::env",
        "std::io",
        "HashMap::new",
        "HashSet::new",
        "collections::HashMap",
        "collections::HashSet",
        "f32",
        "f64",
    ];
    let mut folders = vec![crates.join("model/src"), crates.join("engine/src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for word in forbidden {
                assert!(!text.contains(word), "{} uses {word}", path.display());
            }
            files += 1;
        }
    }
    assert!(files > 20, "only {files} files were looked at");
}
