//! The words for storage: classes, volumes, claims, and what nodes can attach.

use super::{key, node_term, number};
use crate::error::ModelError;
use crate::{
    AccessMode, ClaimRef, Disk, LabelSelector, Quantity, Storage, StorageClass, Text, Volume, VolumeClaim,
    VolumeUse,
};

/// `class NAME …`.
pub(super) fn class(name: &str, words: &[&str]) -> Result<StorageClass, ModelError> {
    let mut class = StorageClass { name: name.into(), ..StorageClass::default() };
    for word in words {
        if *word == "wait" {
            class.waits = true;
        } else if let Some(provisioner) = word.strip_prefix("provisioner=") {
            class.provisioner = Some(provisioner.into());
        } else if let Some(text) = word.strip_prefix("allow:") {
            class.topologies.push(node_term(text, word)?);
        } else {
            return Err(ModelError::new(*word, "want wait, provisioner=NAME or allow:LABEL=VALUE"));
        }
    }
    Ok(class)
}

/// `volume NAME …`.
pub(super) fn volume(name: &str, words: &[&str]) -> Result<Volume, ModelError> {
    let mut volume = Volume { name: name.into(), available: true, ..Volume::default() };
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for word in words {
        if let Some(text) = word.strip_prefix("reach:") {
            volume.affinity.get_or_insert_default().push(node_term(text, word)?);
        } else if let Some(pair) = word.strip_prefix("label:") {
            labels.push(pair.split_once('=').unwrap_or((pair, "")));
        } else if let Some(text) = word.strip_prefix("disk:") {
            let (driver, handle) = text.split_once('=').unwrap_or((text, name));
            volume.disk = Some(Disk { driver: driver.into(), handle: handle.into() });
        } else {
            match word.split_once('=') {
                None if *word == "block" => volume.block = true,
                None if *word == "released" => volume.available = false,
                None if *word == "terminating" => volume.terminating = true,
                Some(("class", class)) => volume.class = class.into(),
                Some(("size", text)) => volume.size = size(text, word)?,
                Some(("mode", text)) => volume.modes.push(mode(text, word)?),
                Some(("claim", name)) => volume.claim = Some(kept_for(name)),
                _ => return Err(ModelError::new(*word, "is not a word about volumes")),
            }
        }
    }
    volume.labels = labels.into_iter().collect();
    volume.modes = modes(volume.modes);
    Ok(volume)
}

/// `claim NAME …`.
pub(super) fn claim(name: &str, words: &[&str]) -> Result<VolumeClaim, ModelError> {
    let mut claim = VolumeClaim { modes: Vec::new(), ..VolumeClaim::new(key(name), uid(name)) };
    for word in words {
        if let Some(pair) = word.strip_prefix("select:") {
            let pair = pair.split_once('=').unwrap_or((pair, ""));
            claim.selector = Some(LabelSelector::of_labels([pair]));
            continue;
        }
        match word.split_once('=') {
            None if *word == "block" => claim.block = true,
            None if *word == "lost" => claim.lost = true,
            None if *word == "terminating" => claim.terminating = true,
            Some(("class", class)) => claim.class = class.into(),
            Some(("size", text)) => claim.size = size(text, word)?,
            Some(("mode", text)) => claim.modes.push(mode(text, word)?),
            Some(("names", volume)) => claim.volume = Some(volume.into()),
            Some(("bound", volume)) => {
                claim.volume = Some(volume.into());
                claim.bound = true;
            }
            Some(("selected", node)) => claim.selected_node = Some(node.into()),
            Some(("owner", pod)) => claim.owner = Some(uid(pod)),
            _ => return Err(ModelError::new(*word, "is not a word about claims")),
        }
    }
    claim.modes = modes(claim.modes);
    Ok(claim)
}

/// `attach:DRIVER=N` on a node, without the first word.
pub(super) fn limit(text: &str, word: &str) -> Result<(Text, u32), ModelError> {
    let (driver, most) =
        text.split_once('=').ok_or_else(|| ModelError::new(word, "want attach:DRIVER=N on a node"))?;
    Ok((driver.into(), number(most, word)?))
}

/// `claim:NAME` or `own-claim:NAME` on a pod; a `*` in the name is the number of the copy.
pub(super) fn uses(name: &str, own: bool) -> VolumeUse {
    VolumeUse { claim: name.into(), own }
}

/// What a copy of a pod uses.
pub(super) fn uses_of_copy(uses: &[VolumeUse], copy: u32) -> Vec<VolumeUse> {
    let numbered = |using: &VolumeUse| VolumeUse {
        claim: using.claim.replace('*', &copy.to_string()).into(),
        own: using.own,
    };
    uses.iter().map(numbered).collect()
}

/// A volume that a claim is bound to is kept for that claim.
pub(super) fn link(storage: &mut Storage) {
    for claim in storage.claims.iter().filter(|claim| claim.bound) {
        let named = |volume: &&mut Volume| Some(&volume.name) == claim.volume.as_ref();
        if let Some(volume) = storage.volumes.iter_mut().find(named) {
            volume.claim = Some(kept_for(&claim.key.name));
            volume.available = false;
        }
    }
}

fn kept_for(name: &str) -> ClaimRef {
    ClaimRef { key: key(name), uid: Some(uid(name)) }
}

fn uid(name: &str) -> Text {
    Text::from(format!("uid-{name}"))
}

fn size(text: &str, word: &str) -> Result<i64, ModelError> {
    let size: Quantity = text.parse().map_err(|error: ModelError| error.within(word))?;
    Ok(size.value_ceil())
}

fn mode(text: &str, word: &str) -> Result<AccessMode, ModelError> {
    match text {
        "RWO" => Ok(AccessMode::ReadWriteOnce),
        "ROX" => Ok(AccessMode::ReadOnlyMany),
        "RWX" => Ok(AccessMode::ReadWriteMany),
        "RWOP" => Ok(AccessMode::ReadWriteOncePod),
        _ => Err(ModelError::new(word, "want the mode RWO, ROX, RWX or RWOP")),
    }
}

/// Sorted, each once; `RWO` if none was named.
fn modes(mut modes: Vec<AccessMode>) -> Vec<AccessMode> {
    if modes.is_empty() {
        modes.push(AccessMode::ReadWriteOnce);
    }
    modes.sort_unstable();
    modes.dedup();
    modes
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::*;

    #[test]
    fn storage_reads_as_it_is_documented() {
        let scenario = Scenario::parse(
            "class  local wait
             class  fast  wait provisioner=ebs allow:zone=a allow:zone=b
             volume v x2  class=local size=10Gi reach:host=a disk:ebs
             volume w     class=local size=1Gi mode=RWO mode=ROX label:zone=a
             claim  data x2 class=local size=5Gi
             claim  one   mode=RWOP bound=w
             node   n     attach:ebs=2
             pod    p x2  claim:data-* own-claim:p-*-scratch",
        )
        .unwrap();
        let Storage { classes, volumes, claims, limits } = &scenario.storage;
        assert_eq!((classes[0].provisioner.is_none(), classes[1].topologies.len()), (true, 2));
        assert_eq!(volumes[1].disk.as_ref().map(|disk| disk.handle.as_ref()), Some("v-1"));
        assert!(volumes[0].suits(&claims[1]) && volumes[0].affinity.is_some());
        assert!(claims[2].is_exclusive() && volumes[2].is_kept_for(&claims[2]) && !volumes[2].available);
        assert_eq!(limits[0].limits.get("ebs"), Some(&2));
        let names: Vec<(&str, bool)> =
            scenario.pods[1].volume_claims.iter().map(|using| (using.claim.as_ref(), using.own)).collect();
        assert_eq!(names, [("data-1", false), ("p-1-scratch", true)]);
    }

    #[test]
    fn an_error_about_storage_names_the_word() {
        for (text, message) in [
            ("class c waits", "line 1.waits: want wait, provisioner=NAME or allow:LABEL=VALUE"),
            ("volume v mode=all", "line 1.mode=all: want the mode RWO, ROX, RWX or RWOP"),
            ("claim c large", "line 1.large: is not a word about claims"),
            ("node n attach:ebs", "line 1.attach:ebs: want attach:DRIVER=N on a node"),
        ] {
            let error = Scenario::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text:?} gives {error:?}");
        }
    }
}
