//! Volume claims.

use super::{
    BIND_COMPLETED, Modes, OLD_CLASS, SELECTED_NODE, named, read_block, read_modes, read_size, read_text,
};
use crate::error::{ObjectError, ObjectKind};
use crate::inter_pod::{LabelSelectorView, read_selector};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::resources::Requirements;
use crate::selector::text;
use crate::view::{Kind, Names, View};
use kube::core::NamespaceResourceScope;
use tutti_model::{Text, VolumeClaim};

/// A volume claim, as far as scheduling reads it.
pub type ClaimView = View<ClaimKind>;

/// Marks views of volume claims.
#[derive(Debug, Clone)]
pub struct ClaimKind;

impl Kind for ClaimKind {
    type Spec = ClaimSpecView;
    type Status = ClaimStatusView;
    type Dynamic = ();
    type Scope = NamespaceResourceScope;

    fn names(_: &()) -> Names<'_> {
        Names { group: "", version: "v1", kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims" }
    }
}

/// `spec`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSpecView {
    access_modes: Modes,
    resources: Lenient<Requirements>,
    storage_class_name: Lenient<String>,
    volume_name: Lenient<String>,
    volume_mode: Lenient<String>,
    volume_attributes_class_name: Lenient<String>,
    selector: Lenient<LabelSelectorView>,
}

/// `status`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct ClaimStatusView {
    phase: Lenient<String>,
}

impl Shaped for ClaimSpecView {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for ClaimStatusView {
    const SHAPE: Shape = Shape::Object;
}

/// What was understood of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimReading {
    /// The claim. With errors it is good for its name only.
    pub claim: VolumeClaim,
    /// Resource version.
    pub version: Text,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl ClaimView {
    /// The claim in our terms.
    pub fn read(&self) -> ClaimReading {
        let mut problems = self.problems();
        let key = self.key();
        let no_spec = ClaimSpecView::default();
        let spec = problems.or_default(self.spec.at("spec")).unwrap_or(&no_spec);
        let no_status = ClaimStatusView::default();
        let status = problems.or_default(self.status.at("status")).unwrap_or(&no_status);
        let class = match self.annotation(OLD_CLASS) {
            Some(class) => class.into(),
            None => read_text(&spec.storage_class_name, "spec.storageClassName", &mut problems),
        };
        let requests = problems.or_default(spec.resources.at("spec.resources"));
        let size = requests
            .map_or(0, |resources| read_size(&resources.requests, "spec.resources.requests", &mut problems));
        let volume = named(read_text(&spec.volume_name, "spec.volumeName", &mut problems));
        let claim = VolumeClaim {
            uid: self.uid(),
            class,
            size,
            modes: problems.or_default(read_modes(&spec.access_modes)),
            block: problems.or_default(read_block(&spec.volume_mode)),
            attributes_class: read_text(
                &spec.volume_attributes_class_name,
                "spec.volumeAttributesClassName",
                &mut problems,
            ),
            selector: problems.or_default(read_selector(&spec.selector, "spec.selector")),
            bound: volume.is_some() && self.annotation(BIND_COMPLETED).is_some(),
            volume,
            selected_node: self.annotation(SELECTED_NODE).map(Text::from),
            lost: problems.or_default(text(&status.phase, "status.phase")) == "Lost",
            terminating: self.metadata.deletion_timestamp.is_some(),
            owner: self.controller_uid(),
            key: key.clone(),
        };
        let errors = problems.into_errors(ObjectKind::Claim, &key);
        ClaimReading { claim, version: self.version(), errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tutti_model::AccessMode;

    fn read(mut metadata: Value, spec: &Value, phase: &str) -> ClaimReading {
        metadata["name"] = json!("c");
        metadata["namespace"] = json!("a");
        metadata["uid"] = json!("u");
        let object = json!({"metadata": metadata, "spec": spec, "status": {"phase": phase}});
        serde_json::from_value::<ClaimView>(object).unwrap().read()
    }

    #[test]
    fn a_claim_is_read_with_all_that_scheduling_needs() {
        let annotations = json!({"pv.kubernetes.io/bind-completed": "yes",
                                 "volume.kubernetes.io/selected-node": "n", "other": "skipped"});
        let owner = json!([{"kind": "Pod", "uid": "pod-uid", "controller": true}]);
        let reading = read(
            json!({"annotations": annotations, "ownerReferences": owner}),
            &json!({"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "5Gi"}},
                   "storageClassName": "fast", "volumeName": "v", "volumeMode": "Block",
                   "selector": {"matchLabels": {"disk": "ssd"}}}),
            "Bound",
        );
        assert_eq!(reading.errors, []);
        let claim = reading.claim;
        assert_eq!((claim.size, claim.block, claim.lost), (5 << 30, true, false));
        assert_eq!(claim.modes, [AccessMode::ReadWriteOncePod]);
        assert_eq!(claim.bound_volume().map(AsRef::as_ref), Some("v"));
        assert_eq!(claim.selected_node.as_deref(), Some("n"));
        assert_eq!(claim.owner.as_deref(), Some("pod-uid"));
        assert!(claim.selector.is_some());
    }

    #[test]
    fn a_volume_that_is_only_named_is_not_bound_and_the_older_class_counts() {
        let old = json!({"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}});
        let reading = read(old, &json!({"volumeName": "v", "storageClassName": "new"}), "Lost");
        assert_eq!((reading.claim.bound_volume(), reading.claim.lost), (None, true));
        assert_eq!(reading.claim.class.as_ref(), "old");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let reading = read(json!({}), &json!({"accessModes": ["Sometimes"], "volumeMode": 5}), "");
        let errors: Vec<String> = reading.errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "persistent volume claim a/c: spec.accessModes[0]: \"Sometimes\" is not known",
                "persistent volume claim a/c: spec.volumeMode: want text, found 5"
            ]
        );
    }
}
