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

/// Every source file of the engine with its path below `src`.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut sources) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                sources.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources
}

/// Files outside of `home` whose code has one of these words.
fn strangers(home: &str, words: &[&str]) -> Vec<String> {
    let has = |text: &str| {
        text.lines().any(|line| {
            let code = line.trim_start();
            !code.starts_with("//") && words.iter().any(|word| code.contains(word))
        })
    };
    sources()
        .into_iter()
        .filter(|(name, text)| !name.starts_with(home) && has(text))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn only_the_conductor_has_methods_of_the_engine() {
    assert_eq!(strangers("engine.rs", &["impl Engine", "for Engine"]), [""; 0]);
}

#[test]
fn wake_ups_are_requested_in_one_file() {
    assert_eq!(strangers("agenda/wake.rs", &["look_again(", "touched.insert("]), [""; 0]);
}

#[test]
fn no_two_files_share_a_name() {
    let mut seen = std::collections::BTreeMap::new();
    for (path, _) in sources().into_iter().filter(|(path, _)| !path.ends_with("mod.rs")) {
        let name = path.rsplit('/').next().unwrap().to_owned();
        if let Some(other) = seen.insert(name, path.clone()) {
            panic!("{path} and {other} share a name");
        }
    }
}

#[test]
fn tables_are_changed_in_the_folder_of_the_state_only() {
    // The compiler sees to it for as long as no field of the state can be reached from outside of its folder.
    let (_, text) = sources().into_iter().find(|(path, _)| path == "state/mod.rs").unwrap();
    let fields = text.split("pub(crate) struct State {").nth(1).unwrap().split("\n}").next().unwrap();
    assert!(!fields.contains("pub"), "{fields}");
    let lends = text.lines().filter(|line| line.contains("-> &mut "));
    assert_eq!(lends.collect::<Vec<_>>(), [""; 0]);
}
