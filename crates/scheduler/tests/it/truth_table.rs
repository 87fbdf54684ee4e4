//! What becomes of a group, by how many members there are, fit and run already: every row is one situation, told through
//! the API.

use crate::harness::{World, eventually};

/// What happens, and what must then be so.
#[derive(Debug)]
enum Step {
    /// A node with so many processors joins.
    Room(u32),
    /// So many members come, each of which wants one processor.
    Members(usize),
    /// A member is deleted.
    Dies(usize),
    /// The minimum of the gang is changed.
    Minimum(u32),
    /// So many run in the end, and no other is bound.
    Run(usize),
    /// A member waits, and says this.
    Waits(usize, &'static str),
    /// The group has started, or says why it has not.
    Group(&'static str, &'static str),
}
use Step::{Dies, Group, Members, Minimum, Room, Run, Waits};

struct Row {
    situation: &'static str,
    /// `None` is the basic policy.
    minimum: Option<u32>,
    steps: &'static [Step],
}

const TABLE: &[Row] = &[
    Row {
        situation: "fewer members than the minimum: never tried",
        minimum: Some(3),
        steps: &[Room(8), Members(2), Group("False", "2 are ready"), Run(0), Members(1), Run(3)],
    },
    Row {
        situation: "the minimum fits: all that fit are bound, and the rest when there is room",
        minimum: Some(3),
        steps: &[Members(5), Group("False", ""), Room(4), Run(4), Group("True", ""), Room(1), Run(5)],
    },
    Row {
        situation: "less than the minimum fits: nothing is bound",
        minimum: Some(3),
        steps: &[Room(2), Members(3), Group("False", "2 of 3 members fit"), Run(0), Room(1), Run(3)],
    },
    Row {
        situation: "the minimum runs: every new member that fits is bound, and one that does not waits alone",
        minimum: Some(2),
        steps: &[
            Room(3),
            Members(2),
            Run(2),
            Members(1),
            Run(3),
            Members(1),
            Waits(3, ""),
            Run(3),
            Room(1),
            Run(4),
        ],
    },
    Row {
        situation: "members died: new ones must make the minimum whole, or none is bound",
        minimum: Some(3),
        steps: &[
            Room(3),
            Members(3),
            Run(3),
            Dies(0),
            Dies(1),
            Run(1),
            Members(1),
            Waits(3, ""),
            Group("True", ""),
            Run(1),
            Members(1),
            Run(3),
        ],
    },
    Row {
        situation: "the minimum is lowered: who waits is tried again",
        minimum: Some(3),
        steps: &[Room(8), Members(2), Group("False", "2 are ready"), Minimum(2), Run(2), Group("True", "")],
    },
    Row {
        situation: "the minimum is raised: who runs goes on, and the next start needs it",
        minimum: Some(2),
        steps: &[
            Room(8),
            Members(2),
            Run(2),
            Minimum(4),
            Members(1),
            Waits(2, ""),
            Run(2),
            Members(1),
            Run(4),
        ],
    },
    Row {
        situation: "basic: one member that runs is enough",
        minimum: None,
        steps: &[Room(1), Members(3), Group("True", ""), Run(1), Room(1), Run(2)],
    },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_situation_of_a_group_ends_as_the_table_says() {
    let rows = TABLE.iter().map(|row| tokio::spawn(tell(row)));
    for told in futures::future::join_all(rows).await {
        if let Err(failed) = told {
            std::panic::resume_unwind(failed.into_panic());
        }
    }
}

async fn tell(row: &'static Row) {
    let world = World::start().await;
    match row.minimum {
        Some(minimum) => world.gang("g", minimum).await,
        None => world.basic_group("g").await,
    }
    let (mut nodes, mut members) = (0, 0);
    for step in row.steps {
        println!("{}: {step:?}", row.situation);
        match step {
            Room(cpus) => {
                world.node(&format!("n{nodes}"), &cpus.to_string()).await;
                nodes += 1;
            }
            Members(count) => {
                world.members("g", members..members + count, "1").await;
                members += count;
            }
            Dies(member) => world.delete_pod(&format!("g-{member}")).await,
            Minimum(minimum) => world.set_minimum("g", *minimum).await,
            Run(count) => world.wait_running(*count).await,
            Waits(member, what) => {
                let member = format!("g-{member}");
                eventually(&format!("{}: {member} waits: {what}", row.situation), || async {
                    let (status, message) = world.pod_condition(&member).await?;
                    (status == "False" && message.contains(what)).then_some(())
                })
                .await;
            }
            Group(status, what) => {
                eventually(&format!("{}: {status} {what}", row.situation), || async {
                    let condition = world.wait_condition("g", status).await;
                    condition["message"].as_str().unwrap_or_default().contains(what).then_some(())
                })
                .await;
            }
        }
    }
    world.end().await;
}
