//! Storage as tests keep it: changed, and bound as the cluster's controllers would.

use tutti_engine::ClaimPlan;
use tutti_model::{ClaimRef, Disk, ObjectKey, Storage, Text, Volume, VolumeClaim};

/// Adds what is new and replaces what has changed.
pub(crate) fn merge(known: &mut Storage, more: &Storage) {
    known.classes.retain(|old| more.classes.iter().all(|new| new.name != old.name));
    known.classes.extend(more.classes.iter().cloned());
    known.volumes.retain(|old| more.volumes.iter().all(|new| new.name != old.name));
    known.volumes.extend(more.volumes.iter().cloned());
    known.claims.retain(|old| more.claims.iter().all(|new| new.key != old.key));
    known.claims.extend(more.claims.iter().cloned());
    known.limits.retain(|old| more.limits.iter().all(|new| new.node != old.node));
    known.limits.extend(more.limits.iter().cloned());
}

/// Claims and volumes as they are once plans were carried out.
pub(crate) fn bound(known: &Storage, plans: &[(ObjectKey, ClaimPlan)]) -> Storage {
    let mut after = Storage::default();
    for (key, plan) in plans {
        let claim = known.claims.iter().find(|claim| claim.key == *key);
        let claim = claim.unwrap_or_else(|| panic!("a plan for {key}, which does not exist"));
        let kept = Some(ClaimRef { key: key.clone(), uid: Some(claim.uid.clone()) });
        let volume = match plan {
            ClaimPlan::Volume(name) => {
                let volume = known.volumes.iter().find(|volume| volume.name == *name);
                let volume = volume.unwrap_or_else(|| panic!("a plan with {name}, which does not exist"));
                Volume { claim: kept, available: false, ..volume.clone() }
            }
            ClaimPlan::Provision(_) => {
                let class = known.classes.iter().find(|class| class.name == claim.class);
                let driver = class.and_then(|class| class.provisioner.clone()).unwrap_or_default();
                let name = Text::from(format!("made-for-{}", key.name));
                let disk = Some(Disk { driver, handle: name.clone() });
                Volume { name, claim: kept, disk, class: claim.class.clone(), ..Volume::default() }
            }
        };
        let name = Some(volume.name.clone());
        after.claims.push(VolumeClaim { volume: name, bound: true, ..claim.clone() });
        after.volumes.push(volume);
    }
    after
}
