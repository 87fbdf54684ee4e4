//! Volumes.

use super::{Modes, OLD_CLASS, read_block, read_modes, read_size, read_text};
use crate::error::{ObjectError, ObjectKind, Problems};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::resources::Amounts;
use crate::selector::{SelectorView, read_terms, text};
use crate::view::{Kind, Names, View};
use kube::core::ClusterResourceScope;
use tutti_model::{ClaimRef, Disk, ModelError, NodeSelectorTerm, ObjectKey, Text, Volume};

/// A volume, as far as scheduling reads it.
pub type VolumeView = View<VolumeKind>;

/// Marks views of volumes.
#[derive(Debug, Clone)]
pub struct VolumeKind;

impl Kind for VolumeKind {
    type Spec = VolumeSpecView;
    type Status = VolumeStatusView;
    type Dynamic = ();
    type Scope = ClusterResourceScope;

    fn names(_: &()) -> Names<'_> {
        Names { group: "", version: "v1", kind: "PersistentVolume", plural: "persistentvolumes" }
    }
}

/// `spec`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeSpecView {
    capacity: Amounts,
    access_modes: Modes,
    claim_ref: Lenient<ClaimRefView>,
    storage_class_name: Lenient<String>,
    volume_mode: Lenient<String>,
    volume_attributes_class_name: Lenient<String>,
    node_affinity: Lenient<AffinityView>,
    csi: Lenient<CsiView>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct ClaimRefView {
    namespace: Lenient<String>,
    name: Lenient<String>,
    uid: Lenient<String>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct AffinityView {
    required: Lenient<SelectorView>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CsiView {
    driver: Lenient<String>,
    volume_handle: Lenient<String>,
}

/// `status`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct VolumeStatusView {
    phase: Lenient<String>,
}

macro_rules! objects {
    ($($name:ty),*) => { $(impl Shaped for $name { const SHAPE: Shape = Shape::Object; })* };
}
objects!(VolumeSpecView, ClaimRefView, AffinityView, CsiView, VolumeStatusView);

/// What was understood of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeReading {
    /// The volume. With errors it is good for its name only.
    pub volume: Volume,
    /// Identity over time.
    pub uid: Text,
    /// Resource version.
    pub version: Text,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl VolumeView {
    /// The volume in our terms.
    pub fn read(&self) -> VolumeReading {
        let mut problems = self.problems();
        let key = self.key();
        let no_spec = VolumeSpecView::default();
        let spec = problems.or_default(self.spec.at("spec")).unwrap_or(&no_spec);
        let no_status = VolumeStatusView::default();
        let status = problems.or_default(self.status.at("status")).unwrap_or(&no_status);
        let class = match self.annotation(OLD_CLASS) {
            Some(class) => class.into(),
            None => read_text(&spec.storage_class_name, "spec.storageClassName", &mut problems),
        };
        let volume = Volume {
            name: key.name.clone(),
            class,
            size: read_size(&spec.capacity, "spec.capacity", &mut problems),
            modes: problems.or_default(read_modes(&spec.access_modes)),
            block: problems.or_default(read_block(&spec.volume_mode)),
            attributes_class: read_text(
                &spec.volume_attributes_class_name,
                "spec.volumeAttributesClassName",
                &mut problems,
            ),
            affinity: problems.or_default(read_reach(&spec.node_affinity)),
            labels: self.labels(),
            claim: read_claim(&spec.claim_ref, &mut problems),
            disk: read_disk(&spec.csi, &mut problems),
            available: problems.or_default(text(&status.phase, "status.phase")) == "Available",
            terminating: self.metadata.deletion_timestamp.is_some(),
        };
        let errors = problems.into_errors(ObjectKind::Volume, &key);
        VolumeReading { volume, uid: self.uid(), version: self.version(), errors }
    }
}

fn read_reach(view: &Lenient<AffinityView>) -> Result<Option<Vec<NodeSelectorTerm>>, ModelError> {
    let Some(affinity) = view.at("spec.nodeAffinity")? else { return Ok(None) };
    let field = "spec.nodeAffinity.required";
    affinity.required.at(field)?.map(|required| read_terms(required, field)).transpose()
}

fn read_claim(view: &Lenient<ClaimRefView>, problems: &mut Problems) -> Option<ClaimRef> {
    let view = problems.or_default(view.at("spec.claimRef"))?;
    let namespace = read_text(&view.namespace, "spec.claimRef.namespace", problems);
    let name = read_text(&view.name, "spec.claimRef.name", problems);
    let uid = super::named(read_text(&view.uid, "spec.claimRef.uid", problems));
    Some(ClaimRef { key: ObjectKey::new(namespace, name), uid })
}

fn read_disk(view: &Lenient<CsiView>, problems: &mut Problems) -> Option<Disk> {
    let view = problems.or_default(view.at("spec.csi"))?;
    let driver = read_text(&view.driver, "spec.csi.driver", problems);
    Some(Disk { driver, handle: read_text(&view.volume_handle, "spec.csi.volumeHandle", problems) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_volume_is_read_with_all_that_scheduling_needs() {
        let view: VolumeView = serde_json::from_value(json!({
            "metadata": {"name": "v", "uid": "u", "labels": {"topology.kubernetes.io/zone": "a"}},
            "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "claimRef": {"namespace": "a", "name": "c", "uid": "cu"},
                "csi": {"driver": "d", "volumeHandle": "h"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "host", "operator": "In", "values": ["n"]}]}]}},
            },
            "status": {"phase": "Available"},
        }))
        .unwrap();
        let reading = view.read();
        assert_eq!(reading.errors, []);
        let volume = reading.volume;
        assert_eq!((volume.size, volume.available), (10 << 30, true));
        assert_eq!(volume.claim.unwrap().uid.as_deref(), Some("cu"));
        assert_eq!(volume.disk.unwrap().handle.as_ref(), "h");
        let labels = |value: &'static str| [("host", value)].into_iter().collect();
        let reached = |value| volume.affinity.as_ref().unwrap().iter().any(|t| t.matches("", &labels(value)));
        assert!(reached("n") && !reached("m"));
    }

    #[test]
    fn a_volume_whose_reach_is_not_understood_says_so() {
        let view: VolumeView = serde_json::from_value(json!({
            "metadata": {"name": "v", "uid": "u"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "host", "operator": "Near"}]}]}}},
        }))
        .unwrap();
        let message = view.read().errors[0].to_string();
        assert!(
            message.starts_with("persistent volume v: spec.nodeAffinity.required.nodeSelectorTerms[0]."),
            "{message}"
        );
    }
}
