//! The rules about volumes: claims that are ready, volumes within reach, attach limits, claims for one pod only, and
//! a volume for every claim that has none yet.

use std::collections::BTreeSet;
use tutti_model::{Disk, Node, ObjectKey, Pod, Storage, StorageClass, Text, Volume, VolumeClaim, VolumeUse};

/// What is wrong with the volumes of a final state in which `placed` were put beside `running`. More pods can never
/// mend it.
pub fn volume_violations(nodes: &[Node], storage: &Storage, running: &[Pod], placed: &[Pod]) -> Vec<String> {
    let there = |pod: &&Pod| pod.node.is_some() && !pod.phase.is_terminal();
    let everybody = running.iter().chain(placed).filter(there).collect();
    let scene = Scene { nodes, storage, everybody, placed };
    let mut wrong = Vec::new();
    for pod in placed {
        let Some(node) = scene.node_of(pod) else { continue };
        for using in &pod.volume_claims {
            if let Some(why) = scene.wrong_with(pod, using, node) {
                wrong.push(format!("claim {} of {} {why}", using.claim, pod.key));
            }
        }
        wrong.extend(scene.attached(pod, node));
    }
    if wrong.is_empty() && !scene.volumes_are_enough() {
        wrong.push("there are too few volumes for the claims of the placed pods".to_owned());
    }
    wrong
}

struct Scene<'a> {
    nodes: &'a [Node],
    storage: &'a Storage,
    everybody: Vec<&'a Pod>,
    placed: &'a [Pod],
}

impl<'a> Scene<'a> {
    fn node_of(&self, pod: &Pod) -> Option<&'a Node> {
        self.nodes.iter().find(|node| Some(&node.name) == pod.node.as_ref())
    }

    fn claim(&self, pod: &Pod, using: &VolumeUse) -> Option<&'a VolumeClaim> {
        let is_it =
            |claim: &&VolumeClaim| claim.key.namespace == pod.key.namespace && claim.key.name == using.claim;
        self.storage.claims.iter().find(is_it)
    }

    fn volume(&self, name: &Text) -> Option<&'a Volume> {
        self.storage.volumes.iter().find(|volume| volume.name == *name)
    }

    fn class(&self, claim: &VolumeClaim) -> Option<&'a StorageClass> {
        self.storage.classes.iter().find(|class| class.name == claim.class)
    }

    fn wrong_with(&self, pod: &Pod, using: &VolumeUse, node: &Node) -> Option<String> {
        let Some(claim) = self.claim(pod, using) else { return Some("does not exist".to_owned()) };
        if using.own && claim.owner.as_ref() != Some(&pod.uid) {
            return Some("belongs to another pod".to_owned());
        }
        if claim.lost || claim.terminating {
            return Some("is on its way out".to_owned());
        }
        let is_user = |other: &&&Pod| {
            other.key != pod.key
                && other.key.namespace == pod.key.namespace
                && other.volume_claims.iter().any(|other| other.claim == using.claim)
        };
        if claim.is_exclusive() && self.everybody.iter().any(|other| is_user(&other)) {
            return Some("is for one pod and used by two".to_owned());
        }
        match &claim.volume {
            Some(name) if claim.bound => match self.volume(name) {
                None => Some("is bound to nothing".to_owned()),
                Some(volume) => (!reaches(volume, node)).then(|| "is out of reach".to_owned()),
            },
            Some(_) => Some("is not bound to what it names".to_owned()),
            None => match self.class(claim) {
                Some(class) if class.waits => {
                    let selected = claim.selected_node.as_ref()?;
                    let fits = *selected == node.name && class.provisions_for(&node.labels);
                    (!fits).then(|| format!("is being made for {selected}"))
                }
                _ => Some("should have been bound before".to_owned()),
            },
        }
    }

    fn disks(&self, pod: &Pod) -> BTreeSet<Disk> {
        let disk = |using: &VolumeUse| {
            let claim = self.claim(pod, using)?;
            match claim.volume.as_ref().and_then(|name| self.volume(name)) {
                Some(volume) => volume.disk.clone(),
                None => {
                    let driver = self.class(claim)?.provisioner.clone()?;
                    Some(Disk { driver, handle: format!("for {}", claim.key).into() })
                }
            }
        };
        pod.volume_claims.iter().filter_map(disk).collect()
    }

    /// Disks that a pod brings to a node beyond what the node can attach.
    fn attached(&self, pod: &Pod, node: &Node) -> Option<String> {
        let limits = &self.storage.limits.iter().find(|limits| limits.node == node.name)?.limits;
        let here = || self.everybody.iter().filter(|other| other.node == pod.node);
        let is_new = |other: &Pod| self.placed.iter().any(|placed| placed.key == other.key);
        let before: BTreeSet<Disk> =
            here().filter(|other| !is_new(other)).flat_map(|other| self.disks(other)).collect();
        let after: BTreeSet<Disk> = here().flat_map(|other| self.disks(other)).collect();
        let over = self.disks(pod).into_iter().find(|disk| {
            let count = after.iter().filter(|other| other.driver == disk.driver).count();
            let is_over = limits.get(&disk.driver).is_some_and(|&most| count > most as usize);
            is_over && !before.contains(disk)
        })?;
        Some(format!("{} cannot attach {} for {}", node.name, over.handle, pod.key))
    }

    /// True if every claim without a volume can be given one, each its own, or have one made.
    fn volumes_are_enough(&self) -> bool {
        let mut asking: Vec<(&VolumeClaim, Vec<&Node>)> = Vec::new();
        for pod in self.placed {
            let Some(node) = self.node_of(pod) else { continue };
            for claim in pod.volume_claims.iter().filter_map(|using| self.claim(pod, using)) {
                if claim.volume.is_some() || claim.selected_node.is_some() {
                    continue;
                }
                match asking.iter_mut().find(|(other, _)| other.key == claim.key) {
                    Some((_, nodes)) => nodes.push(node),
                    None => asking.push((claim, vec![node])),
                }
            }
        }
        self.serve(&asking, &mut BTreeSet::new())
    }

    fn serve(&self, asking: &[(&'a VolumeClaim, Vec<&'a Node>)], taken: &mut BTreeSet<&'a Text>) -> bool {
        let [(claim, nodes), rest @ ..] = asking else { return true };
        let kept = |volume: &&Volume| volume.is_kept_for(claim) && volume.suits(claim);
        let is_kept = self.storage.volumes.iter().any(|volume| kept(&volume));
        let made = |node: &&Node| self.class(claim).is_some_and(|class| class.provisions_for(&node.labels));
        if !is_kept && nodes.iter().all(made) && self.serve(rest, taken) {
            return true;
        }
        for volume in &self.storage.volumes {
            let others_name_it =
                self.storage.claims.iter().any(|other| names(other, &volume.name, &claim.key));
            if !volume.suits(claim)
                || (is_kept && !volume.is_kept_for(claim))
                || others_name_it
                || !nodes.iter().all(|node| reaches(volume, node))
                || !taken.insert(&volume.name)
            {
                continue;
            }
            if self.serve(rest, taken) {
                return true;
            }
            taken.remove(&volume.name);
        }
        false
    }
}

fn names(other: &VolumeClaim, volume: &Text, own: &ObjectKey) -> bool {
    other.volume.as_ref() == Some(volume) && other.key != *own
}

/// Affinity, and labels of zones and regions: a node that has any of them must have the volume's.
fn reaches(volume: &Volume, node: &Node) -> bool {
    let (beta, stable) = ("failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/");
    let keys: Vec<String> = [beta, stable]
        .iter()
        .flat_map(|prefix| ["zone", "region"].map(|what| format!("{prefix}{what}")))
        .collect();
    if !volume.is_reached_from(&node.labels) {
        return false;
    }
    if keys.iter().all(|key| node.labels.get(key).is_none()) {
        return true;
    }
    keys.iter().all(|key| {
        let Some(wanted) = volume.labels.get(key) else { return true };
        let wanted: Vec<&str> = wanted.split("__").map(str::trim).collect();
        let found = node.labels.get(key).or_else(|| node.labels.get(&key.replace(beta, stable)));
        wanted.contains(&"") || found.is_some_and(|found| wanted.contains(&found))
    })
}
