//! `tutti topology`: what it says of a running cluster and of files, and the pictures in the documentation.

use crate::kubectl::{World, example};
use crate::process::{Folder, Running, run, tutti};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Pictures of docs/topology.md, each of the scenario of its name.
const PICTURES: [&str; 4] = ["composite", "fifty-racks", "required-rack", "slices"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn scenario(name: &str) -> String {
    docs().join("scenarios").join(format!("{name}.txt")).display().to_string()
}

fn json(arguments: &[&str]) -> Value {
    let ended = run(&[&["topology", "--json"], arguments].concat());
    assert!(ended.status.success(), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_tree_of_a_cluster_is_read_from_its_labels() {
    let folder = Folder::new();
    let kubeconfig = folder.file("kubeconfig");
    let mut up = Running::start(tutti(&[
        "up",
        "--port",
        "0",
        "--kubeconfig",
        &kubeconfig,
        "--nodes",
        "32",
        "--gpus",
        "8",
        "--no-scheduler",
    ]));
    up.wait_for_line("Ctrl-C");
    let tree = json(&["--kubeconfig", &kubeconfig, "--shape", "gpu=8", "--shape", "cpu=40"]);
    assert_eq!(
        tree["levels"],
        serde_json::json!(["topology.kubernetes.io/zone", "tutti.dev/rack"]),
        "{tree:#}"
    );
    assert_eq!(tree["cluster"]["nodesCount"], 32);
    let zones = tree["cluster"]["domains"].as_array().unwrap();
    assert_eq!((zones.len(), &zones[1]["value"]), (2, &Value::from("zone-1")));
    assert_eq!(zones[0]["domains"][3]["roomEmpty"], serde_json::json!([4, 4]));
    assert_eq!(tree["warnings"], serde_json::json!([]));
}

#[test]
fn a_gang_that_runs_is_in_the_tree_in_the_text_and_in_the_picture() {
    let Some(world) = World::up(&["--nodes", "32", "--gpus", "4"]) else {
        return;
    };
    world.kubectl(&["apply", "-f", &example("gang-8.yaml")]);
    world.kubectl(&["wait", "--for=condition=Ready", "pods", "--all", "--timeout=60s"]);
    let kubeconfig = world.kubeconfig();
    let tree = json(&["--kubeconfig", &kubeconfig]);
    assert_eq!(tree["shapes"], serde_json::json!(["gpu=1"]));
    assert_eq!((&tree["cluster"]["room"][0], &tree["cluster"]["roomEmpty"][0]), (&120.into(), &128.into()));
    let gang = &tree["groups"][0];
    assert_eq!((gang["name"].as_str(), &gang["seated"]), (Some("default/gang-8"), &8.into()), "{gang}");

    // A node that joins without labels is the one that is warned about.
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}}"#;
    assert!(world.ask(&["create", "-f", "-"], node).status.success());
    let said = run(&["topology", "--kubeconfig", &kubeconfig]);
    for words in ["default/gang-8", "8/8", "zone-1", "rack-7", "1 node has no tutti.dev/rack: late"] {
        assert!(said.stdout.contains(words), "{words:?} is not in {}", said.stdout);
    }
    let folder = Folder::new();
    let file = folder.file("tree.svg");
    let drawn = run(&["topology", "--kubeconfig", &kubeconfig, "--svg", &file]);
    assert!(drawn.status.success() && drawn.stderr.contains("late"), "{}", drawn.stderr);
    let picture = std::fs::read_to_string(&file).unwrap();
    assert!(picture.contains("default/gang-8 8/8") && picture.contains("rack-7"), "{picture}");
}

#[test]
fn levels_can_be_said_and_bad_questions_are_refused() {
    let file = scenario("required-rack");
    let tree = json(&["--file", &file, "--levels", "rack", "--shape", "cpu=1"]);
    assert_eq!(tree["levels"], serde_json::json!(["rack"]));
    assert_eq!(tree["cluster"]["domains"].as_array().unwrap().len(), 3);
    let tree = json(&["--file", &file]);
    assert_eq!(tree["levels"], serde_json::json!(["block", "rack"]));
    for (wrong, why) in [
        (&["--shape", "cpu=much"][..], "\"much\" is not a quantity"),
        (&["--levels", "a,,b"], "--levels"),
        (&["--file", "/nowhere/at.all"], "/nowhere/at.all"),
        (&["--kubeconfig", "/nowhere/config"], "/nowhere/config"),
        (&["--svg", "/nowhere/at.svg", "--file", &file], "/nowhere/at.svg"),
    ] {
        let ended = run(&[&["topology"], wrong].concat());
        assert!(!ended.status.success() && ended.stderr.contains(why), "{wrong:?}: {}", ended.stderr);
    }
    let folder = Folder::new();
    for (name, text, why) in
        [("s.txt", "node n cpu=x", "line 1"), ("d.json", "{}", "it is not a dump"), ("e.txt", "", "")]
    {
        let file = folder.file(name);
        std::fs::write(&file, text).unwrap();
        let ended = run(&["topology", "--file", &file]);
        assert_eq!(ended.status.success(), why.is_empty(), "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{name}: {}", ended.stderr);
    }
}

/// `UPDATE_EXPECT=1` draws them anew.
#[test]
fn the_pictures_of_the_documentation_are_what_the_command_draws() {
    let page = std::fs::read_to_string(docs().join("topology.md")).unwrap();
    let folder = Folder::new();
    for name in PICTURES {
        let (drawn, kept) = (folder.file(name), docs().join("pictures").join(format!("{name}.svg")));
        let ended = run(&["topology", "--file", &scenario(name), "--svg", &drawn]);
        assert!(ended.status.success(), "{}", ended.stderr);
        let drawn = std::fs::read_to_string(drawn).unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&kept, &drawn).unwrap();
        }
        let is_current = std::fs::read_to_string(&kept).is_ok_and(|kept| kept == drawn);
        assert!(is_current, "{} is stale: UPDATE_EXPECT=1 draws it anew", kept.display());
        assert!(page.contains(&format!("(pictures/{name}.svg)")), "docs/topology.md does not show {name}");
    }
}
