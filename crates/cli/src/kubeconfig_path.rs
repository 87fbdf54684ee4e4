//! Where the kubeconfig of an embedded cluster goes unless the user says otherwise.

use anyhow::Context as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tutti_cluster::listener::DEFAULT_PORT;

/// The default file for a cluster on this port. A cluster on another than the usual port has a file of its
/// own, so that two of them can run side by side.
pub(crate) fn default(port: u16) -> anyhow::Result<PathBuf> {
    let folder = state_folder(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME")).context(
        "neither XDG_STATE_HOME nor HOME says where to write the kubeconfig; use --kubeconfig FILE",
    )?;
    Ok(folder.join(file_name(port)))
}

/// The file of the cluster to talk to: the one that was named, else the one of `$KUBECONFIG`, else the one that
/// `tutti up` writes.
pub(crate) fn chosen(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let of_variable = || std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    match named.or_else(of_variable) {
        Some(path) => Ok(path),
        None => default(DEFAULT_PORT),
    }
}

/// `path` from the root, for commands that are run elsewhere.
pub(crate) fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot use {} as the kubeconfig", path.display()))
}

fn file_name(port: u16) -> String {
    if port == DEFAULT_PORT { "kubeconfig".to_owned() } else { format!("kubeconfig-{port}") }
}

/// The XDG rules: variables that are empty or relative count as unset.
fn state_folder(state_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let usable = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let base = usable(state_home).or_else(|| usable(home).map(|home| home.join(".local/state")))?;
    Some(base.join("tutti"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_xdg_rules() {
        let folder = |state: Option<&str>, home: Option<&str>| {
            state_folder(state.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(folder(Some("/s"), Some("/h")), Some("/s/tutti".into()));
        assert_eq!(folder(Some(""), Some("/h")), Some("/h/.local/state/tutti".into()));
        assert_eq!(folder(Some("relative"), Some("/h")), Some("/h/.local/state/tutti".into()));
        assert_eq!(folder(None, None), None);
    }

    #[test]
    fn two_clusters_write_two_files() {
        assert_eq!(file_name(DEFAULT_PORT), "kubeconfig");
        assert_eq!(file_name(40000), "kubeconfig-40000");
    }
}
