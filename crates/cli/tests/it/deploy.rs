//! What is under `deploy/` says the same everywhere. (That a real API server takes it, `e2e/` tests.)

use crate::process::{Folder, run};
use std::path::{Path, PathBuf};

fn deploy(file: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A template of the chart as a release called `tutti` has it, without its conditions and variables.
fn rendered(template: &str) -> String {
    let text = deploy(&format!("helm/tutti/templates/{template}"))
        .replace("{{ .Release.Name }}", "tutti")
        .replace("{{ .Release.Namespace }}", "tutti-system")
        .replace("{{ $names }}", "['tutti']");
    text.lines().filter(|line| !line.starts_with("{{-")).fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn the_chart_gives_the_same_rights_as_the_kustomize_base_and_calls_the_same_webhooks() {
    for file in ["rbac.yaml", "controller-rbac.yaml", "webhooks.yaml"] {
        assert_eq!(rendered(file), deploy(&format!("base/{file}")));
    }
}

/// What a configuration says, with everything that it leaves out.
fn configuration(file: &str) -> String {
    let folder = Folder::new();
    let copy = folder.file("scheduler.yaml");
    std::fs::write(&copy, deploy(file)).unwrap();
    let ended = run(&["scheduler", "--config", &copy, "--print-config"]);
    assert!(ended.status.success(), "{file}: {}", ended.stderr);
    ended.stdout
}

#[test]
fn the_configuration_of_the_base_is_good() {
    let said = configuration("base/scheduler.yaml");
    assert!(said.contains("0.0.0.0:10270") && said.contains("jobIntegration: Auto"), "{said}");
}

/// Whoever waits for groups of Jobs must know whether somebody makes them. (What Helm writes into the file, `e2e/` tests.)
#[test]
fn one_file_tells_schedulers_and_controllers_whether_jobs_get_groups() {
    for (folder, release) in [("base", "tutti"), ("helm/tutti/templates", "{{ .Release.Name }}")] {
        for file in ["deployment.yaml", "controller.yaml"] {
            let text = deploy(&format!("{folder}/{file}"));
            for needed in [
                "--config=/etc/tutti/scheduler.yaml",
                "mountPath: /etc/tutti\n",
                &format!("configMap:\n          name: {release}-scheduler\n"),
            ] {
                assert!(text.contains(needed), "{folder}/{file} has no {needed}");
            }
            assert!(!text.contains("--job-integration"), "{folder}/{file} says something of its own");
        }
    }
    let template = deploy("helm/tutti/templates/config.yaml");
    assert!(template.contains("name: {{ .Release.Name }}-scheduler\n"), "{template}");
    assert!(template.contains("set $config \"jobIntegration\""), "{template}");
}

/// They stand in for the replicas of the base, so they must agree with them on who leads, and be found by their probes.
#[test]
fn static_pods_elect_a_leader_together_with_the_replicas_of_the_base() {
    let said = configuration("static/scheduler.yaml");
    for line in ["leaseName: tutti-scheduler", "leaseNamespace: tutti-system", "address: 127.0.0.1:10270"] {
        assert!(said.contains(line), "{said}");
    }
    let of_base = configuration("base/scheduler.yaml");
    assert!(of_base.contains("leaseName: tutti-scheduler"), "{of_base}");
    assert!(deploy("base/kustomization.yaml").contains("namespace: tutti-system\n"));
    let pod = deploy("static/tutti-scheduler.yaml");
    assert_eq!(pod.matches("host: 127.0.0.1\n").count(), 2, "{pod}");
    assert_eq!(pod.matches("port: 10270\n").count(), 2, "{pod}");
    let rights = deploy("base/rbac.yaml");
    for role in ["kind: ClusterRole\n  name: tutti-scheduler\n", "kind: Role\n  name: tutti-scheduler\n"] {
        assert!(rights.contains(role) && deploy("static/rbac.yaml").contains(role), "{role}");
    }
}

#[test]
fn images_are_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    for file in ["base/deployment.yaml", "base/controller.yaml", "static/tutti-scheduler.yaml"] {
        assert!(deploy(file).contains(&format!("image: tutti:{version}\n")), "{file}");
    }
    let chart = deploy("helm/tutti/Chart.yaml");
    assert!(chart.contains(&format!("\nversion: {version}\n")), "{chart}");
    assert!(chart.contains(&format!("\nappVersion: {version}\n")), "{chart}");
}

/// The image itself is built by nobody here; what can be held against the tree is.
#[test]
fn the_image_is_built_with_what_this_repository_has() {
    let dockerfile = deploy("Dockerfile");
    let toolchain = deploy("../rust-toolchain.toml");
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).expect("a channel");
    let channel = channel.trim_matches('"');
    let image = dockerfile.lines().find_map(|line| line.strip_prefix("FROM rust:")).expect("a Rust image");
    let release = image.split('-').next().expect("a release");
    assert!(channel.starts_with(release), "{image} is not of {channel}");
    let manifest = deploy("../crates/cli/Cargo.toml");
    assert!(manifest.contains("name = \"tutti-cli\"") && dockerfile.contains("--package tutti-cli"));
    assert!(manifest.contains("name = \"tutti\"") && dockerfile.contains("/src/target/release/tutti /tutti"));
    for ignored in ["target", ".git"] {
        assert!(deploy("../.dockerignore").lines().any(|line| line == ignored), "{ignored} would be sent");
    }
    // The deployments name the same user, and start the binary that is in the image.
    for user in ["runAsUser: 65532", "runAsGroup: 65532"] {
        assert!(
            deploy("base/deployment.yaml").contains(user)
                && deploy("helm/tutti/templates/deployment.yaml").contains(user)
        );
    }
    assert!(dockerfile.contains("USER 65532:65532") && dockerfile.contains("ENTRYPOINT [\"/tutti\"]"));
}
