//! The controllers of Tutti beside an embedded cluster: the same as for a real one, over the network like there.

use crate::embedded_scheduler::NAMES;
use anyhow::anyhow;
use kube::Client;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tutti_controllers::Meters;
use tutti_controllers::gangs::Integration;
use tutti_controllers::process::{self, Settings};
use tutti_k8s::Capabilities;

/// Controllers that run.
pub(crate) struct Controller {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Controller {
    /// Starts them. The embedded cluster has no controller of its own that would make groups for Jobs, so none is waited
    /// for.
    pub(crate) async fn start(client: Client) -> Result<Self, kube::Error> {
        let capabilities = Capabilities::discover(&client).await?;
        let settings =
            Settings { scheduler_names: NAMES.map(str::to_owned).to_vec(), integration: Integration::On };
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let shutdown = async {
                // An error means that whoever could ask for the end is gone, which is the end too.
                let _ = stopped.await;
            };
            process::run(client, &capabilities, settings, &Meters::default(), shutdown).await;
        });
        Ok(Self { task, stop })
    }

    /// Completes only if they end although nobody asked them to, and says why.
    pub(crate) async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(()) => anyhow!("the controllers ended unasked"),
            Err(error) => anyhow::Error::new(error).context("the controllers crashed"),
        }
    }

    /// Ends them; what is under way has a moment.
    pub(crate) async fn stop(self) {
        // They may have ended by themselves, and then there is nobody to tell.
        let _ = self.stop.send(());
        if !self.task.is_finished()
            && let Err(error) = self.task.await
        {
            tracing::warn!(%error, "the controllers crashed at their end");
        }
    }
}
