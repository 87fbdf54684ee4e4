//! Priority classes, for pod groups whose API server does not fill in what their class stands for.

use crate::error::{ObjectError, ObjectKind};
use crate::flat::{FlatKind, FlatView};
use crate::lenient::Lenient;
use crate::view::Names;
use tutti_model::{ModelError, Text};

/// A priority class, as far as scheduling reads it.
pub type PriorityClassView = FlatView<PriorityClassKind>;

/// Marks views of priority classes.
#[derive(Debug, Clone)]
pub struct PriorityClassKind;

impl FlatKind for PriorityClassKind {
    type Fields = PriorityClassFields;

    const NAMES: Names<'static> =
        Names { group: "scheduling.k8s.io", version: "v1", kind: "PriorityClass", plural: "priorityclasses" };
}

/// The fields of the object.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct PriorityClassFields {
    value: Lenient<i32>,
}

/// What was understood of a priority class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityClassReading {
    /// Its name.
    pub name: Text,
    /// The priority that it stands for; `None` if that was not understood.
    pub value: Option<i32>,
    /// Identity over time.
    pub uid: Text,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl PriorityClassView {
    /// The class in our terms.
    pub fn read(&self) -> PriorityClassReading {
        let mut problems = self.problems();
        let value =
            self.fields.value.at("value").and_then(|value| {
                value.copied().map(Some).ok_or_else(|| ModelError::new("value", "is missing"))
            });
        PriorityClassReading {
            name: self.name(),
            value: problems.or_default(value),
            uid: self.uid(),
            errors: problems.into_errors(ObjectKind::PriorityClass, &self.key()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(mut class: Value) -> PriorityClassReading {
        class["metadata"] = json!({"name": "high", "uid": "u"});
        serde_json::from_value::<PriorityClassView>(class).unwrap().read()
    }

    #[test]
    fn a_class_stands_for_a_number_or_says_why_not() {
        let reading = read(json!({"value": -7, "globalDefault": true, "description": "d"}));
        assert_eq!((reading.name.as_ref(), reading.value, reading.errors), ("high", Some(-7), vec![]));
        for (class, error) in [
            (json!({"value": "1"}), "priority class high: value: want a whole number, found \"1\""),
            (json!({}), "priority class high: value: is missing"),
        ] {
            let reading = read(class);
            assert_eq!((reading.value, reading.errors[0].to_string().as_str()), (None, error));
        }
        let no_object: PriorityClassView = serde_json::from_value(json!(7)).unwrap();
        assert_eq!(no_object.read().errors[0].field, "(the object)");
    }
}
