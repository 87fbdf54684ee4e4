//! Two schedulers, of which one leads and hands over.

use crate::health::{free_address, wait_ready};
use crate::process::Running;
use crate::world::{World, eventually};
use serde_json::{Value, json};

/// Leaders that are missed soon, and that bind slowly enough to be caught at it.
fn settings() -> Value {
    json!({
        "leaderElection": {"leaseDuration": "2s", "renewDeadline": "1s300ms", "retryPeriod": "300ms"},
        "limits": {"bindConcurrency": 2},
    })
}

pub(crate) struct Replica {
    running: Running,
    address: String,
}

impl Replica {
    pub(crate) fn start(world: &World) -> Self {
        let (config, address) = (world.config(&settings()), free_address());
        let running = world.scheduler(&["--config", &config, "--http-address", &address]);
        Self { running, address }
    }

    async fn wait_ready(&self, how: &str) {
        eventually(&format!("a replica is {how}"), || async {
            wait_ready(&self.address).await.starts_with(how).then_some(())
        })
        .await;
    }

    /// Asks it to end, which must go well. Gives its log.
    pub(crate) fn end(self) -> String {
        self.running.signal("TERM");
        let ended = self.running.wait();
        assert!(ended.status.success(), "{}", ended.stderr);
        ended.stderr
    }
}

#[tokio::test]
async fn of_two_replicas_one_schedules_and_hands_over() {
    let world = World::up(&["--nodes", "1"]).await;
    let first = Replica::start(&world);
    first.wait_ready("scheduling").await;
    let second = Replica::start(&world);
    second.wait_ready("standing by").await;
    world.whole_gang("before", 2).await;
    world.wait_running(2).await;
    let log = first.end();
    assert!(log.contains("Stop"), "{log}");
    world.whole_gang("after", 2).await;
    world.wait_running(4).await;
    second.wait_ready("scheduling").await;
    let log = second.end();
    assert!(log.contains("takeover=false"), "nobody waits for a lease that was given back: {log}");
}
