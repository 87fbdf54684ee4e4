//! The `tutti` command as a process that can be killed and asked what it said.

use crate::world::World;
use anyhow::{Context as _, bail};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The last line of what `tutti` says of itself when it listens for the end.
const RUNS: &str = "Ctrl-C ends it.";

/// A command that runs. It is killed when the story ends.
#[derive(Debug)]
pub(crate) struct Tutti {
    child: Child,
    log: PathBuf,
}

impl Tutti {
    /// Starts `tutti` with these arguments; a kubeconfig is not added.
    pub(crate) fn start(world: &World<'_>, arguments: &[&str]) -> anyhow::Result<Self> {
        let log = world.folder.join(format!("tutti-{}.log", uuid::Uuid::new_v4().simple()));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(&world.tutti)
            .args(arguments)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", world.tutti.display()))?;
        Ok(Self { child, log })
    }

    /// An error if it has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("tutti ended with {status}; it said\n{}", self.said());
        }
        Ok(())
    }

    /// Everything that it has said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end, and waits until it has, which must be well. Before it has said that it runs, a signal would just kill it.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        crate::wait::eventually("tutti says that it runs", || {
            let said = self.check().map(|()| self.said());
            async move { said.map(|said| if said.contains(RUNS) { Ok(()) } else { Err(said) }) }
        })
        .await?;
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().context("cannot send a signal")?;
        crate::wait::eventually("tutti ends", || {
            let ended = self.child.try_wait();
            async move { Ok(ended?.ok_or_else(|| "it runs".to_owned())) }
        })
        .await
        .and_then(|status| {
            if status.success() {
                return Ok(());
            }
            bail!("tutti ended with {status}; it said\n{}", self.said())
        })
    }
}

impl Drop for Tutti {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
