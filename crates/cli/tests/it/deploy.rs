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

#[test]
fn the_configuration_of_the_base_is_good() {
    let folder = Folder::new();
    let file = folder.file("scheduler.yaml");
    std::fs::write(&file, deploy("base/scheduler.yaml")).unwrap();
    let ended = run(&["scheduler", "--config", &file, "--print-config"]);
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(ended.stdout.contains("0.0.0.0:10270"), "{}", ended.stdout);
}

#[test]
fn images_are_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    for file in ["deployment.yaml", "controller.yaml"] {
        assert!(deploy(&format!("base/{file}")).contains(&format!("image: tutti:{version}\n")), "{file}");
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
