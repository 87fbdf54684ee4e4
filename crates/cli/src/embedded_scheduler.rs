//! The scheduler beside an embedded cluster. It is the same as for a real one, and talks to the API server over
//! the network like there.

use anyhow::{Context as _, anyhow};
use kube::Client;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tutti_engine::{NamedProfile, Profile};
use tutti_k8s::gangs::Integration;
use tutti_scheduler::{Config, Error};

/// The scheduler names that pods can ask for: its own, and the one that pods have by default.
pub(crate) const NAMES: [&str; 2] = ["tutti", "default-scheduler"];

/// How long bindings under way may take to finish when the cluster is about to vanish anyway.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// A scheduler that does not end by then is left behind.
const SHUTDOWN_MAX: Duration = Duration::from_secs(4);

/// A scheduler that runs.
pub(crate) struct Scheduler {
    task: JoinHandle<Result<(), Error>>,
    stop: oneshot::Sender<()>,
}

impl Scheduler {
    /// Starts it. Pods of Jobs that are to have a group wait for it if somebody makes groups.
    pub(crate) fn start(client: Client, job_integration: Integration) -> Self {
        let config = Config {
            profiles: vec![NamedProfile::new(&NAMES, Profile::default())],
            shutdown_grace: SHUTDOWN_GRACE,
            job_integration,
            ..Config::default()
        };
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move {
            // An error means that whoever could ask for the end is gone, which is the end too.
            let _ = stopped.await;
        };
        Self { task: tokio::spawn(tutti_scheduler::run(client, config, shutdown)), stop }
    }

    /// Completes only if it ends although nobody asked it to, and says why.
    pub(crate) async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(Ok(())) => anyhow!("the scheduler ended unasked"),
            Ok(Err(error)) => anyhow::Error::new(error).context("the scheduler failed"),
            Err(error) => anyhow::Error::new(error).context("the scheduler crashed"),
        }
    }

    /// Ends it.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        // It may have ended by itself, and then there is nobody to tell.
        let _ = self.stop.send(());
        if self.task.is_finished() {
            return Ok(());
        }
        tokio::time::timeout(SHUTDOWN_MAX, self.task)
            .await
            .context("the scheduler did not end in time")?
            .context("the scheduler crashed")?
            .context("the scheduler failed at its end")
    }
}
