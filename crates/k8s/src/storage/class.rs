//! Classes of volumes. They have no `spec`: what they say is in the object itself.

use super::NO_PROVISIONER;
use crate::error::{ObjectError, ObjectKind, Problems};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::selector::{read_each, text};
use crate::view::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ClusterResourceScope;
use std::borrow::Cow;
use tutti_model::{ModelError, NodeSelectorTerm, ObjectKey, Operator, Requirement, StorageClass, Text};

/// A class of volumes, as far as scheduling reads it.
#[derive(Debug, Clone)]
pub struct ClassView {
    metadata: ObjectMeta,
    metadata_errors: Vec<ModelError>,
    fields: Fields,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fields {
    metadata: Lenient<Metadata>,
    provisioner: Lenient<String>,
    volume_binding_mode: Lenient<String>,
    allowed_topologies: Lenient<Vec<Lenient<TopologyView>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TopologyView {
    match_label_expressions: Lenient<Vec<Lenient<ExpressionView>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct ExpressionView {
    key: Lenient<String>,
    values: Lenient<Vec<Lenient<String>>>,
}

impl Shaped for Fields {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for TopologyView {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for ExpressionView {
    const SHAPE: Shape = Shape::Object;
}

impl<'de> serde::Deserialize<'de> for ClassView {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut errors = Vec::new();
        let mut fields = match Lenient::<Fields>::deserialize(deserializer)? {
            Lenient::Read(fields) => fields,
            Lenient::Absent => Fields::default(),
            Lenient::Wrong(message) => {
                errors.push(ModelError::new("(the object)", message.as_ref()));
                Fields::default()
            }
        };
        let metadata = Metadata::read(std::mem::take(&mut fields.metadata), &mut errors);
        Ok(Self { metadata, metadata_errors: errors, fields })
    }
}

impl kube::Resource for ClassView {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "StorageClass".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        "storage.k8s.io".into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "storageclasses".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// What was understood of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassReading {
    /// The class. With errors it is good for its name only.
    pub class: StorageClass,
    /// Identity over time.
    pub uid: Text,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl ClassView {
    /// Its name.
    pub fn name(&self) -> Text {
        self.metadata.name.as_deref().unwrap_or_default().into()
    }

    /// The class in our terms.
    pub fn read(&self) -> ClassReading {
        let mut problems = Problems::default();
        for error in &self.metadata_errors {
            problems.push(error.clone());
        }
        let provisioner = problems.or_default(text(&self.fields.provisioner, "provisioner"));
        let mode = problems.or_default(text(&self.fields.volume_binding_mode, "volumeBindingMode"));
        if !["", "Immediate", "WaitForFirstConsumer"].contains(&mode) {
            problems.push(ModelError::new("volumeBindingMode", format!("{mode:?} is not known")));
        }
        let class = StorageClass {
            name: self.name(),
            provisioner: Some(provisioner)
                .filter(|name| !["", NO_PROVISIONER].contains(name))
                .map(Text::from),
            waits: mode == "WaitForFirstConsumer",
            topologies: problems.or_default(read_topologies(&self.fields.allowed_topologies)),
        };
        let uid = self.metadata.uid.as_deref().unwrap_or_default().into();
        let key = ObjectKey::new("", class.name.clone());
        ClassReading { class, uid, errors: problems.into_errors(ObjectKind::StorageClass, &key) }
    }
}

fn read_topologies(list: &Lenient<Vec<Lenient<TopologyView>>>) -> Result<Vec<NodeSelectorTerm>, ModelError> {
    const FIELD: &str = "allowedTopologies";
    let list = list.at(FIELD)?.map_or(&[][..], Vec::as_slice);
    let term = |view: &TopologyView| {
        let field = "matchLabelExpressions";
        let expressions = view.match_label_expressions.at(field)?.map_or(&[][..], Vec::as_slice);
        let labels = read_each(expressions, read_expression).map_err(|error| error.within(field))?;
        Ok(NodeSelectorTerm { labels, fields: Vec::new() })
    };
    read_each(list, term).map_err(|error| error.within(FIELD))
}

fn read_expression(view: &ExpressionView) -> Result<Requirement, ModelError> {
    let values = view.values.at("values")?.map_or(&[][..], Vec::as_slice);
    let values = read_each(values, |value| Ok(Text::from(value.as_str())));
    Requirement::new(text(&view.key, "key")?, Operator::In, values.map_err(|error| error.within("values"))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(mut class: Value) -> ClassReading {
        class["metadata"] = json!({"name": "c", "uid": "u"});
        serde_json::from_value::<ClassView>(class).unwrap().read()
    }

    #[test]
    fn a_class_says_who_makes_volumes_when_and_where() {
        let reading = read(json!({
            "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
        }));
        assert_eq!(reading.errors, []);
        assert!(reading.class.waits);
        let labels = |zone: &'static str| [("zone", zone)].into_iter().collect();
        assert!(reading.class.provisions_for(&labels("b")) && !reading.class.provisions_for(&labels("c")));
        let local = read(json!({"provisioner": "kubernetes.io/no-provisioner"})).class;
        assert_eq!((local.provisioner, local.waits), (None, false));
    }

    #[test]
    fn a_class_that_is_not_understood_says_so() {
        let reading = read(json!({"provisioner": "d", "volumeBindingMode": "Later"}));
        assert_eq!(
            reading.errors[0].to_string(),
            "storage class c: volumeBindingMode: \"Later\" is not known"
        );
    }
}
