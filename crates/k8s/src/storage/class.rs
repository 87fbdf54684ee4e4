//! Classes of volumes.

use super::NO_PROVISIONER;
use crate::error::{ObjectError, ObjectKind};
use crate::flat::{FlatKind, FlatView};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::selector::{read_each, text};
use crate::view::Names;
use tutti_model::{ModelError, NodeSelectorTerm, Operator, Requirement, StorageClass, Text};

/// A class of volumes, as far as scheduling reads it.
pub type ClassView = FlatView<ClassKind>;

/// Marks views of classes of volumes.
#[derive(Debug, Clone)]
pub struct ClassKind;

impl FlatKind for ClassKind {
    type Fields = ClassFields;

    const NAMES: Names<'static> =
        Names { group: "storage.k8s.io", version: "v1", kind: "StorageClass", plural: "storageclasses" };
}

/// The fields of the object.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClassFields {
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

impl Shaped for TopologyView {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for ExpressionView {
    const SHAPE: Shape = Shape::Object;
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
    /// The class in our terms.
    pub fn read(&self) -> ClassReading {
        let mut problems = self.problems();
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
        let errors = problems.into_errors(ObjectKind::StorageClass, &self.key());
        ClassReading { class, uid: self.uid(), errors }
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
