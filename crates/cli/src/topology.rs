//! `tutti topology`: the tree that node labels make, and the room in it.

mod layout;
mod levels;
mod shape;
mod source;
mod svg;
mod text;
mod tree;

use crate::console::{Console, complain};
use crate::kubeconfig_path;
use anyhow::Context as _;
use clap::Args;
use shape::PodShape;
use source::Cluster;
use std::path::PathBuf;
use tree::Tree;
use tutti_cluster::kubelet::GPU;
use tutti_model::Text;

/// Show racks, blocks and zones as node labels make them: how many pods of some shape each takes, who sits there, and
/// which nodes lack labels or break the nesting.
///
/// Nothing is changed. Room is counted as the scheduler counts it, with taints, cordons and everybody who is there.
#[derive(Debug, Args)]
pub(crate) struct TopologyArgs {
    /// Kubeconfig of the cluster. Default: $KUBECONFIG, or else the file that `tutti up` writes.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Look at a file instead of a cluster: a dump of a scheduler, or a scenario, which is decided first.
    #[arg(long, value_name = "FILE", conflicts_with = "kubeconfig")]
    file: Option<PathBuf>,
    /// Node labels from wide to narrow. Default: found by their names and by how they nest.
    #[arg(long, value_name = "KEY,KEY", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    levels: Vec<String>,
    /// The kind of pod that room is counted for, as in scenarios: `cpu=4,gpu=8`, `gpu=1,tolerate:gpu`. May be given
    /// several times. Default: one GPU where there are some, else one processor.
    #[arg(long = "shape", value_name = "SHAPE")]
    shapes: Vec<PodShape>,
    /// Draw it, with a colour for every group.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Looks, and shows.
pub(crate) async fn run(args: TopologyArgs) -> anyhow::Result<()> {
    let cluster = match &args.file {
        Some(file) => Cluster::of_file(file)?,
        None => {
            let path = kubeconfig_path::chosen(args.kubeconfig)?;
            let shown = || path.display().to_string();
            let connection = tutti_k8s::connect::connect(Some(&path)).await?;
            Cluster::of_api(&connection.client).await.with_context(shown)?
        }
    };
    let tree = survey(&cluster, &args.levels, args.shapes)?;
    if let Some(path) = &args.svg {
        std::fs::write(path, svg::draw(&tree)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        Console::new().line(&serde_json::to_string_pretty(&tree)?);
    } else if args.svg.is_none() {
        text::print(&tree, Console::new());
    } else {
        for warning in &tree.warnings {
            complain(&format!("warning: {}", warning.message));
        }
    }
    Ok(())
}

fn survey(cluster: &Cluster, levels: &[String], mut shapes: Vec<PodShape>) -> anyhow::Result<Tree> {
    let levels: Vec<Text> = match levels {
        [] => levels::infer(&cluster.nodes),
        given => given.iter().map(|key| Text::from(key.as_str())).collect(),
    };
    if shapes.is_empty() {
        let has_gpus = cluster.nodes.iter().any(|node| node.allocatable.get(GPU) > 0);
        let usual = if has_gpus { "gpu=1" } else { "cpu=1" };
        shapes.push(usual.parse().map_err(anyhow::Error::msg)?);
    }
    let warnings = levels::check(&levels, &cluster.nodes);
    Ok(Tree::new(cluster, &levels, &shapes, warnings))
}
