//! People: what they ask for, change and take back, and what befalls the cluster meanwhile.

use super::lease::End;
use super::machines::{TAINT, ZONES};
use super::server::{Draft, SimGroup, cpu, key, zone_labels};
use super::tally::Deed;
use super::volumes_and_claims::{LOCAL, MADE};
use super::{Doom, Happening, Sim, TROUBLE_SECONDS};
use std::num::NonZeroU32;
use tutti_k8s::WhenBroken;
use tutti_model::{ObjectKey, Phase, Pod, Policy, Toleration, TolerationOperator, VolumeUse};

impl Sim {
    /// Somebody does something, at random.
    pub(super) fn act(&mut self) -> Result<(), String> {
        self.acts_left -= 1;
        if self.only_kills {
            self.act_or_kill();
        } else {
            self.act_in_any_way()?;
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
        Ok(())
    }

    /// A gang comes, or a scheduler is killed.
    fn act_or_kill(&mut self) {
        match self.dice.below(3) {
            0 => {
                let (minimum, priority) = (2 + self.dice.below(6) as u32, self.dice.below(2) as i32);
                let draft = self.draft(format!("g{}", self.serial), None, gang(minimum), priority);
                self.add_group(draft);
            }
            1 => {
                let replica = self.any_replica();
                self.crash(replica);
            }
            _ => self.doom = Some(Doom::Crash),
        }
    }

    fn act_in_any_way(&mut self) -> Result<(), String> {
        match self.dice.below(43) {
            0..=4 => self.add_gang(),
            5 => self.add_single(),
            6 => self.add_basic_group(),
            7 | 8 => self.add_node(),
            9 => self.lose_node(),
            10 | 11 => self.change_node(),
            12 | 13 => self.with_pod(|sim, pod| {
                sim.tally.count(Deed::Deletion);
                sim.delete_gracefully(pod);
            }),
            14 => self.with_pod(|sim, pod| {
                sim.tally.count(Deed::Failure);
                sim.end_pod(pod, Phase::Failed);
            }),
            15 => self.with_pod(|sim, pod| {
                sim.tally.count(Deed::Success);
                sim.end_pod(pod, Phase::Succeeded);
            }),
            16 | 17 => self.change_policy(),
            18 => self.replace_group(),
            19 => self.intrude(),
            20 => self.bind_by_other(),
            21 => {
                let (replica, kind) = self.any_watch();
                self.tally.count(Deed::WatchBreak);
                self.break_watch(replica, kind);
            }
            22 | 23 => self.stall_watch(),
            24 => self.restart_server(),
            25 => {
                let replica = self.any_replica();
                self.crash(replica);
            }
            26 => {
                let replica = self.any_replica();
                self.pause(replica);
            }
            27 => self.doom = Some(Doom::Crash),
            28 => self.doom = Some(Doom::Pause),
            29 => self.doom = Some(Doom::End(End::HandOver)),
            30 => {
                let replica = self.any_replica();
                self.stop(replica, End::HandOver)?;
            }
            31 => {
                let replica = self.any_replica();
                self.stop(replica, End::Reload)?;
            }
            32 | 33 => self.add_tree(),
            34 => self.replace_composite(),
            35 | 36 => self.with_pod(|sim, pod| {
                sim.tally.count(Deed::GateOpening);
                sim.open_gates(pod);
            }),
            37 | 38 => self.move_group(),
            39 | 40 => self.add_job(),
            41 => self.change_job_or_class(),
            _ => self.steal_volume(),
        }
        Ok(())
    }

    /// Nothing goes wrong any more, nobody is held back, and there is room for everybody.
    pub(super) fn end_trouble(&mut self) {
        self.trouble.on = false;
        self.doom = None;
        self.down = false;
        // In half of the stories nobody lists again, which would show what was forgotten.
        let lists_again = self.dice.once_in(2);
        for index in 0..self.replicas.len() {
            self.replicas[index].paused_until = self.now;
            for kind in self.kinds.clone().into_iter().filter(|_| lists_again) {
                self.break_watch(index, kind);
            }
        }
        for pod in self.server.pods.keys().cloned().collect::<Vec<_>>() {
            self.open_gates(&pod);
        }
        for index in 0..self.server.storage.unbound(LOCAL) {
            for zone in ZONES {
                self.server.add_volume(&format!("late-{zone}{index}"), LOCAL, zone, None);
            }
        }
        self.server.restore_classes();
        self.add_room_for_all();
        self.spread_news();
    }

    // --- what is asked for -------------------------------------------------------------------------------

    fn add_gang(&mut self) {
        let minimum = 1 + self.dice.below(4) as u32;
        let priority = self.dice.below(2) as i32;
        let mut draft = self.draft(format!("g{}", self.serial), None, gang(minimum), priority);
        draft.by_class = self.has_optional && self.dice.once_in(4);
        self.add_group(draft);
    }

    /// A group whose members may start one by one.
    fn add_basic_group(&mut self) {
        let priority = self.dice.below(2) as i32;
        let draft = self.draft(format!("b{}", self.serial), None, Policy::Basic, priority);
        self.add_group(draft);
    }

    fn draft(&mut self, name: String, parent: Option<&str>, policy: Policy, priority: i32) -> Draft {
        let when_broken = match self.dice.below(6) {
            0 => Some(WhenBroken::Keep),
            1 => Some(WhenBroken::Unwind),
            _ => None,
        };
        Draft { name, parent: parent.map(key), policy, priority, when_broken, by_class: false }
    }

    fn add_group(&mut self, draft: Draft) {
        let size = match draft.policy {
            Policy::Gang { min_count } => u64::from(min_count.get()) + self.dice.below(2),
            Policy::Basic => 1 + self.dice.below(4),
        };
        let controlled = !self.dice.once_in(5);
        let name = draft.name.clone();
        let like = Pod { group: Some(key(&name)), priority: draft.priority, ..self.new_pod() };
        self.server.set_group(draft, self.now);
        for index in 0..size {
            self.add_pod(&format!("{name}-{index}"), &like, controlled);
        }
    }

    /// A Job of which all pods start together. Its group is made for it, now or later.
    fn add_job(&mut self) {
        if !self.has_optional {
            return;
        }
        self.tally.count(Deed::NewJob);
        let name = format!("j{}", self.serial);
        let (members, priority) = (1 + self.dice.below(3) as u32, self.dice.below(2) as i32);
        let group = self.server.add_job(&name, members);
        let like = Pod { group: Some(group.clone()), priority, ..self.new_pod() };
        let draft = self.draft(group.name.to_string(), None, gang(members), priority);
        let delay = if self.dice.once_in(2) { 0 } else { self.dice.below(20_000) };
        self.schedule(delay, Happening::MakeGroup(Box::new(draft)));
        for index in 0..members {
            self.add_pod(&format!("{name}-{index}"), &like, true);
        }
    }

    /// The controller that makes groups for Jobs makes one.
    pub(super) fn make_group(&mut self, draft: Draft) {
        self.made.insert(key(&draft.name));
        self.server.set_group(draft, self.now);
        self.spread_news();
    }

    /// A Job goes or is told of again, or a priority class goes or comes back.
    fn change_job_or_class(&mut self) {
        if !self.has_optional {
            return;
        }
        if self.dice.once_in(2) {
            let jobs: Vec<ObjectKey> = self.server.jobs.keys().cloned().collect();
            if let Some(job) = self.dice.pick(&jobs) {
                self.tally.count(Deed::JobGone);
                self.server.delete_job(&job);
            }
        } else if self.server.toggle_class(self.dice.below(2) as i32) {
            self.tally.count(Deed::ClassGone);
        }
    }

    /// A user moves a group to another composite, or to none.
    fn move_group(&mut self) {
        let movable = |(key, group): (&ObjectKey, &SimGroup)| {
            (!group.by_class && !self.server.job_of_group.contains_key(key)).then(|| key.clone())
        };
        let groups: Vec<ObjectKey> = self.server.groups.iter().filter_map(movable).collect();
        let mut parents: Vec<Option<ObjectKey>> = self.server.composites.keys().cloned().map(Some).collect();
        parents.push(None);
        if let (Some(group), Some(parent)) = (self.dice.pick(&groups), self.dice.pick(&parents))
            && self.server.set_parent(&group, parent)
        {
            self.tally.count(Deed::Move);
        }
    }

    /// A composite of some groups and, now and then, of another composite, of which some must start together.
    fn add_tree(&mut self) {
        let (root, inner) = (format!("c{}", self.serial), format!("c{}i", self.serial));
        let priority = self.dice.below(2) as i32;
        let (children, within) = (1 + self.dice.below(3), self.dice.below(3));
        let all = children + u64::from(within > 0);
        let minimum = 1 + self.dice.below(all) as u32;
        let draft = self.draft(root.clone(), None, gang(minimum), priority);
        self.server.set_composite(draft, self.now);
        for index in 0..children {
            self.add_child(&root, index, 3, priority);
        }
        if within > 0 {
            let minimum = 1 + self.dice.below(within) as u32;
            let draft = self.draft(inner.clone(), Some(&root), gang(minimum), priority);
            self.server.set_composite(draft, self.now);
        }
        for index in 0..within {
            self.add_child(&inner, index, 2, priority);
        }
    }

    fn add_child(&mut self, parent: &str, index: u64, minimum_max: u64, priority: i32) {
        let minimum = 1 + self.dice.below(minimum_max) as u32;
        let policy = if self.dice.once_in(6) { Policy::Basic } else { gang(minimum) };
        let draft = self.draft(format!("{parent}g{index}"), Some(parent), policy, priority);
        self.add_group(draft);
    }

    fn add_single(&mut self) {
        let like = Pod { priority: self.dice.below(3) as i32, ..self.new_pod() };
        let controlled = !self.dice.once_in(2);
        self.add_pod(&format!("p{}", self.serial), &like, controlled);
    }

    /// A pod that somebody could want; most want nothing special.
    fn new_pod(&mut self) -> Pod {
        let mut pod = Pod { requests: cpu(1 + self.dice.below(2) as i64), ..Pod::new(key("like"), "") };
        match self.dice.below(12) {
            0 | 1 => pod.affinity.selector = zone_labels(ZONES[self.dice.below(2) as usize]),
            2 => pod.tolerations.push(Toleration {
                key: TAINT.into(),
                operator: TolerationOperator::Exists,
                value: "".into(),
                effect: None,
            }),
            3 => pod.gates.push("later".into()),
            4..=6 if self.has_storage => {
                let class = if self.dice.once_in(3) { LOCAL } else { MADE };
                pod.volume_claims.push(VolumeUse { claim: class.into(), own: false });
            }
            _ => {}
        }
        pod
    }

    /// Makes a pod, and what it needs for itself. Where the pattern names a class, it gets a claim of that class.
    fn add_pod(&mut self, name: &str, like: &Pod, controlled: bool) {
        let mut pod = like.clone();
        for used in &mut pod.volume_claims {
            let class = std::mem::replace(&mut used.claim, format!("of-{name}").into());
            self.server.add_claim(&used.claim, &class);
            if &*class == LOCAL {
                let zone = ZONES[self.dice.below(2) as usize];
                self.server.add_volume(&format!("local-{name}"), LOCAL, zone, None);
            }
        }
        self.server.add_pod(name, &pod, controlled, self.now);
    }

    // --- what is changed and taken back ------------------------------------------------------------------

    fn with_pod(&mut self, act: impl FnOnce(&mut Self, &ObjectKey)) {
        let pods: Vec<ObjectKey> = self.server.pods.keys().cloned().collect();
        if let Some(pod) = self.dice.pick(&pods) {
            act(self, &pod);
        }
    }

    /// Nothing holds a pod and those of its group back any more.
    fn open_gates(&mut self, pod: &ObjectKey) {
        let Some(group) = self.server.pods.get(pod).map(|found| found.pod.group.clone()) else {
            return;
        };
        let of_group =
            |key: &ObjectKey, other: &Pod| *key == *pod || (group.is_some() && other.group == group);
        let gated = self
            .server
            .pods
            .iter()
            .filter(|(key, other)| !other.pod.gates.is_empty() && of_group(key, &other.pod));
        let gated: Vec<_> = gated.map(|(key, other)| (key.clone(), other.pod.uid.clone())).collect();
        for (key, uid) in gated {
            self.server.change_pod(&key, &uid, |pod| pod.pod.gates.clear());
        }
    }

    fn change_policy(&mut self) {
        let groups: Vec<ObjectKey> = self.server.groups.keys().cloned().collect();
        if let Some(group) = self.dice.pick(&groups) {
            let policy = self.new_policy();
            self.tally.count(Deed::NewPolicy);
            self.server.set_policy(&group, policy);
        }
    }

    fn new_policy(&mut self) -> Policy {
        let minimum = 1 + self.dice.below(5) as u32;
        if self.dice.once_in(6) { Policy::Basic } else { gang(minimum) }
    }

    fn replace_group(&mut self) {
        let groups: Vec<ObjectKey> = self.server.groups.keys().cloned().collect();
        if let Some(group) = self.dice.pick(&groups)
            && let Some(found) = self.server.groups.get(&group).map(|found| found.group.clone())
        {
            self.tally.count(Deed::NewGroup);
            let by_class = self.server.groups.get(&group).is_some_and(|group| group.by_class);
            self.server.delete_group(&group);
            let policy = self.new_policy();
            let draft = self.draft(group.name.to_string(), None, policy, found.priority.unwrap_or(0));
            self.server.set_group(Draft { parent: found.parent, by_class, ..draft }, self.now);
        }
    }

    /// Somebody deletes a composite, and mostly makes it again with another minimum.
    fn replace_composite(&mut self) {
        let composites: Vec<ObjectKey> = self.server.composites.keys().cloned().collect();
        let Some(composite) = self.dice.pick(&composites) else {
            return;
        };
        let found = self.server.composites.get(&composite).map(|found| found.group.clone());
        self.tally.count(Deed::NewComposite);
        self.server.delete_composite(&composite);
        if let Some(found) = found.filter(|_| !self.dice.once_in(4)) {
            let policy = gang(1 + self.dice.below(3) as u32);
            let draft = self.draft(composite.name.to_string(), None, policy, found.priority.unwrap_or(0));
            self.server.set_composite(Draft { parent: found.parent, ..draft }, self.now);
        }
    }
}

fn gang(minimum: u32) -> Policy {
    Policy::Gang { min_count: NonZeroU32::new(minimum).unwrap_or(NonZeroU32::MIN) }
}
