//! Claims about volumes: who may go where, who waits for what, and what wakes them.

use crate::driver::{World, show};
use tutti_engine::{Decision, Event};
use tutti_model::{ObjectKey, Text};

fn told(text: &str) -> String {
    show(&World::parse(text).settle())
}

const ZONES: &str = "
    node a cpu=4 label:zone=a label:host=a
    node b cpu=4 label:zone=b label:host=b
";

#[test]
fn a_bound_claim_keeps_its_pod_where_the_volume_can_be_reached() {
    let text = format!(
        "{ZONES}
         volume v reach:zone=b
         claim c bound=v
         pod p cpu=1 claim:c"
    );
    assert_eq!(told(&text), "pod default/p: p->b\n");
    let text = format!("{ZONES}\nvolume v reach:zone=c\nclaim c bound=v\npod p claim:c");
    let told = told(&text);
    assert!(told.contains("0/2 nodes are available: 2 out of reach of a volume"), "{told}");
}

#[test]
fn zone_labels_of_a_volume_bind_nodes_that_are_in_a_zone() {
    let zone = "topology.kubernetes.io/zone";
    let beta = "failure-domain.beta.kubernetes.io/zone";
    let cluster = |label: &str, value: &str| {
        format!(
            "node a label:{zone}=a
             node b label:{zone}=b
             volume v label:{label}={value}
             claim c bound=v
             pod p claim:c"
        )
    };
    assert_eq!(told(&cluster(zone, "b")), "pod default/p: p->b\n");
    assert_eq!(told(&cluster(beta, "b")), "pod default/p: p->b\n", "the older label means the same");
    assert_eq!(told(&cluster(zone, "x__b")), "pod default/p: p->b\n", "a volume may be in several zones");
    assert!(told(&cluster(zone, "x")).contains("out of reach"));
    let plain = format!("node n\nvolume v label:{zone}=x\nclaim c bound=v\npod p claim:c");
    assert_eq!(told(&plain), "pod default/p: p->n\n", "a node without a zone is in none to conflict with");
}

#[test]
fn a_claim_that_is_not_ready_is_named_with_what_is_wrong() {
    for (storage, why) in [
        ("", "persistent volume claim c of pod p does not exist"),
        ("claim c", "claim c of pod p is not bound yet"),
        ("claim c class=gone", "claim c of pod p is of storage class gone, which does not exist"),
        ("class now provisioner=d\nclaim c class=now", "is not bound yet, and its class does not wait"),
        ("claim c bound=v", "is bound to volume v, which does not exist"),
        ("volume v\nclaim c names=v", "is not bound yet"),
        ("volume v\nclaim c bound=v lost", "has lost its volume"),
        ("volume v\nclaim c bound=v terminating", "is being deleted"),
    ] {
        let told = told(&format!("node n\n{storage}\npod p claim:c"));
        assert!(told.contains(why), "{storage}: {told}");
    }
    let own = told("node n\nvolume v\nclaim c bound=v owner=other\npod p own-claim:c");
    assert!(own.contains("claim c of pod p was not made for this pod"), "{own}");
    let own = told("node n\nvolume v\nclaim c bound=v owner=p\npod p own-claim:c");
    assert_eq!(own, "pod default/p: p->n\n");
}

#[test]
fn a_claim_that_becomes_ready_wakes_its_pod_and_nobody_else() {
    let mut world = World::parse(
        "node n
         class fast wait provisioner=d
         pod p claim:c
         pod q claim:other
         pod r claim:missing-class",
    );
    assert_eq!(world.settle().len(), 3);
    let before = world.engine.attempts_count();
    world.add("claim c class=fast");
    assert_eq!(show(&world.settle()), "pod default/p: p->n c=n\n");
    world.add("claim missing-class class=later");
    assert!(show(&world.settle()).contains("storage class later, which does not exist"));
    world.add("class later wait provisioner=d");
    assert!(show(&world.settle()).contains("r->n"));
    assert_eq!(world.engine.attempts_count() - before, 3, "q was left alone");
    world.add("volume v\nclaim other bound=v");
    assert_eq!(show(&world.settle()), "pod default/q: q->n\n");
}

#[test]
fn local_volumes_are_used_once_each_also_within_a_gang() {
    let cluster = |volumes: &str| {
        format!(
            "{ZONES}
             class local wait
             {volumes}
             claim data x3 class=local size=5Gi
             group g gang=3
             pod w x3 group=g cpu=1 claim:data-*"
        )
    };
    let two_on_a =
        "volume a x2 class=local size=10Gi reach:host=a\nvolume b class=local size=5Gi reach:host=b";
    let told = told(&cluster(two_on_a));
    assert!(told.starts_with("group default/g: w-0->a w-1->a w-2->b"), "{told}");
    let too_few =
        "volume a x2 class=local size=10Gi reach:host=a\nvolume b class=local size=4Gi reach:host=b";
    let told = crate::volumes::told(&cluster(too_few));
    assert!(told.contains("waits: 2 of 3 members fit"), "{told}");
    assert!(told.contains("2 no free volume for a claim"), "{told}");
}

#[test]
fn a_choice_between_volumes_never_stands_in_the_way_of_another_claim() {
    // The large claim needs the large volume, which alone is in reach of b, where only the small claim's pod can go.
    let told = told(
        "node a cpu=4 label:zone=a label:host=a
         node b cpu=4 label:zone=b label:host=b
         class net wait
         volume big   class=net size=9Gi
         volume small class=net size=5Gi reach:zone=a
         claim one class=net size=1Gi
         claim two class=net size=1Gi
         group g gang=2
         pod p group=g claim:one select:zone=a
         pod q group=g claim:two select:zone=b",
    );
    assert_eq!(told, "group default/g: p->a q->b one=small two=big\n");
}

#[test]
fn a_volume_that_is_kept_for_a_claim_is_for_no_other() {
    let told = told(&format!(
        "{ZONES}
         class local wait
         volume v class=local size=5Gi reach:host=b claim=mine
         claim mine class=local size=1Gi
         claim other class=local size=1Gi
         pod p claim:mine
         pod q claim:other"
    ));
    assert!(told.contains("pod default/p: p->b mine=v\n"), "{told}");
    assert!(told.contains("pod default/q (1) waits: 0/2 nodes are available: 2 no free volume"), "{told}");
}

#[test]
fn a_volume_that_is_freed_or_made_wakes_who_can_use_it() {
    let mut world = World::parse(&format!(
        "{ZONES}
         class local wait
         claim c class=local size=5Gi
         pod p claim:c"
    ));
    assert_eq!(world.settle().len(), 1);
    let before = world.engine.attempts_count();
    world.add("volume small class=local size=1Gi");
    world.add("volume foreign class=other size=9Gi");
    assert_eq!(world.engine.attempts_count(), before, "neither is of use");
    assert!(world.settle().is_empty());
    world.add("volume v class=local size=5Gi reach:host=b");
    assert_eq!(show(&world.settle()), "pod default/p: p->b c=v\n");
}

#[test]
fn a_class_that_makes_volumes_does_so_where_it_is_allowed_to() {
    let told = told(&format!(
        "{ZONES}
         class fast wait provisioner=d allow:zone=b
         claim c class=fast
         claim d class=fast selected=a
         pod p claim:c
         pod q claim:d"
    ));
    assert!(told.contains("pod default/p: p->b c=b\n"), "{told}");
    assert!(told.contains("pod default/q (1) waits: 0/2 nodes are available: 2 out of reach"), "{told}");
    let selected = crate::volumes::told(&format!(
        "{ZONES}\nclass fast wait provisioner=d\nclaim c class=fast selected=b\npod p claim:c"
    ));
    assert_eq!(selected, "pod default/p: p->b c=b\n", "the node was chosen before");
}

#[test]
fn a_volume_that_exists_is_given_before_one_is_made() {
    let told = told(&format!(
        "{ZONES}
         class fast wait provisioner=d allow:zone=a
         volume v class=fast size=1Gi reach:host=b
         claim c class=fast
         pod p claim:c cpu=1
         pod old on=a cpu=4"
    ));
    assert_eq!(told, "pod default/p: p->b c=v\n", "and widens where the pod can go");
}

#[test]
fn a_node_attaches_so_many_volumes_of_a_driver_and_no_more() {
    let cluster = |limit: u32| {
        format!(
            "node n attach:ebs={limit}
             class ebs wait provisioner=ebs
             claim data x3 class=ebs
             group g gang=3
             pod w x3 group=g claim:data-*"
        )
    };
    assert!(told(&cluster(3)).starts_with("group default/g: w-0->n w-1->n w-2->n"));
    let told = told(&cluster(2));
    assert!(told.contains("2 of 3 members fit"), "{told}");
    assert!(told.contains("1 no more volumes of ebs can be attached"), "{told}");
}

#[test]
fn a_volume_that_pods_share_is_attached_once() {
    let told = told(
        "node n attach:ebs=1
         volume v disk:ebs mode=RWX
         claim c bound=v mode=RWX
         group g gang=3
         pod w x2 group=g claim:c
         pod x group=g cpu=0 label:app=x claim:c",
    );
    assert!(told.starts_with("group default/g: w-0->n w-1->n x->n"), "{told}");
}

#[test]
fn shared_and_own_volumes_count_together() {
    let cluster = |limit: u32| {
        format!(
            "node n cpu=9 attach:ebs={limit}
             volume shared disk:ebs
             volume mine x2 disk:ebs
             claim shared bound=shared
             claim mine-0 bound=mine-0
             claim mine-1 bound=mine-1
             group g gang=2
             pod a group=g cpu=1 claim:shared claim:mine-0
             pod b group=g cpu=2 claim:shared claim:mine-1"
        )
    };
    assert!(told(&cluster(3)).starts_with("group default/g: a->n b->n"));
    assert!(told(&cluster(2)).contains("1 of 2 members fit"));
}

#[test]
fn a_limit_that_comes_later_counts_what_is_attached_already() {
    let mut world = World::parse(
        "node n
         volume v x2 disk:ebs
         claim c-0 bound=v-0
         claim c-1 bound=v-1
         pod old on=n claim:c-0",
    );
    world.add("node n attach:ebs=1");
    world.add("pod p claim:c-1");
    assert!(show(&world.settle()).contains("no more volumes of ebs"));
    world.add("node n attach:ebs=2");
    assert_eq!(show(&world.settle()), "pod default/p: p->n\n", "more room wakes it");
}

#[test]
fn a_claim_for_one_pod_is_waited_for_until_it_is_free() {
    let mut world = World::parse(
        "node n
         volume v
         claim c bound=v mode=RWOP
         pod old on=n claim:c
         pod p claim:c",
    );
    let told = show(&world.settle());
    assert!(told.contains("claim c of pod p is for one pod only, and pod old uses it"), "{told}");
    let key = world.pod("old").key;
    world.remove_pod(&key);
    assert_eq!(show(&world.settle()), "pod default/p: p->n\n");
}

#[test]
fn two_members_of_a_gang_cannot_share_a_claim_for_one_pod() {
    let gang = |minimum: u32| {
        format!(
            "node n cpu=4
             volume v
             claim c bound=v mode=RWOP
             group g gang={minimum}
             pod w x2 group=g cpu=1 claim:c
             pod x group=g cpu=2"
        )
    };
    let told = told(&gang(3));
    assert!(told.contains("2 of 3 members fit"), "{told}");
    assert!(told.contains("1 volume claim for one pod only"), "{told}");
    let told = crate::volumes::told(&gang(2));
    assert!(told.starts_with("group default/g: w-0->n x->n w-1->?"), "{told}");
    assert!(told.contains("claim c of pod w-1 is for one pod only, and pod w-0 uses it"), "{told}");
}

#[test]
fn a_member_whose_claim_is_not_ready_does_not_hold_up_those_that_suffice() {
    let told = told(
        "node n
         group g gang=2
         pod w x2 group=g
         pod x group=g claim:missing",
    );
    assert!(told.starts_with("group default/g: w-0->n w-1->n x->?"), "{told}");
    assert!(told.contains("claim missing of pod x does not exist"), "{told}");
}

#[test]
fn a_failed_binding_gives_the_volume_back() {
    let mut world = World::parse(&format!(
        "{ZONES}
         class local wait
         volume v class=local size=5Gi reach:host=b
         claim c class=local size=1Gi
         claim d class=local size=1Gi
         pod p claim:c
         pod q claim:d"
    ));
    let Decision::Place(placement) = world.engine.decide(world.now) else { panic!("p fits") };
    assert_eq!(placement.claims.len(), 1);
    assert!(matches!(world.engine.decide(world.now), Decision::Wait(_)), "the only volume is promised");
    world.engine.apply(Event::PodGone(placement.seats[0].pod.clone()), world.now);
    world.pods.retain(|pod| pod.key != placement.seats[0].pod);
    assert_eq!(show(&world.settle()), "pod default/q: q->b d=v\n");
}

#[test]
fn who_shares_an_unbound_claim_follows_the_first_pod_that_uses_it() {
    let mut world = World::parse(&format!(
        "{ZONES}
         class fast wait provisioner=d
         claim c class=fast mode=RWX
         pod p claim:c select:zone=b"
    ));
    let Decision::Place(placement) = world.engine.decide(world.now) else { panic!("p fits") };
    assert_eq!(placement.seats[0].node.as_ref(), "b");
    let more = tutti_model::scenario::Scenario::parse("pod q claim:c").unwrap();
    world.engine.apply(Event::PodSet(Box::new(more.pods[0].clone())), world.now);
    let Decision::Place(second) = world.engine.decide(world.now) else { panic!("q fits") };
    assert_eq!(
        second.seats[0].node.as_ref(),
        "b",
        "until the volume exists nobody knows where else it reaches"
    );
    assert_eq!(second.claims, placement.claims);
}

#[test]
fn a_gang_that_shares_an_unbound_claim_gets_one_volume() {
    let told = told(&format!(
        "{ZONES}
         class net wait
         volume v x2 class=net size=5Gi
         claim shared class=net size=1Gi mode=RWO
         claim own class=net size=1Gi
         group g gang=2
         pod a group=g cpu=3 claim:shared claim:own
         pod b group=g cpu=3 claim:shared"
    ));
    assert_eq!(told, "group default/g: a->a b->b own=v-1 shared=v-0\n");
}

#[test]
fn facts_about_storage_may_come_in_any_order() {
    let text = format!(
        "{ZONES}
         class local wait
         volume v class=local size=5Gi reach:host=b disk:ebs
         claim c class=local size=1Gi
         pod p claim:c"
    );
    let scenario = tutti_model::scenario::Scenario::parse(&text).unwrap();
    let expected = World::new(&scenario).engine.digest();
    let mut events = Event::of_storage(&scenario.storage);
    events.extend(scenario.nodes.iter().map(|node| Event::NodeSet(Box::new(node.clone()))));
    events.extend(scenario.pods.iter().map(|pod| Event::PodSet(Box::new(pod.clone()))));
    for turn in 0..events.len() {
        let mut world = World::parse("");
        events.rotate_left(turn);
        for event in &events {
            world.engine.apply(event.clone(), world.now);
        }
        assert_eq!(world.engine.digest(), expected, "{turn}");
        world.engine.apply(Event::ClaimGone(ObjectKey::new("default", "c")), world.now);
        assert_ne!(world.engine.digest(), expected);
        world.engine.apply(Event::ClaimSet(Box::new(scenario.storage.claims[0].clone())), world.now);
        assert_eq!(world.engine.digest(), expected, "{turn}: taken back without a trace");
        world.engine.apply(Event::VolumeGone(Text::from("v")), world.now);
        world.engine.apply(Event::VolumeSet(Box::new(scenario.storage.volumes[0].clone())), world.now);
        assert_eq!(world.engine.digest(), expected, "{turn}");
    }
}
