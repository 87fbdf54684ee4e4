//! How a scheduler ends that leads: in good order it gives its lease back at once. If something of it may still be under
//! way, the lease has to run out, so that the next leader waits for it.

use crate::harness::{World, eventually};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::client::Body;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tutti_lease::Place;
use tutti_scheduler::config::HttpSettings;
use tutti_scheduler::{Config, Settings};

/// A way to the cluster on which bindings get lost forever. The flag says that one was.
fn without_bindings(client: Client) -> (Client, Arc<AtomicBool>) {
    let lost = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&lost);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, flag) = (client.clone(), Arc::clone(&flag));
        async move {
            if request.uri().path().ends_with("/binding") {
                flag.store(true, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }
            client.send(request).await
        }
    });
    (Client::new(service, "default"), lost)
}

/// Runs a scheduler with a lease until something is true of the cluster, and ends it. Gives who holds the lease then.
async fn holder_after(world: &World, client: Client, is_enough: impl AsyncFn() -> bool) -> Option<String> {
    let settings = Settings {
        config: Config { shutdown_grace: Duration::from_millis(500), ..Config::default() },
        http: HttpSettings { address: None, ..HttpSettings::default() },
        ..Settings::of_a_cluster()
    };
    let place = Place { namespace: "default".to_owned(), name: "who".to_owned(), identity: "one".to_owned() };
    let (stop, stopped) = oneshot::channel::<()>();
    let (_settings, settings) = watch::channel(settings);
    let task = tokio::spawn(tutti_scheduler::serve(client, settings, Some(place), async {
        let _ = stopped.await;
    }));
    eventually("it has come so far", async || is_enough().await.then_some(())).await;
    drop(stop);
    task.await.expect("it does not panic").expect("it ends well");
    let leases = Api::<Lease>::default_namespaced(world.client.clone());
    let lease = leases.get("who").await.expect("there is a lease");
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

#[tokio::test]
async fn who_has_finished_gives_the_lease_back() {
    let world = World::empty().await;
    world.node("a", "4").await;
    world.pod("p", None, "1").await;
    let holder = holder_after(&world, world.client.clone(), async || world.counts().await.0 == 1).await;
    assert_eq!(holder, None);
    world.cluster.shutdown().await;
}

#[tokio::test]
async fn who_leaves_a_binding_behind_lets_the_lease_run_out() {
    let world = World::empty().await;
    world.node("a", "4").await;
    world.pod("p", None, "1").await;
    let (client, lost) = without_bindings(world.client.clone());
    let holder = holder_after(&world, client, async || lost.load(Ordering::Relaxed)).await;
    assert_eq!(holder.as_deref(), Some("one"));
    world.cluster.shutdown().await;
}

#[tokio::test]
async fn events_say_which_replica_wrote_them() {
    let world = World::empty().await;
    world.node("a", "4").await;
    world.pod("p", None, "1").await;
    let events = Api::<Event>::default_namespaced(world.client.clone());
    let is_named = async || {
        let events = events.list(&ListParams::default()).await.expect("events are listed");
        let of_scheduler = |event: &&Event| event.reporting_component.as_deref() == Some("tutti");
        events
            .iter()
            .find(of_scheduler)
            .is_some_and(|event| event.reporting_instance.as_deref() == Some("one"))
    };
    holder_after(&world, world.client.clone(), is_named).await;
    world.cluster.shutdown().await;
}
