//! What a pod or group needs beyond amounts: device claims and volume claims, and whether it may preempt.

use crate::lenient::{Lenient, Shape, Shaped};
use crate::pod_spec::{PodSpecView, VolumeView};
use crate::selector::{read_each, text};
use tutti_model::{ClaimSource, GroupClaim, ModelError, ObjectKey, Preemption, Text, VolumeUse};

/// One of a group's `resourceClaims`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct GroupClaimView {
    name: Lenient<String>,
    resource_claim_name: Lenient<String>,
    resource_claim_template_name: Lenient<String>,
}

impl Shaped for GroupClaimView {
    const SHAPE: Shape = Shape::Object;
}

/// The names under which a pod's containers refer to devices.
pub(crate) fn read_device_claims(spec: &PodSpecView) -> Result<Vec<Text>, ModelError> {
    const FIELD: &str = "spec.resourceClaims";
    let list = spec.resource_claims.at(FIELD)?.map_or(&[][..], Vec::as_slice);
    read_each(list, |claim| text(&claim.name, "name").map(Text::from)).map_err(|error| error.within(FIELD))
}

/// The volume claims that a pod uses, those that are made for it included.
pub(crate) fn read_volume_claims(spec: &PodSpecView, pod: &ObjectKey) -> Result<Vec<VolumeUse>, ModelError> {
    const FIELD: &str = "spec.volumes";
    let list = spec.volumes.at(FIELD)?.map_or(&[][..], Vec::as_slice);
    let claim = |volume: &VolumeView| {
        if let Some(claim) = volume.persistent_volume_claim.at("persistentVolumeClaim")? {
            let name = text(&claim.claim_name, "claimName").map_err(|e| e.within("persistentVolumeClaim"))?;
            return Ok(Some(VolumeUse { claim: name.into(), own: false }));
        }
        if volume.ephemeral.is_present() {
            let name = format!("{}-{}", pod.name, text(&volume.name, "name")?);
            return Ok(Some(VolumeUse { claim: name.into(), own: true }));
        }
        Ok(None)
    };
    let claims = read_each(list, claim).map_err(|error| error.within(FIELD))?;
    Ok(claims.into_iter().flatten().collect())
}

/// The claims that all members of a group share.
pub(crate) fn read_group_claims(
    list: &Lenient<Vec<Lenient<GroupClaimView>>>,
) -> Result<Vec<GroupClaim>, ModelError> {
    const FIELD: &str = "spec.resourceClaims";
    let list = list.at(FIELD)?.map_or(&[][..], Vec::as_slice);
    let read = |view: &GroupClaimView| {
        let claim = text(&view.resource_claim_name, "resourceClaimName")?;
        let template = text(&view.resource_claim_template_name, "resourceClaimTemplateName")?;
        let source = match (claim, template) {
            (claim, "") if !claim.is_empty() => ClaimSource::Claim(claim.into()),
            ("", template) if !template.is_empty() => ClaimSource::Template(template.into()),
            _ => {
                let message = "want either resourceClaimName or resourceClaimTemplateName";
                return Err(ModelError::new("", message));
            }
        };
        Ok(GroupClaim { name: text(&view.name, "name")?.into(), source })
    };
    read_each(list, read).map_err(|error| error.within(FIELD))
}

/// `PreemptLowerPriority`, which is also what nothing means, or `Never`.
pub(crate) fn read_preemption(policy: &Lenient<String>, field: &str) -> Result<Preemption, ModelError> {
    match text(policy, field)? {
        "" | "PreemptLowerPriority" => Ok(Preemption::LowerPriority),
        "Never" => Ok(Preemption::Never),
        other => Err(ModelError::new(field, format!("{other:?} is not known"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::PodView;
    use serde_json::json;

    #[test]
    fn claims_for_devices_and_volumes_are_named_and_other_volumes_are_not() {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u"},
            "spec": {"preemptionPolicy": "Never", "resourceClaims": [{"name": "gpu"}],
                     "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
                                 {"name": "scratch", "ephemeral": {}}, {"name": "w", "emptyDir": {}}]},
            "status": {"nominatedNodeName": "n"},
        }))
        .unwrap();
        let pod = view.read().complete().unwrap();
        let names = |list: &[tutti_model::Text]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&pod.device_claims), ["gpu"]);
        let uses: Vec<(&str, bool)> =
            pod.volume_claims.iter().map(|using| (using.claim.as_ref(), using.own)).collect();
        assert_eq!(uses, [("data", false), ("p-scratch", true)]);
        assert_eq!(pod.preemption, tutti_model::Preemption::Never);
        assert_eq!(pod.nominated.as_deref(), Some("n"));
    }
}
