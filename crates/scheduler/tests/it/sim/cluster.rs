//! Everybody else in the cluster: controllers that make pods again, kubelets that take pods in or do not, other
//! schedulers, and the API server's own ups and downs.

use super::server::{Binder, SimPod, cpu, key};
use super::tally::Deed;
use super::{Happening, Sim};
use tutti_engine::Seat;
use tutti_model::{ObjectKey, Phase, Pod, Policy, Text};
use tutti_scheduler::core::message::BindOutcome;

impl Sim {
    // --- other schedulers --------------------------------------------------------------------------------

    /// Another scheduler places a pod of its own, whatever there is room for.
    pub(super) fn intrude(&mut self) {
        let nodes: Vec<Text> = self.server.nodes.keys().cloned().collect();
        let Some(node) = self.dice.pick(&nodes) else {
            return;
        };
        self.tally.count(Deed::Intrusion);
        let name = format!("x{}", self.serial);
        let like = Pod { requests: cpu(1 + self.dice.below(3) as i64), ..Pod::new(key("like"), "") };
        self.server.add_pod(&name, &like, false, self.now);
        self.take_seat(&key(&name), &node, "other");
    }

    /// Somebody binds one of our pods.
    pub(super) fn bind_by_other(&mut self) {
        let waits = |pod: &&SimPod| {
            // A pod of a Job that another scheduler binds before we know of its group is no member until it is seen again.
            let is_of_job =
                pod.pod.group.as_ref().is_some_and(|group| self.server.job_of_group.contains_key(group));
            let is_free = pod.pod.node.is_none() && pod.pod.gates.is_empty() && !is_of_job;
            is_free && !pod.is_over() && !pod.pod.terminating
        };
        let pods: Vec<ObjectKey> =
            self.server.pods.values().filter(waits).map(|pod| pod.pod.key.clone()).collect();
        let nodes: Vec<Text> = self.server.nodes.keys().cloned().collect();
        if let (Some(pod), Some(node)) = (self.dice.pick(&pods), self.dice.pick(&nodes)) {
            self.tally.count(Deed::OtherBinder);
            self.take_seat(&pod, &node, "tutti");
        }
    }

    fn take_seat(&mut self, pod: &ObjectKey, node: &Text, scheduler: &str) {
        let Some(uid) = self.server.pods.get(pod).map(|pod| pod.pod.uid.clone()) else {
            return;
        };
        self.ran.extend(self.server.pods.get(pod).and_then(|pod| pod.pod.group.clone()));
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
        if !found.pod.gates.is_empty() {
            return Err(format!("{} is bound although a gate holds it back", seat.pod));
        }
        self.check_room(seat, binder)?;
        let is_of_job =
            found.pod.group.as_ref().is_some_and(|group| self.server.job_of_group.contains_key(group));
        if is_of_job && !found.pod.group.as_ref().is_some_and(|group| self.made.contains(group)) {
            return Err(format!("{} is bound before the group of its Job is made", seat.pod));
        }
        let group = found.pod.group.as_ref().and_then(|group| self.server.groups.get(group));
        for (happens, deed) in [
            (true, Deed::Bind),
            (binder == Binder::Late, Deed::LateBind),
            (group.is_some_and(|group| group.group.policy == Policy::Basic), Deed::BasicBind),
            (!found.pod.volume_claims.is_empty(), Deed::VolumeBind),
            (found.was_gated, Deed::UngatedBind),
            (is_of_job, Deed::JobBind),
        ] {
            if happens {
                self.tally.count(deed);
            }
        }
        self.ran.extend(found.pod.group.clone());
        self.server.change_pod(&seat.pod, &seat.uid, |pod| {
            pod.pod.node = Some(seat.node.clone());
            pod.binder = Some(binder);
        });
        let delay = 20 + self.dice.below(300);
        self.schedule(delay, Happening::Kubelet(seat.pod.clone(), seat.uid.clone()));
        Ok(BindOutcome::Done)
    }

    pub(super) fn restart_server(&mut self) {
        self.tally.count(Deed::ServerRestart);
        self.down = true;
        for index in 0..self.replicas.len() {
            for kind in self.kinds.clone() {
                self.break_watch(index, kind);
            }
        }
        let delay = 100 + self.dice.below(20_000);
        self.schedule(delay, Happening::ServerUp);
    }

    pub(super) fn any_replica(&mut self) -> usize {
        self.dice.below(self.replicas.len() as u64) as usize
    }

    pub(super) fn any_watch(&mut self) -> (usize, tutti_k8s::ObjectKind) {
        let replica = self.any_replica();
        // Mostly one of those that every start depends on.
        let kinds = if self.dice.once_in(4) { self.kinds.len() as u64 } else { 4 };
        (replica, self.kinds[self.dice.below(kinds) as usize])
    }

    pub(super) fn stall_watch(&mut self) {
        let (replica, kind) = self.any_watch();
        let until = self.now.plus_seconds(self.dice.below(40) as i64);
        if let Some(watch) = self.replicas[replica].watches.get_mut(&kind) {
            watch.stalled_until = until;
            self.tally.count(Deed::WatchStall);
        }
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
        let fits = used + found.cpu() <= machine.allocatable.get("cpu")
            && found.pod.affinity.matches(&machine.name, &machine.labels);
        let lies = self.trouble.on && self.dice.once_in(self.trouble.lies_one_in);
        if fits && !lies {
            self.server.change_pod(pod, uid, |pod| {
                pod.admitted = true;
                pod.pod.phase = Phase::Running;
            });
        } else {
            self.tally.count(Deed::Rejection);
            self.end_pod(pod, Phase::Failed);
        }
        self.spread_news();
    }

    /// A pod ends; only one that runs can end well.
    pub(super) fn end_pod(&mut self, pod: &ObjectKey, phase: Phase) {
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
        let like = Pod { gates: Vec::new(), ..gone.pod.clone() };
        self.server.add_pod(&name, &like, true, self.now);
        self.spread_news();
    }
}
