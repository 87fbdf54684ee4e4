//! What nodes can attach.

use crate::error::{ObjectError, ObjectKind};
use crate::lenient::{Lenient, Shape, Shaped};
use crate::namespace::Nothing;
use crate::selector::text;
use crate::view::{Kind, Names, View};
use kube::core::ClusterResourceScope;
use std::collections::BTreeMap;
use tutti_model::{AttachLimits, ModelError, Text};

/// The drivers of a node, as far as scheduling reads them.
pub type CsiNodeView = View<CsiNodeKind>;

/// Marks views of the drivers of nodes.
#[derive(Debug, Clone)]
pub struct CsiNodeKind;

impl Kind for CsiNodeKind {
    type Spec = CsiNodeSpecView;
    type Status = Nothing;
    type Dynamic = ();
    type Scope = ClusterResourceScope;

    fn names(_: &()) -> Names<'_> {
        Names { group: "storage.k8s.io", version: "v1", kind: "CSINode", plural: "csinodes" }
    }
}

/// `spec`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub struct CsiNodeSpecView {
    drivers: Lenient<Vec<Lenient<DriverView>>>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct DriverView {
    name: Lenient<String>,
    allocatable: Lenient<AllocatableView>,
}

#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
struct AllocatableView {
    count: Lenient<i64>,
}

impl Shaped for CsiNodeSpecView {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for DriverView {
    const SHAPE: Shape = Shape::Object;
}
impl Shaped for AllocatableView {
    const SHAPE: Shape = Shape::Object;
}

/// What was understood of the drivers of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsReading {
    /// The limits. Of a driver whose limit was not understood nothing can be attached.
    pub limits: AttachLimits,
    /// Identity over time.
    pub uid: Text,
    /// What could not be understood.
    pub errors: Vec<ObjectError>,
}

impl CsiNodeView {
    /// The limits in our terms.
    pub fn read(&self) -> LimitsReading {
        let mut problems = self.problems();
        let key = self.key();
        let no_spec = CsiNodeSpecView::default();
        let spec = problems.or_default(self.spec.at("spec")).unwrap_or(&no_spec);
        let drivers = problems.or_default(spec.drivers.at("spec.drivers")).map_or(&[][..], Vec::as_slice);
        let mut limits = BTreeMap::new();
        for (index, driver) in drivers.iter().enumerate() {
            let field = format!("spec.drivers[{index}]");
            let Some(driver) = problems.or_default(driver.at(&field)) else { continue };
            let name = problems.or_default(text(&driver.name, "name").map_err(|error| error.within(&field)));
            match read_limit(driver) {
                Ok(None) => {}
                Ok(Some(limit)) => {
                    limits.insert(Text::from(name), limit);
                }
                Err(error) => {
                    limits.insert(Text::from(name), 0);
                    problems.push(error.within(&field));
                }
            }
        }
        let errors = problems.into_errors(ObjectKind::CsiNode, &key);
        LimitsReading { limits: AttachLimits { node: key.name, limits }, uid: self.uid(), errors }
    }
}

fn read_limit(driver: &DriverView) -> Result<Option<u32>, ModelError> {
    let Some(allocatable) = driver.allocatable.at("allocatable")? else { return Ok(None) };
    let Some(&count) = allocatable.count.at("allocatable.count")? else { return Ok(None) };
    let wrong = || ModelError::new("allocatable.count", format!("{count} is not a number of volumes"));
    u32::try_from(count).map(Some).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_are_read_by_driver_and_what_is_not_understood_attaches_nothing() {
        let view: CsiNodeView = serde_json::from_value(json!({
            "metadata": {"name": "n", "uid": "u"},
            "spec": {"drivers": [{"name": "a", "allocatable": {"count": 25}}, {"name": "free"},
                                 {"name": "odd", "allocatable": {"count": -1}}]},
        }))
        .unwrap();
        let reading = view.read();
        let limits: Vec<(&str, u32)> =
            reading.limits.limits.iter().map(|(driver, most)| (driver.as_ref(), *most)).collect();
        assert_eq!(limits, [("a", 25), ("odd", 0)]);
        assert_eq!(
            reading.errors[0].to_string(),
            "CSI node n: spec.drivers[2].allocatable.count: -1 is not a number of volumes"
        );
    }
}
