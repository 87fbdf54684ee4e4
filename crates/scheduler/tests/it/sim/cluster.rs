//! Everybody else in the cluster: users, controllers that make pods again, kubelets that take pods in or do not, other
//! schedulers, and machines that come and go.

use super::replica::KINDS;
use super::server::{Binder, SimPod, key};
use super::{Doom, Happening, Sim, TROUBLE_SECONDS};
use tutti_engine::Seat;
use tutti_model::{ObjectKey, Phase, Text};
use tutti_scheduler::core::message::BindOutcome;

/// What a node has.
const NODE_CPUS: i64 = 4;
/// Names of nodes to choose from: a lost one may come back.
const NODES: u64 = 7;

impl Sim {
    /// Somebody does something, at random.
    pub(super) fn act(&mut self) {
        self.acts_left -= 1;
        match self.dice.below(30) {
            0..=4 => self.add_gang(),
            5 => self.add_single(),
            6 | 7 => self.add_node(),
            8 => self.lose_node(),
            9 | 10 => self.with_pod(Self::delete_gracefully),
            11 => self.with_pod(|sim, pod| sim.end_pod(pod, Phase::Failed)),
            12 => self.with_pod(|sim, pod| sim.end_pod(pod, Phase::Succeeded)),
            13 => self.change_minimum(),
            14 => self.replace_group(),
            15 => self.intrude(),
            16 => self.bind_by_other(),
            17 => {
                let (replica, kind) = self.any_watch();
                self.break_watch(replica, kind);
            }
            18 | 19 => {
                let (replica, kind) = self.any_watch();
                let until = self.now.plus_seconds(self.dice.below(40) as i64);
                if let Some(watch) = self.replicas[replica].watches.get_mut(&kind) {
                    watch.stalled_until = until;
                }
            }
            20 => self.restart_server(),
            21 => {
                let replica = self.dice.below(self.replicas.len() as u64) as usize;
                self.crash(replica);
            }
            22 => {
                let replica = self.dice.below(self.replicas.len() as u64) as usize;
                self.pause(replica);
            }
            23 => self.doom = Some(Doom::Crash),
            24 => self.doom = Some(Doom::Pause),
            25 | 26 => self.add_tree(),
            27 => self.replace_composite(),
            _ => {}
        }
        self.spread_news();
        if self.acts_left > 0 {
            // Mostly in quick succession, so that things meet; sometimes after a long time, so that they end.
            let delay = match self.dice.below(4) {
                0 => self.dice.below(TROUBLE_SECONDS * 250),
                1 => self.dice.below(3_000),
                _ => self.dice.below(60),
            };
            self.schedule(delay, Happening::Act);
        }
    }

    /// Nothing goes wrong any more, and there is room for everybody.
    pub(super) fn end_trouble(&mut self) {
        self.trouble.on = false;
        self.doom = None;
        self.down = false;
        // In half of the stories nobody lists again, which would show what was forgotten.
        let lists_again = self.dice.once_in(2);
        for index in 0..self.replicas.len() {
            self.replicas[index].paused_until = self.now;
            for kind in KINDS.into_iter().filter(|_| lists_again) {
                self.break_watch(index, kind);
            }
        }
        // Twice the room of all, because the largest pods fill half a node.
        let wanted: i64 = self.server.pods.values().filter(|pod| !pod.is_over()).map(SimPod::cpu).sum();
        for index in 0..(2 * wanted / (NODE_CPUS * 1000) + 8) {
            self.server.set_node(&format!("late{index}"), NODE_CPUS);
        }
        self.spread_news();
    }

    // --- users -------------------------------------------------------------------------------------------

    pub(super) fn add_node(&mut self) {
        let name = format!("n{}", self.dice.below(NODES));
        self.server.set_node(&name, NODE_CPUS);
    }

    fn add_gang(&mut self) {
        let name = format!("g{}", self.serial);
        let priority = self.dice.below(2) as i32;
        let minimum = 1 + self.dice.below(4) as u32;
        self.add_group(&name, None, minimum, priority);
    }

    fn add_group(&mut self, name: &str, parent: Option<&ObjectKey>, minimum: u32, priority: i32) {
        let size = u64::from(minimum) + self.dice.below(2);
        let (cpus, controlled) = (1 + self.dice.below(2) as i64, !self.dice.once_in(5));
        self.server.set_group(name, parent, minimum, priority, self.now);
        for index in 0..size {
            self.server.add_pod(&format!("{name}-{index}"), Some(&key(name)), cpus, controlled, self.now);
        }
    }

    /// A composite of some groups and, now and then, of another composite, of which some must start together.
    fn add_tree(&mut self) {
        let (root, inner) = (format!("c{}", self.serial), format!("c{}i", self.serial));
        let priority = self.dice.below(2) as i32;
        let (children, within) = (1 + self.dice.below(3), self.dice.below(3));
        let all = children + u64::from(within > 0);
        let minimum = 1 + self.dice.below(all) as u32;
        self.server.set_composite(&root, None, minimum, priority, self.now);
        for index in 0..children {
            let minimum = 1 + self.dice.below(3) as u32;
            self.add_group(&format!("{root}g{index}"), Some(&key(&root)), minimum, priority);
        }
        if within > 0 {
            let minimum = 1 + self.dice.below(within) as u32;
            self.server.set_composite(&inner, Some(&key(&root)), minimum, priority, self.now);
        }
        for index in 0..within {
            let minimum = 1 + self.dice.below(2) as u32;
            self.add_group(&format!("{inner}g{index}"), Some(&key(&inner)), minimum, priority);
        }
    }

    fn add_single(&mut self) {
        let name = format!("p{}", self.serial);
        self.server.add_pod(&name, None, 1 + self.dice.below(2) as i64, !self.dice.once_in(2), self.now);
    }

    fn with_pod(&mut self, act: impl FnOnce(&mut Self, &ObjectKey)) {
        let pods: Vec<ObjectKey> = self.server.pods.keys().cloned().collect();
        if let Some(pod) = self.dice.pick(&pods) {
            act(self, &pod);
        }
    }

    fn change_minimum(&mut self) {
        let groups: Vec<ObjectKey> = self.server.groups.keys().cloned().collect();
        if let Some(group) = self.dice.pick(&groups) {
            let minimum = 1 + self.dice.below(5) as u32;
            self.server.set_minimum(&group, minimum);
        }
    }

    fn replace_group(&mut self) {
        let groups: Vec<ObjectKey> = self.server.groups.keys().cloned().collect();
        if let Some(group) = self.dice.pick(&groups) {
            let found = self.server.groups.get(&group).map(|found| found.group.clone());
            self.server.delete_group(&group);
            let minimum = 1 + self.dice.below(4) as u32;
            let priority = found.as_ref().and_then(|found| found.priority).unwrap_or(0);
            let parent = found.and_then(|found| found.parent);
            self.server.set_group(&group.name, parent.as_ref(), minimum, priority, self.now);
        }
    }

    /// Somebody deletes a composite, and mostly makes it again with another minimum.
    fn replace_composite(&mut self) {
        let composites: Vec<ObjectKey> = self.server.composites.keys().cloned().collect();
        let Some(composite) = self.dice.pick(&composites) else {
            return;
        };
        let found = self.server.composites.get(&composite).map(|found| found.group.clone());
        self.server.delete_composite(&composite);
        if let Some(found) = found.filter(|_| !self.dice.once_in(4)) {
            let (minimum, priority) = (1 + self.dice.below(3) as u32, found.priority.unwrap_or(0));
            self.server.set_composite(&composite.name, found.parent.as_ref(), minimum, priority, self.now);
        }
    }

    // --- other schedulers --------------------------------------------------------------------------------

    /// Another scheduler places a pod of its own, whatever there is room for.
    fn intrude(&mut self) {
        let nodes: Vec<Text> = self.server.nodes.keys().cloned().collect();
        let Some(node) = self.dice.pick(&nodes) else {
            return;
        };
        let name = format!("x{}", self.serial);
        self.server.add_pod(&name, None, 1 + self.dice.below(3) as i64, false, self.now);
        self.take_seat(&key(&name), &node, "other");
    }

    /// Somebody binds one of our pods.
    fn bind_by_other(&mut self) {
        let waits = |pod: &&SimPod| pod.pod.node.is_none() && !pod.is_over() && !pod.pod.terminating;
        let pods: Vec<ObjectKey> =
            self.server.pods.values().filter(waits).map(|pod| pod.pod.key.clone()).collect();
        let nodes: Vec<Text> = self.server.nodes.keys().cloned().collect();
        if let (Some(pod), Some(node)) = (self.dice.pick(&pods), self.dice.pick(&nodes)) {
            self.take_seat(&pod, &node, "tutti");
        }
    }

    fn take_seat(&mut self, pod: &ObjectKey, node: &Text, scheduler: &str) {
        let Some(uid) = self.server.pods.get(pod).map(|pod| pod.pod.uid.clone()) else {
            return;
        };
        self.server.change_pod(pod, &uid, |pod| {
            pod.pod.scheduler_name = scheduler.into();
            pod.pod.node = Some(node.clone());
            pod.binder = Some(Binder::Other);
        });
        let delay = 20 + self.dice.below(300);
        self.schedule(delay, Happening::Kubelet(pod.clone(), uid));
    }

    // --- the server --------------------------------------------------------------------------------------

    pub(super) fn bind(&mut self, seat: &Seat, binder: Binder) -> Result<BindOutcome, String> {
        let Some(found) = self.server.pods.get(&seat.pod).filter(|found| found.pod.uid == seat.uid) else {
            return Ok(BindOutcome::Disputed("not found".into()));
        };
        if found.pod.node.is_some() || found.pod.terminating || found.is_over() {
            return Ok(BindOutcome::Disputed("already assigned or ending".into()));
        }
        self.check_room(seat, binder)?;
        self.tally.binds += 1;
        self.tally.late_binds += u64::from(binder == Binder::Late);
        self.server.change_pod(&seat.pod, &seat.uid, |pod| {
            pod.pod.node = Some(seat.node.clone());
            pod.binder = Some(binder);
        });
        let delay = 20 + self.dice.below(300);
        self.schedule(delay, Happening::Kubelet(seat.pod.clone(), seat.uid.clone()));
        Ok(BindOutcome::Done)
    }

    fn restart_server(&mut self) {
        self.down = true;
        for index in 0..self.replicas.len() {
            for kind in KINDS {
                self.break_watch(index, kind);
            }
        }
        let delay = 100 + self.dice.below(20_000);
        self.schedule(delay, Happening::ServerUp);
    }

    fn any_watch(&mut self) -> (usize, tutti_k8s::ObjectKind) {
        let replica = self.dice.below(self.replicas.len() as u64) as usize;
        (replica, KINDS[self.dice.below(4) as usize])
    }

    // --- kubelets and controllers ------------------------------------------------------------------------

    /// A kubelet takes a pod in if there is room; a lying one does not even then.
    pub(super) fn kubelet(&mut self, pod: &ObjectKey, uid: &Text) {
        let Some(found) = self.server.pods.get(pod).filter(|found| found.pod.uid == *uid) else {
            return;
        };
        let Some(node) = found.pod.node.clone().filter(|_| !found.is_over() && !found.pod.terminating) else {
            return;
        };
        let Some(machine) = self.server.nodes.get(&node) else {
            // There is nobody to run it; it is cleaned up.
            let delay = self.dice.below(5_000);
            self.schedule(delay, Happening::Remove(pod.clone(), uid.clone()));
            return;
        };
        let sits =
            |other: &&SimPod| other.admitted && !other.is_over() && other.pod.node.as_ref() == Some(&node);
        let used: i64 = self.server.pods.values().filter(sits).map(SimPod::cpu).sum();
        let fits = used + found.cpu() <= machine.allocatable.get("cpu");
        let lies = self.trouble.on && self.dice.once_in(self.trouble.lies_one_in);
        if fits && !lies {
            self.server.change_pod(pod, uid, |pod| {
                pod.admitted = true;
                pod.pod.phase = Phase::Running;
            });
        } else {
            self.tally.rejected += 1;
            self.end_pod(pod, Phase::Failed);
        }
        self.spread_news();
    }

    /// A pod ends; only one that runs can end well.
    fn end_pod(&mut self, pod: &ObjectKey, phase: Phase) {
        let Some(found) = self.server.pods.get(pod).filter(|found| found.pod.node.is_some()) else {
            return;
        };
        if found.is_over() || (phase == Phase::Succeeded && !found.admitted) {
            return;
        }
        let (uid, copy) = (found.pod.uid.clone(), Box::new(found.clone()));
        self.server.change_pod(pod, &uid, |pod| pod.pod.phase = phase);
        if phase == Phase::Failed && copy.controlled {
            let delay = 100 + self.dice.below(4_000);
            self.schedule(delay, Happening::Replace(copy));
        }
    }

    pub(super) fn delete_gracefully(&mut self, pod: &ObjectKey) {
        let Some(found) = self.server.pods.get(pod).filter(|found| !found.pod.terminating) else {
            return;
        };
        let uid = found.pod.uid.clone();
        self.server.change_pod(pod, &uid, |pod| pod.pod.terminating = true);
        let delay = self.dice.below(2_000);
        self.schedule(delay, Happening::Remove(pod.clone(), uid));
    }

    fn lose_node(&mut self) {
        let nodes: Vec<Text> = self.server.nodes.keys().cloned().collect();
        let Some(node) = self.dice.pick(&nodes) else {
            return;
        };
        self.server.delete_node(&node);
        let lost: Vec<(ObjectKey, Text)> = self
            .server
            .pods
            .values()
            .filter(|pod| pod.pod.node.as_ref() == Some(&node))
            .map(|pod| (pod.pod.key.clone(), pod.pod.uid.clone()))
            .collect();
        for (pod, uid) in lost {
            let delay = 500 + self.dice.below(20_000);
            self.schedule(delay, Happening::Remove(pod, uid));
        }
    }

    pub(super) fn remove_pod(&mut self, pod: &ObjectKey, uid: &Text) {
        if self.server.pods.get(pod).is_none_or(|found| found.pod.uid != *uid) {
            return;
        }
        if let Some(gone) = self.server.delete_pod(pod)
            && gone.controlled
            && !gone.is_over()
        {
            let delay = 100 + self.dice.below(4_000);
            self.schedule(delay, Happening::Replace(Box::new(gone)));
        }
        self.spread_news();
    }

    /// A controller makes a pod again.
    pub(super) fn replace(&mut self, gone: &SimPod) {
        let stem = gone.pod.key.name.split("--").next().unwrap_or_default().to_owned();
        let name = format!("{stem}--{}", self.serial);
        self.server.add_pod(&name, gone.pod.group.as_ref(), gone.cpu() / 1000, true, self.now);
        self.spread_news();
    }
}
