//! The digest covers everything that a decision depends on.

use crate::driver::World;
use std::collections::BTreeMap;
use tutti_engine::{Event, HeldSeat, Hold, HoldReason, UnitKey};
use tutti_model::scenario::Scenario;
use tutti_model::{Group, Node, ObjectKey, Pod, Resource, Text, Time};

/// One of everything.
const CLUSTER: &str = "
    node n cpu=8 memory=8Gi label:zone=a
    node m cpu=8 memory=8Gi label:zone=b
    class local wait
    volume v class=local size=5Gi
    claim c class=local size=1Gi
    composite top gang=1
    group g gang=2 parent=top
    pod r on=n cpu=1 label:app=1
    pod p group=g cpu=1 label:app=1
    pod q group=g cpu=1";

fn digest_after(change: impl FnOnce(&mut World)) -> u64 {
    let mut world = World::parse(CLUSTER);
    change(&mut world);
    world.engine.digest()
}

/// Every change gives another digest than no change and than every other change.
fn assert_all_differ(changes: Vec<(&str, u64)>) {
    let mut seen: BTreeMap<u64, &str> = BTreeMap::from([(digest_after(|_| {}), "no change")]);
    for (what, digest) in changes {
        if let Some(other) = seen.insert(digest, what) {
            panic!("{what} has the digest of {other}");
        }
    }
}

fn node(change: impl Fn(&mut Node)) -> u64 {
    digest_after(|world| {
        let mut node = world.nodes[0].clone();
        change(&mut node);
        world.set_node(node);
    })
}

fn pod(name: &str, change: impl Fn(&mut Pod)) -> u64 {
    digest_after(|world| {
        let mut pod = world.pod(name);
        change(&mut pod);
        world.set_pod(pod);
    })
}

fn words(line: &str) -> Pod {
    Scenario::parse(&format!("pod x {line}")).unwrap().pods.remove(0)
}

fn group(change: impl Fn(&mut Group)) -> u64 {
    digest_after(|world| {
        let mut group = world.groups[0].clone();
        change(&mut group);
        world.engine.apply(Event::GroupSet(Box::new(group)), world.now);
    })
}

#[test]
fn every_field_of_a_node_counts() {
    // Named one by one, so that a new field does not compile until it is here.
    let Node { name: _, labels: _, allocatable: _, taints: _, unschedulable: _, images: _, features: _ } =
        Node::default();
    let like =
        |line: &str| Scenario::parse(&format!("node n cpu=8 memory=8Gi {line}")).unwrap().nodes.remove(0);
    assert_all_differ(vec![
        ("labels", node(|node| node.labels = like("label:zone=c").labels)),
        ("allocatable", node(|node| node.allocatable.set(Resource::new("cpu"), 1))),
        ("taints", node(|node| node.taints = like("taint:k=v:NoSchedule").taints)),
        ("cordon", node(|node| node.unschedulable = true)),
        ("features", node(|node| node.features = like("feature:F").features)),
        ("images", node(|node| node.images = like("image:app:v1=5Mi").images)),
        ("gone", digest_after(|world| world.remove_node("m"))),
    ]);
}

#[test]
fn every_field_of_a_pod_counts() {
    assert_all_differ(vec![
        ("uid", pod("p", |pod| pod.uid = "other".into())),
        ("created", pod("p", |pod| pod.created = Time(7))),
        ("scheduler", pod("p", |pod| pod.scheduler_name = "other".into())),
        ("priority", pod("p", |pod| pod.priority = 7)),
        ("group", pod("p", |pod| pod.group = None)),
        ("rank", pod("p", |pod| pod.rank = Some(3))),
        ("leader", pod("p", |pod| pod.leader = true)),
        ("labels", pod("p", |pod| pod.labels = words("label:app=2").labels)),
        ("requests", pod("p", |pod| pod.requests.set(Resource::new("cpu"), 5))),
        ("padding", pod("p", |pod| pod.padding.cpu = 5)),
        ("affinity", pod("p", |pod| pod.affinity = words("select:zone=a").affinity)),
        ("tolerations", pod("p", |pod| pod.tolerations = words("tolerate:k").tolerations)),
        ("features", pod("p", |pod| pod.features = words("feature:F").features)),
        ("ports", pod("p", |pod| pod.ports = words("port:80").ports)),
        ("pod affinity", pod("p", |pod| pod.inter_pod = words("affinity:zone:app=1").inter_pod)),
        ("its key", pod("p", |pod| pod.inter_pod = words("affinity:host:app=1").inter_pod)),
        ("anti-affinity", pod("p", |pod| pod.inter_pod = words("anti-affinity:zone:app=1").inter_pod)),
        ("spread", pod("p", |pod| pod.inter_pod = words("spread:zone:1:app=1").inter_pod)),
        ("skew", pod("p", |pod| pod.inter_pod = words("spread:zone:2:app=1").inter_pod)),
        ("preferred nodes", pod("p", |pod| pod.preferences = words("prefer:zone=a:5").preferences)),
        (
            "preferred pods",
            pod("p", |pod| pod.preferences = words("prefer-affinity:zone:app=1:5").preferences),
        ),
        ("weight", pod("p", |pod| pod.preferences = words("prefer-affinity:zone:app=1:6").preferences)),
        (
            "preferred spread",
            pod("p", |pod| pod.preferences = words("prefer-spread:zone:1:app=1").preferences),
        ),
        ("images", pod("p", |pod| pod.images = words("image:app:v1").images)),
        ("gates", pod("p", |pod| pod.gates = vec!["wait".into()])),
        ("device claims", pod("p", |pod| pod.device_claims = vec!["gpu".into()])),
        ("volume claims", pod("p", |pod| pod.volume_claims = words("claim:c").volume_claims)),
        ("nomination", pod("p", |pod| pod.nominated = Some("n".into()))),
        ("node", pod("p", |pod| pod.node = Some("n".into()))),
        ("other node", pod("p", |pod| pod.node = Some("m".into()))),
        ("phase", pod("r", |pod| pod.phase = tutti_model::Phase::Succeeded)),
        ("other phase", pod("r", |pod| pod.phase = tutti_model::Phase::Failed)),
        ("terminating", pod("r", |pod| pod.terminating = true)),
        ("gone", digest_after(|world| world.remove_pod(&ObjectKey::new("default", "r")))),
    ]);
}

#[test]
fn every_field_of_a_group_counts() {
    let like = |line: &str| Scenario::parse(&format!("group g {line}")).unwrap().groups.remove(0);
    assert_all_differ(vec![
        ("minimum", group(|group| group.policy = like("gang=1").policy)),
        ("priority", group(|group| group.priority = Some(5))),
        ("created", group(|group| group.created = Time(5))),
        ("parent", group(|group| group.parent = None)),
        ("gated members", group(|group| group.when_gated = like("when-gated=start").when_gated)),
        ("topology", group(|group| group.topology = like("gang=2 required:zone").topology)),
        (
            "gone",
            digest_after(|world| {
                world.engine.apply(Event::GroupGone(ObjectKey::new("default", "g")), Time(0));
            }),
        ),
    ]);
}

#[test]
fn everything_else_that_is_told_counts() {
    let tell = |event: Event| digest_after(|world| world.engine.apply(event, Time(0)));
    let unit = || UnitKey::Composite(ObjectKey::new("default", "top"));
    let hold = |node: &str, priority, expires: i64| Hold {
        unit: unit(),
        priority,
        expires: Some(Time(expires)),
        reason: HoldReason::Told,
        seats: vec![HeldSeat { node: Text::from(node), requests: words("cpu=1").requests, count: 1 }],
    };
    let labels = [("team", "a")].into_iter().collect();
    assert_all_differ(vec![
        ("namespace", tell(Event::NamespaceSet { name: "default".into(), labels })),
        ("hold", tell(Event::Hold(Box::new(hold("n", 0, 9))))),
        ("its node", tell(Event::Hold(Box::new(hold("m", 0, 9))))),
        ("its priority", tell(Event::Hold(Box::new(hold("n", 1, 9))))),
        ("its end", tell(Event::Hold(Box::new(hold("n", 0, 10))))),
        ("suspended", tell(Event::Suspend(unit()))),
        ("claim gone", tell(Event::ClaimGone(ObjectKey::new("default", "c")))),
        ("volume gone", tell(Event::VolumeGone("v".into()))),
        ("class gone", tell(Event::ClassGone("local".into()))),
        ("composite gone", tell(Event::CompositeGone(ObjectKey::new("default", "top")))),
    ]);
}

#[test]
fn what_the_agenda_remembers_counts() {
    let text = "node n cpu=1\ngroup g gang=2\npod p x2 group=g cpu=1";
    let mut world = World::parse(text);
    let asked = world.engine.digest();
    world.settle();
    let asleep = world.engine.digest();
    assert_ne!(asked, asleep, "whether a unit waits for its turn or for room");
    let mut later = World::parse(text);
    later.now = Time(5_000);
    later.settle();
    assert_ne!(asleep, later.engine.digest(), "since when a gang waits");
    // A binding that failed.
    let place = |fails: bool| {
        let mut world = World::parse("node n cpu=1\npod p cpu=1");
        let tutti_engine::Decision::Place(placement) = world.engine.decide(world.now) else {
            panic!("there is room")
        };
        let seat = placement.seats[0].clone();
        let event = if fails {
            Event::BindFailed { pod: seat.pod, uid: seat.uid }
        } else {
            Event::Withdrawn { pod: seat.pod, uid: seat.uid }
        };
        world.engine.apply(event, world.now);
        world.engine.digest()
    };
    assert_ne!(place(true), place(false), "that a unit pauses");
}
