//! The real kubectl.

use anyhow::bail;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// kubectl with a kubeconfig.
#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    /// The binary whose first argument `kubectl` makes it that.
    binary: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(binary: &Path, kubeconfig: &Path) -> Self {
        Self { binary: binary.to_owned(), kubeconfig: kubeconfig.to_owned() }
    }

    /// What it prints, run in a namespace. `input` is what it reads as `-f -`.
    pub(crate) async fn run(
        &self,
        namespace: &str,
        arguments: &[&str],
        input: &str,
    ) -> anyhow::Result<String> {
        let mut command = Command::new(&self.binary);
        command
            .arg("kubectl")
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--namespace={namespace}"))
            .arg("--request-timeout=60s")
            .args(arguments);
        let shown = format!("kubectl {}", arguments.join(" "));
        let input = input.to_owned();
        let output = tokio::task::spawn_blocking(move || run_with_input(command, &input)).await??;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("{shown} failed: {}", error.trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The input is small enough for the pipe to take it whole, so writing before reading cannot block.
fn run_with_input(mut command: Command, input: &str) -> anyhow::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    Ok(child.wait_with_output()?)
}
