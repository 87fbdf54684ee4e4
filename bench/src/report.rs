//! How figures are printed.

use serde_json::json;

/// Prints one line a figure.
pub(crate) struct Report {
    json: bool,
}

impl Report {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) fn figure(&mut self, case: &str, nodes: u32, value: f64, unit: &str) {
        if self.json {
            println!("{}", json!({"case": case, "nodes": nodes, "value": value, "unit": unit}));
        } else {
            println!("{case:<28} {nodes:>8} nodes {value:>14.3} {unit}");
        }
    }
}
