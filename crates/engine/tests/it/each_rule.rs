//! For every placement rule a scenario in which that rule alone refuses: the engine gives the rule's reason, the validator
//! finds the seat wrong when it is taken all the same, and each change that the rule names wakes the unit, which is then
//! placed.

use crate::driver::{World, show};
use std::collections::BTreeSet;
use tutti_engine::Change::{Attachments, Domains, Group, Offer, Pods, Ports, Storage};
use tutti_engine::check::validator::group_rules::{Cluster, Judge};
use tutti_engine::check::validator::{violations, volume_violations};
use tutti_engine::refusal::NodeReason;
use tutti_engine::{Change, Decision, RULES, Refusal, Rule};
use tutti_model::{Node, Pod, Resource};

struct Case {
    rule: &'static str,
    /// Pods that wait are called `p`, with a number if there are several. Where a pod that goes unblocks them, room for
    /// copies does not grow with it: the rule alone must wake them.
    scenario: &'static str,
    /// Seats that the rule forbids: a node for each pod that waits.
    seats: &'static [&'static str],
    /// What the validator says of them.
    wrong: &'static str,
    /// Changes of each kind that unblock the unit.
    cures: &'static [(Change, &'static str)],
}

const CASES: &[Case] = &[
    Case {
        rule: "cordon",
        scenario: "node n cordoned
                   pod p",
        seats: &["n"],
        wrong: "it is cordoned",
        cures: &[(Offer, "node n")],
    },
    Case {
        rule: "taints",
        scenario: "node n taint:gpu:NoSchedule
                   pod p",
        seats: &["n"],
        wrong: "taint gpu is not tolerated",
        cures: &[(Offer, "node n taint:gpu:PreferNoSchedule")],
    },
    Case {
        rule: "node_affinity",
        scenario: "node n label:zone=a
                   pod p select:zone=b",
        seats: &["n"],
        wrong: "its labels do not match",
        cures: &[(Offer, "node n label:zone=b")],
    },
    Case {
        rule: "declared_features",
        scenario: "node n feature:Other
                   pod p feature:RestartAllContainersOnContainerExits",
        seats: &["n"],
        wrong: "it lacks the feature RestartAllContainersOnContainerExits",
        cures: &[(Offer, "node n feature:Other feature:RestartAllContainersOnContainerExits")],
    },
    Case {
        rule: "resources",
        scenario: "node n cpu=1
                   pod p cpu=2",
        seats: &["n"],
        wrong: "cpu and 2000 are asked",
        cures: &[(Offer, "node n cpu=2")],
    },
    Case {
        rule: "volume_reach",
        scenario: "node n label:host=n
                   volume v reach:host=m
                   claim c bound=v
                   pod p claim:c",
        seats: &["n"],
        wrong: "is out of reach",
        cures: &[(Offer, "node n label:host=m"), (Storage, "volume v reach:host=n")],
    },
    Case {
        rule: "volume_matching",
        scenario: "node n label:host=n
                   class local wait
                   volume v class=local size=1Gi reach:host=m
                   claim c class=local size=1Gi
                   pod p claim:c",
        seats: &["n"],
        wrong: "too few volumes",
        cures: &[(Domains, "node n label:host=m"), (Storage, "volume w class=local size=1Gi")],
    },
    Case {
        rule: "attach_limit",
        scenario: "node n attach:ebs=1
                   volume a disk:ebs
                   volume b disk:ebs
                   claim mine bound=a
                   claim ours bound=b
                   pod old on=n claim:mine
                   pod p claim:ours
                   pod other claim:ours gated",
        seats: &["n"],
        wrong: "cannot attach b",
        cures: &[
            (Offer, "node n attach:ebs=2"),
            (Attachments, "pod other claim:ours on=n"),
            (Storage, "claim ours bound=a"),
        ],
    },
    Case {
        rule: "exclusive_claim",
        scenario: "node n
                   volume v
                   claim c bound=v mode=RWOP
                   group g gang=2
                   pod p x2 group=g claim:c",
        seats: &["n", "n"],
        wrong: "is for one pod and used by two",
        cures: &[(Storage, "claim c bound=v mode=RWX")],
    },
    Case {
        rule: "ports",
        scenario: "node n cpu=1
                   pod old on=n port:80
                   pod p cpu=1 port:80",
        seats: &["n"],
        wrong: "a port of default/p is taken",
        cures: &[(Ports, "pod old on=n port:80 phase=Succeeded")],
    },
    Case {
        rule: "affinity",
        scenario: "node n label:zone=a
                   node m
                   pod db on=m label:app=db
                   pod p affinity:zone:app=db",
        seats: &["n"],
        wrong: "has not near what it wants",
        cures: &[(Pods, "pod more on=n label:app=db"), (Domains, "node m label:zone=a")],
    },
    Case {
        rule: "anti_affinity",
        scenario: "node n cpu=1 label:host=n
                   pod old on=n label:app=x
                   pod p cpu=1 anti-affinity:host:app=x",
        seats: &["n"],
        wrong: "does not want default/old near",
        cures: &[(Pods, "pod old on=n label:app=x phase=Succeeded"), (Domains, "node n cpu=1")],
    },
    Case {
        rule: "spread",
        scenario: "node n cpu=1 label:zone=a
                   node m cpu=1
                   pod old x2 on=n label:app=x
                   pod p cpu=1 spread:zone:1:app=x:min=2",
        seats: &["n"],
        wrong: "is where 2 more are than elsewhere",
        cures: &[
            (Pods, "pod old-0 on=n label:app=x phase=Succeeded"),
            (Domains, "node m cpu=1 label:zone=b"),
        ],
    },
    Case {
        rule: "quota",
        scenario: "node n cpu=3 label:host=n
                   node m cpu=1 label:host=m
                   group g gang=4 slices:host:2
                   pod p x4 group=g cpu=1",
        seats: &["n", "n", "n", "m"],
        wrong: "slice",
        cures: &[
            (Offer, "node m cpu=2 label:host=m"),
            (Domains, "node m cpu=1 label:host=n"),
            (Group, "group g gang=4"),
        ],
    },
];

fn rule(case: &Case) -> &'static Rule {
    let rule = RULES.iter().find(|rule| rule.name == case.rule);
    rule.unwrap_or_else(|| panic!("there is no rule {}", case.rule))
}

/// Pods that wait, each on the node of the same position.
fn seated(world: &World, seats: &[&str]) -> Vec<Pod> {
    let waiting = world.pods.iter().filter(|pod| pod.node.is_none() && pod.gates.is_empty());
    let placed: Vec<Pod> =
        waiting.zip(seats).map(|(pod, &node)| Pod { node: Some(node.into()), ..pod.clone() }).collect();
    assert_eq!(placed.len(), seats.len());
    placed
}

/// What the validator finds wrong with these seats.
fn wrong_with(world: &World, placed: &[Pod]) -> Vec<String> {
    let running = world.seated();
    let mut wrong = violations(&world.nodes, &running, placed);
    wrong.extend(volume_violations(&world.nodes, &world.storage, &running, placed));
    let cluster = Cluster {
        nodes: &world.nodes,
        groups: &world.groups,
        composites: &world.composites,
        pods: &world.pods,
    };
    let node = |pod: &Pod| world.nodes.iter().find(|node| Some(&node.name) == pod.node.as_ref());
    let seats: Vec<(&Pod, &Node)> = placed.iter().filter_map(|pod| Some((pod, node(pod)?))).collect();
    wrong.extend(Judge::new(cluster, &seats).violations());
    wrong
}

#[test]
fn every_rule_has_a_case_and_every_case_a_rule() {
    let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    let cases: Vec<&str> = CASES.iter().map(|case| case.rule).collect();
    assert_eq!(rules, cases, "in the same order");
}

#[test]
fn where_a_rule_refuses_its_reason_is_given() {
    for case in CASES {
        let mut world = World::parse(case.scenario);
        let decisions = world.settle();
        let [Decision::Wait(waiting)] = &decisions[..] else { panic!("{}: {}", case.rule, show(&decisions)) };
        let Refusal::NoRoom(room) = &waiting.refusal else { panic!("{}: {}", case.rule, show(&decisions)) };
        let rule = rule(case);
        if case.rule == "quota" {
            // Levels and slices speak for it.
            continue;
        }
        let [(reason, _)] = &room.ruled_out[..] else { panic!("{}: {}", case.rule, show(&decisions)) };
        assert!((rule.speaks)(reason), "{}: {reason}", case.rule);
    }
}

#[test]
fn the_validator_knows_every_rule() {
    for case in CASES {
        let world = World::parse(case.scenario);
        let wrong = wrong_with(&world, &seated(&world, case.seats));
        assert!(!wrong.is_empty(), "{}: the validator finds nothing wrong", case.rule);
        let by_this_rule = wrong.iter().all(|wrong| wrong.contains(case.wrong));
        assert!(by_this_rule, "{}: {wrong:?}", case.rule);
    }
}

#[test]
fn every_change_that_a_rule_names_wakes_and_unblocks() {
    for case in CASES {
        let named: BTreeSet<String> =
            rule(case).unblocked_by.iter().map(|change| format!("{change:?}")).collect();
        let shown: BTreeSet<String> = case.cures.iter().map(|(change, _)| format!("{change:?}")).collect();
        assert_eq!(named, shown, "{}", case.rule);
        for (change, cure) in case.cures {
            let mut world = World::parse(case.scenario);
            assert_eq!(world.settle().len(), 1, "{}", case.rule);
            world.add(cure);
            // Every placement is validated on the way.
            let decisions = world.settle();
            let placed = decisions.iter().map(|decision| match decision {
                Decision::Place(placement) => placement.seats.len(),
                _ => 0,
            });
            let count = placed.sum::<usize>();
            assert_eq!(count, case.seats.len(), "{} {change:?}: {}", case.rule, show(&decisions));
        }
    }
}

/// One of each; a new reason does not compile until it is named here.
fn reasons() -> Vec<NodeReason> {
    let next = |reason: &NodeReason| match reason {
        NodeReason::Unschedulable => Some(NodeReason::Taint { key: "k".into() }),
        NodeReason::Taint { .. } => Some(NodeReason::Affinity),
        NodeReason::Affinity => Some(NodeReason::Feature { name: "f".into() }),
        NodeReason::Feature { .. } => Some(NodeReason::Insufficient(Resource::new("cpu"))),
        NodeReason::Insufficient(_) => Some(NodeReason::VolumeOutOfReach),
        NodeReason::VolumeOutOfReach => Some(NodeReason::NoVolume),
        NodeReason::NoVolume => Some(NodeReason::AttachLimit),
        NodeReason::AttachLimit => Some(NodeReason::ExclusiveClaim),
        NodeReason::ExclusiveClaim => Some(NodeReason::Ports),
        NodeReason::Ports => Some(NodeReason::PodAffinity),
        NodeReason::PodAffinity => Some(NodeReason::PodAntiAffinity),
        NodeReason::PodAntiAffinity => Some(NodeReason::Spread),
        NodeReason::Spread => None,
    };
    std::iter::successors(Some(NodeReason::Unschedulable), next).collect()
}

#[test]
fn every_reason_is_that_of_one_rule() {
    for reason in reasons() {
        let rules: Vec<&str> =
            RULES.iter().filter(|rule| (rule.speaks)(&reason)).map(|rule| rule.name).collect();
        assert_eq!(rules.len(), 1, "{reason}: {rules:?}");
    }
}
