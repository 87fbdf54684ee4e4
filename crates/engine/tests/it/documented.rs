//! The scenarios of the documentation come out as they say.

use crate::driver::{World, show};
use crate::expectations::disappointments;
use std::path::Path;
use tutti_model::scenario::Scenario;

#[test]
fn documented_scenarios_come_out_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios");
    let mut expectations = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let scenario = Scenario::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        expectations += scenario.expectations.len();
        let decisions = World::new(&scenario).settle();
        let failures = disappointments(&scenario.expectations, &decisions);
        assert!(failures.is_empty(), "{}: {failures:?}\n{}", path.display(), show(&decisions));
    }
    assert!(expectations >= 3, "only {expectations} expectations were found");
}
