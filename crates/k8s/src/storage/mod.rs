//! Storage: claims, volumes, classes, and what nodes can attach.

mod claim;
mod class;
mod csi_node;
mod volume;

pub use claim::{ClaimReading, ClaimView};
pub use class::{ClassReading, ClassView};
pub use csi_node::{CsiNodeView, LimitsReading};
pub use volume::{VolumeReading, VolumeView};

use crate::error::Problems;
use crate::lenient::Lenient;
use crate::resources::{Amounts, read_amounts};
use crate::selector::{read_each, text};
use tutti_model::{AccessMode, ModelError, Text};

/// The node for which a volume is to be made.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Says that a claim and its volume have agreed on each other.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Says that it was not a person who chose the claim of a volume.
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Where the class was written before there was a field for it. It still counts, and comes first.
pub(crate) const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Annotations of storage that are read.
pub(crate) const ANNOTATIONS: [&str; 3] = [SELECTED_NODE, BIND_COMPLETED, OLD_CLASS];

/// The class that nobody makes volumes of names this instead of a provisioner.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

type Modes = Lenient<Vec<Lenient<String>>>;

fn read_modes(modes: &Modes) -> Result<Vec<AccessMode>, ModelError> {
    const FIELD: &str = "spec.accessModes";
    let modes = modes.at(FIELD)?.map_or(&[][..], Vec::as_slice);
    let mode = |mode: &String| match mode.as_str() {
        "ReadWriteOnce" => Ok(AccessMode::ReadWriteOnce),
        "ReadOnlyMany" => Ok(AccessMode::ReadOnlyMany),
        "ReadWriteMany" => Ok(AccessMode::ReadWriteMany),
        "ReadWriteOncePod" => Ok(AccessMode::ReadWriteOncePod),
        other => Err(ModelError::new("", format!("{other:?} is not known"))),
    };
    let mut modes = read_each(modes, mode).map_err(|error| error.within(FIELD))?;
    modes.sort_unstable();
    modes.dedup();
    Ok(modes)
}

/// True for a raw device.
fn read_block(mode: &Lenient<String>) -> Result<bool, ModelError> {
    match text(mode, "spec.volumeMode")? {
        "" | "Filesystem" => Ok(false),
        "Block" => Ok(true),
        other => Err(ModelError::new("spec.volumeMode", format!("{other:?} is not known"))),
    }
}

fn read_size(amounts: &Amounts, field: &str, problems: &mut Problems) -> i64 {
    read_amounts(amounts, field, problems).get("storage")
}

fn read_text(field: &Lenient<String>, path: &str, problems: &mut Problems) -> Text {
    problems.or_default(text(field, path)).into()
}

/// Nothing for a name that is empty.
fn named(name: Text) -> Option<Text> {
    (!name.is_empty()).then_some(name)
}
