//! `tutti up --cluster FILE`: nodes as a file describes them.

use anyhow::{Context as _, ensure};
use std::path::Path;
use tutti_cluster::kubelet::NodeTemplate;
use tutti_model::scenario::Scenario;

/// As many as `--nodes` takes.
const NODES_MAX: usize = 20_000;

/// Reads the nodes of a file. An error names file, line and word.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<NodeTemplate>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let nodes = Scenario::parse_nodes(&text).with_context(|| path.display().to_string())?;
    ensure!(
        nodes.len() <= NODES_MAX,
        "{}: describes {} nodes; at most {NODES_MAX} can be simulated",
        path.display(),
        nodes.len()
    );
    Ok(nodes.iter().map(NodeTemplate::of_model).collect())
}
