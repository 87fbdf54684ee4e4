//! A component as a process that can be killed, started again and asked what went wrong.

use anyhow::{Context as _, bail};
use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Lines of a log that are shown when its component has failed.
const TAIL_LINES: usize = 25;

/// A component: how to start it, and the process while it runs.
#[derive(Debug)]
pub(crate) struct Component {
    name: &'static str,
    binary: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// The component ends when this is closed, so that none outlives the tests, however they end.
    _life: ChildStdin,
}

impl Component {
    pub(crate) fn new(name: &'static str, binary: PathBuf, arguments: Vec<String>, log: PathBuf) -> Self {
        Self { name, binary, arguments, log, running: None }
    }

    /// Starts it; its log goes on where it ended.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        if self.running.is_some() {
            bail!("{} runs already", self.name);
        }
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("cannot write {}", self.log.display()))?;
        let mut child = Command::new(&self.binary)
            .args(&self.arguments)
            .env("CONTROLPLANE_ENDS_WITH_STDIN", "1")
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        let life = child.stdin.take().context("a child has an input")?;
        self.running = Some(Running { child, _life: life });
        Ok(())
    }

    /// Ends it as a crash would: at once, with no chance to clean up.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else {
            bail!("{} does not run", self.name);
        };
        running.child.kill().with_context(|| format!("cannot kill {}", self.name))?;
        running.child.wait()?;
        Ok(())
    }

    /// An error if it has ended by itself, with what it said last.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let Some(status) = running.child.try_wait()? else {
            return Ok(());
        };
        bail!("{} ended with {status}; its log ends with\n{}", self.name, self.tail());
    }

    /// The end of its log.
    pub(crate) fn tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(TAIL_LINES);
        lines[first..].join("\n")
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            // It may have ended by itself, and then there is nothing to kill.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}
