//! `tutti up --demo`, to its end.

use crate::process::{Folder, Running, tutti};

#[test]
fn the_demo_tells_its_story_and_ends_well() {
    let folder = Folder::new();
    let file = folder.file("kubeconfig");
    let arguments = ["up", "--demo", "--exit-after-demo", "--port", "0", "--kubeconfig", &file];
    let ended = Running::start(tutti(&arguments)).wait();
    assert!(ended.status.success(), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stderr, "");
    let mut rest = ended.stdout.as_str();
    for part in [
        "6 GPUs",
        "gang-4 arrives",
        "gang-4: 4 of 4 running",
        "gang-4 has done its work",
        "gang-8 arrives",
        "gang-8: 0 of 8 running",
        "the scheduler says: ",
        "node-3 joins",
        "gang-8: 8 of 8 running",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} in its place in\n{}", ended.stdout));
        rest = &rest[at..];
    }
}

#[test]
fn after_the_demo_the_cluster_stays_up() {
    let folder = Folder::new();
    let mut running =
        Running::start(tutti(&["up", "--demo", "--port", "0", "--kubeconfig", &folder.file("kubeconfig")]));
    running.wait_for_line("gang-8: 8 of 8 running");
    running.wait_for_line("export KUBECONFIG=");
    running.wait_for_line("Ctrl-C");
    running.signal("TERM");
    assert!(running.wait().status.success());
}
