//! The real kubectl against `tutti up`. `./test` sees to it that there is one; where there is none, nothing is tested,
//! and it says so.

use crate::process::{Folder, Running, tutti};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// The oldest kubectl that knows all that is asked of it here: 1.32.
const KUBECTL_MINOR_MIN: u32 = 32;

/// The kubectl that was chosen, which must do, or else one on the PATH, which may be missing or too old.
fn kubectl() -> Option<String> {
    if let Ok(chosen) = std::env::var("TUTTI_KUBECTL") {
        let minor = kubectl_minor(&chosen);
        assert!(minor >= Some(KUBECTL_MINOR_MIN), "TUTTI_KUBECTL={chosen} is of version 1.{minor:?}");
        return Some(chosen);
    }
    let found = "kubectl".to_owned();
    if kubectl_minor(&found) >= Some(KUBECTL_MINOR_MIN) {
        return Some(found);
    }
    eprintln!("not tested: there is no kubectl of version 1.{KUBECTL_MINOR_MIN} or newer; ./test brings one");
    None
}

/// 37 if it is of version 1.37; nothing if it cannot be run.
fn kubectl_minor(program: &str) -> Option<u32> {
    let output = Command::new(program).args(["version", "--client"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.lines().find_map(|line| line.strip_prefix("Client Version: v1."))?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

pub(crate) struct World {
    kubectl: String,
    folder: Folder,
    _process: Running,
}

impl World {
    /// Nothing if there is no kubectl.
    pub(crate) fn up(arguments: &[&str]) -> Option<Self> {
        let kubectl = kubectl()?;
        let folder = Folder::new();
        let file = folder.file("kubeconfig");
        let arguments = [&["up", "--port", "0", "--kubeconfig", &file], arguments].concat();
        let mut process = Running::start(tutti(&arguments));
        process.wait_for_line("Ctrl-C");
        Some(Self { kubectl, folder, _process: process })
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(["--kubeconfig", &self.kubeconfig(), "--cache-dir", &self.folder.file("cache")])
            .args(arguments)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn ask(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The file by which the cluster is found.
    pub(crate) fn kubeconfig(&self) -> String {
        self.folder.file("kubeconfig")
    }

    /// What kubectl prints; it must succeed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments, "");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {}: {errors}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Asks until the answer has these words in it.
    fn wait_for(&self, arguments: &[&str], words: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self.kubectl(arguments);
            if said.contains(words) {
                return said;
            }
            assert!(
                Instant::now() < deadline,
                "kubectl {} never says {words:?}: {said}",
                arguments.join(" ")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.display().to_string()
}

#[test]
fn kubectl_sees_none_of_a_gang_and_then_all_of_it() {
    let Some(world) = World::up(&["--nodes", "3", "--gpus", "2"]) else {
        return;
    };
    let nodes = world.kubectl(&["get", "nodes"]);
    assert_eq!(nodes.matches(" Ready ").count(), 3, "{nodes}");

    let gang = example("gang-8.yaml");
    let created = world.kubectl(&["apply", "-f", &gang]);
    assert_eq!(created.matches("created").count(), 9, "{created}");
    world.wait_for(&["describe", "podgroup", "gang-8"], "6 of 8 members fit");
    let listed = world.kubectl(&["get", "podgroups,pods"]);
    assert_eq!(listed.matches("Pending").count(), 8, "{listed}");
    assert!(listed.contains("Unschedulable"), "{listed}");

    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"},
        "status": {"capacity": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}}}"#;
    assert!(world.ask(&["create", "-f", "-"], node).status.success());
    world.kubectl(&["wait", "--for=condition=Ready", "pods", "--all", "--timeout=30s"]);
    let listed = world.kubectl(&["get", "podgroups,pods", "-o", "wide"]);
    assert_eq!(listed.matches("Running").count(), 8, "{listed}");
    let described = world.kubectl(&["describe", "pod", "gang-8-0"]);
    assert!(described.contains("Scheduled"), "{described}");

    let deleted = world.kubectl(&["delete", "-f", &gang]);
    assert_eq!(deleted.matches("deleted").count(), 9, "{deleted}");
    assert_eq!(world.kubectl(&["get", "podgroups,pods", "-o", "name"]), "");
}

/// The manifests that users are told to apply.
fn manifests() -> Vec<String> {
    let folder = std::fs::read_dir(example("")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".yaml")).collect();
    names.sort();
    names
}

#[test]
fn every_example_can_be_applied_and_runs() {
    let names = manifests();
    assert!(names.len() >= 8, "{names:?}");
    let Some(world) = World::up(&["--nodes", "3", "--gpus", "16"]) else {
        return;
    };
    // examples/topology.yaml asks for these.
    world.kubectl(&["label", "nodes", "--all", "block=b1", "rack=r1"]);
    for name in &names {
        world.kubectl(&["apply", "-f", &example(name)]);
    }
    world.kubectl(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s"]);
    world.kubectl(&["wait", "--for=condition=Ready", "pods", "-l", "!job-name", "--timeout=60s"]);
    let gangs = "job-name in (job-gang, job-indexed, job-scheduling)";
    world.kubectl(&["wait", "--for=condition=Ready", "pods", "-l", gangs, "--timeout=60s"]);
    let groups = world.kubectl(&["get", "podgroups"]);
    assert_eq!(groups.matches("Scheduled").count(), 9, "{groups}");
    world.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    world.kubectl(&["wait", "--for=condition=Complete", "job/count", "--timeout=60s"]);
}
