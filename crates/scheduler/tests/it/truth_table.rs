//! What becomes of a group, by how many members there are, fit and run already, in every way in which clusters serve
//! groups: every row is one situation, told through the API.

use crate::harness::{World, eventually, metric};
use crate::shape::Shape;
use crate::user::User;
use kube::Client;
use serde_json::json;
use tutti_scheduler::Config;

/// What the pods of a row are to each other.
#[derive(Debug)]
enum Group {
    Gang(u32),
    Basic,
    /// They have no group.
    None,
}
use Group::{Basic, Gang};

/// What happens, and what must then be so.
#[derive(Debug)]
enum Step {
    /// A node with so many processors joins.
    Room(u32),
    /// So many pods come, each of which wants one processor.
    Pods(usize),
    /// A pod is deleted.
    Dies(usize),
    /// The minimum of the gang is changed.
    Minimum(u32),
    /// So many run in the end, and no other is bound.
    Run(usize),
    /// A pod waits, and says this.
    Waits(usize, &'static str),
    /// The group has started.
    Started,
    /// The group has not started, and says why.
    NotStarted(&'static str),
    /// Nobody looked for room yet, or somebody did.
    Untried,
    Tried,
}
use Step::{Dies, Minimum, NotStarted, Pods, Room, Run, Started, Tried, Untried, Waits};

struct Row {
    situation: &'static str,
    group: Group,
    steps: &'static [Step],
}

const TABLE: &[Row] = &[
    Row {
        situation: "fewer members than the minimum: never tried",
        group: Gang(3),
        steps: &[Room(8), Pods(2), NotStarted("2 are ready"), Untried, Run(0), Pods(1), Run(3), Tried],
    },
    Row {
        situation: "the minimum fits: all that fit are bound, and the rest when there is room",
        group: Gang(3),
        steps: &[Pods(5), NotStarted(""), Room(4), Run(4), Started, Waits(4, ""), Room(1), Run(5)],
    },
    Row {
        situation: "less than the minimum fits: nothing is bound",
        group: Gang(3),
        steps: &[Room(2), Pods(3), NotStarted("2 of 3 members fit"), Run(0), Tried, Room(1), Run(3)],
    },
    Row {
        situation: "nothing fits: nothing is bound",
        group: Gang(2),
        steps: &[Pods(2), NotStarted("0 of 2 members fit"), Run(0), Room(2), Run(2)],
    },
    Row {
        situation: "the minimum runs: every new member that fits is bound, and one that does not waits alone",
        group: Gang(2),
        steps: &[Room(3), Pods(2), Run(2), Pods(2), Run(3), Waits(3, ""), Started, Room(1), Run(4)],
    },
    Row {
        situation: "the minimum runs and no new member fits: they wait, and nobody is disturbed",
        group: Gang(2),
        steps: &[
            Room(2),
            Pods(2),
            Run(2),
            Pods(2),
            Waits(2, ""),
            Waits(3, ""),
            Run(2),
            Started,
            Room(2),
            Run(4),
        ],
    },
    Row {
        situation: "members died: new ones must make the minimum whole, or none is bound",
        group: Gang(3),
        steps: &[
            Room(3),
            Pods(3),
            Run(3),
            Dies(0),
            Dies(1),
            Run(1),
            Pods(1),
            Waits(3, ""),
            Started,
            Run(1),
            Pods(1),
            Run(3),
        ],
    },
    Row {
        situation: "the minimum is lowered: who waits is tried again",
        group: Gang(3),
        steps: &[Room(8), Pods(2), NotStarted("2 are ready"), Minimum(2), Run(2), Started],
    },
    Row {
        situation: "the minimum of a gang that waits is raised: room for the old one does not start it",
        group: Gang(3),
        steps: &[
            Room(2),
            Pods(4),
            NotStarted("2 of 3 members fit"),
            Minimum(4),
            NotStarted("2 of 4 members fit"),
            // One more seat that helps nobody is no news by itself; it is said with what is.
            Room(1),
            Pods(1),
            NotStarted("3 of 4 members fit"),
            Run(0),
            Room(1),
            Run(4),
        ],
    },
    Row {
        situation: "the minimum of a gang that runs is raised: who runs goes on, and the next start needs it",
        group: Gang(2),
        steps: &[Room(8), Pods(2), Run(2), Minimum(4), Pods(1), Waits(2, ""), Run(2), Pods(1), Run(4)],
    },
    Row {
        situation: "basic: one member that runs is enough",
        group: Basic,
        steps: &[Room(1), Pods(3), Started, Run(1), Room(1), Run(2)],
    },
    Row {
        situation: "basic: those that run already count, and new ones come one by one",
        group: Basic,
        steps: &[Room(2), Pods(1), Run(1), Started, Pods(2), Run(2), Waits(2, ""), Started, Room(1), Run(3)],
    },
    Row {
        situation: "no group: every pod on its own",
        group: Group::None,
        steps: &[
            Room(1),
            Pods(2),
            Run(1),
            Waits(1, ""),
            Dies(0),
            Run(1),
            Pods(1),
            Waits(2, ""),
            Room(1),
            Run(2),
        ],
    },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_workloads_end_as_the_table_says() {
    tell_all(Shape::Part).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alpha_groups_end_as_the_table_says() {
    tell_all(Shape::Alpha).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beta_groups_end_as_the_table_says() {
    tell_all(Shape::Beta).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_our_own_end_as_the_table_says() {
    tell_all(Shape::Custom).await;
}

/// Tells all rows at once, on one cluster. Each has a namespace, nodes and a name of the scheduler of its own.
async fn tell_all(shape: Shape) {
    let mut world = World::of_shape(shape).await;
    let names: Vec<String> = (0..TABLE.len()).map(|index| format!("row-{index}")).collect();
    let mut config = Config::default();
    config.rename(&names).expect("there is one profile");
    let process = world.start_process(world.client.clone(), config);
    let told = TABLE.iter().zip(&names).map(|(row, name)| tell(&world, &process, row, name));
    futures::future::join_all(told).await;
    world.end().await;
}

async fn tell(world: &World, process: &Client, row: &Row, name: &str) {
    let shape = world.shape;
    let fields = json!({"schedulerName": name, "nodeSelector": {"row": name}});
    let user = world.in_namespace(name, fields).await;
    match row.group {
        Gang(minimum) => user.gang("g", minimum).await,
        Basic => user.basic_group("g").await,
        Group::None => {}
    }
    let (mut nodes, mut pods) = (0, 0);
    for (index, step) in row.steps.iter().enumerate() {
        println!("{shape:?}, {}: {step:?}", row.situation);
        let now = format!("{shape:?}, {}: step {index}: {step:?}", row.situation);
        match step {
            Room(cpus) => {
                let node = format!("{name}-{nodes}");
                world.node_at(&node, &cpus.to_string(), &[("row", name)]).await;
                nodes += 1;
            }
            Pods(count) => {
                let group = (!matches!(row.group, Group::None)).then_some("g");
                for pod in pods..pods + count {
                    user.pod(&format!("g-{pod}"), group, "1").await;
                }
                pods += count;
            }
            Dies(pod) => user.delete_pod(&format!("g-{pod}")).await,
            Minimum(minimum) => {
                if !user.set_minimum("g", *minimum).await {
                    println!("{now}: the cluster lets nobody change a minimum, and the row ends here");
                    return;
                }
            }
            Run(count) => user.wait_running(*count).await,
            Waits(pod, what) => drop(user.wait_waiting(&format!("g-{pod}"), what).await),
            Started => group_says(&user, "True", "Scheduled", "").await,
            NotStarted(what) => group_says(&user, "False", "FailedScheduling", what).await,
            Untried => assert_eq!(attempts(process, name).await, 0.0, "{now}"),
            Tried => eventually(&now, || async { (attempts(process, name).await > 0.0).then_some(()) }).await,
        }
    }
}

/// Waits until the group says in its condition how it is. Where groups have no conditions, an event does.
async fn group_says(user: &User, status: &str, reason: &str, words: &str) {
    if user.shape.condition().is_some() {
        user.wait_condition_saying("g", status, words).await;
    } else {
        user.wait_event_saying("g", reason, words).await;
    }
}

/// How often the scheduler of this name has looked for room for a group.
async fn attempts(process: &Client, name: &str) -> f64 {
    let label = format!("profile=\"{name}\"");
    metric(process, "scheduler_podgroup_schedule_attempts_total", &label).await
}
