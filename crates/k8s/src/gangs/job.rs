//! Jobs, as far as whoever waits for their groups reads them.

use super::kinds::{Asks, JOB};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::view::{Kind, Names, View};
use kube::core::NamespaceResourceScope;
use serde_json::Value;
use tutti_model::{ObjectKey, Text};

/// The Job that a pod belongs to, as the pod says it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobRef {
    /// Its identity.
    pub uid: Text,
    /// Its name, in the namespace of the pod.
    pub name: Text,
}

/// A Job.
pub type JobView = View<JobKind>;

/// Marks views of Jobs.
#[derive(Debug, Clone)]
pub struct JobKind;

impl Kind for JobKind {
    type Spec = Anything;
    type Status = Anything;
    type Dynamic = ();
    type Scope = NamespaceResourceScope;

    fn names(_: &()) -> Names<'_> {
        Names { group: JOB.group, version: JOB.version, kind: JOB.kind, plural: JOB.plural }
    }
}

/// A part that is looked into by the table of kinds and not kept.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Anything(Value);

impl Shaped for Anything {
    const SHAPE: Shape = Shape::Object;
}

/// What was understood of a Job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobReading {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its identity.
    pub uid: Text,
    /// What it asks for.
    pub asks: Asks,
}

impl JobView {
    /// What matters of it. What cannot be read counts as absent, as it does for whoever makes its groups.
    pub fn read(&self) -> JobReading {
        let part = |part: &Lenient<Anything>| match part {
            Lenient::Read(Anything(value)) => value.clone(),
            _ => Value::Null,
        };
        let asks = JOB.read(&self.metadata, &part(&self.spec), &part(&self.status));
        JobReading { key: self.key(), uid: self.uid(), asks }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Api, GANG_ANNOTATION};
    use super::*;
    use crate::Capabilities;
    use serde_json::json;

    fn awaits(job: Value) -> bool {
        let reading = serde_json::from_value::<JobView>(job).unwrap().read();
        let api = Api::of(&Capabilities::of_versions(&["v1alpha2"]).pod_group.unwrap()).unwrap();
        reading.asks.awaits_groups(&api, |name| name == "tutti")
    }

    #[test]
    fn a_job_awaits_its_group_until_a_pod_of_it_ran() {
        let job = json!({
            "metadata": {"name": "train", "namespace": "a", "uid": "u"},
            "spec": {"completionMode": "Indexed", "parallelism": 8, "completions": 8,
                     "template": {"spec": {"schedulerName": "tutti"}}},
        });
        assert!(awaits(job.clone()));
        for (place, field, value) in [
            ("", "status", json!({"ready": 1})),
            ("/spec", "parallelism", json!(4)),
            ("/spec/template/spec", "schedulerName", json!("other")),
            ("/spec/template/spec", "schedulingGroup", json!({"podGroupName": "g"})),
            ("", "spec", json!([])),
            ("", "spec", json!(3)),
        ] {
            let mut other = job.clone();
            other.pointer_mut(place).unwrap()[field] = value;
            assert!(!awaits(other.clone()), "{other}");
        }
        let mut stamped = job.clone();
        stamped["spec"]["parallelism"] = json!(3);
        stamped["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-template-name": "t"});
        assert!(awaits(stamped), "its group comes out of a Workload");
        let mut annotated = job;
        annotated["spec"]["parallelism"] = json!(3);
        annotated["metadata"]["annotations"] = json!({GANG_ANNOTATION: "true"});
        assert!(awaits(annotated));
    }

    #[test]
    fn a_gang_by_annotation_does_not_wait_for_more_pods_than_there_will_be() {
        for (parallelism, completions, minimum) in
            [(8, json!(2), 2), (8, json!(20), 8), (8, Value::Null, 8), (0, json!(4), 1)]
        {
            let job = json!({
                "metadata": {"name": "train", "annotations": {GANG_ANNOTATION: "true"}},
                "spec": {"parallelism": parallelism, "completions": completions,
                         "template": {"spec": {"schedulerName": "tutti"}}},
            });
            let reading = serde_json::from_value::<JobView>(job).unwrap().read();
            let api = Api::of(&Capabilities::of_versions(&["v1alpha2"]).pod_group.unwrap()).unwrap();
            let templates = reading.asks.templates("train", &api, |name| name == "tutti").unwrap();
            assert_eq!(templates[0]["schedulingPolicy"], json!({"gang": {"minCount": minimum}}));
        }
    }
}
