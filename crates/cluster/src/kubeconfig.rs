//! The kubeconfig of an embedded cluster: its text, and how it gets onto the disk.

use crate::tls::{ADMIN_USER, Identities};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Name of the context, the cluster and, in kubectl's prompts, the place.
pub const CONTEXT: &str = "tutti";

/// The first line of every file that is written here. A file without it belongs to somebody else.
const MARK: &str = "# Written by tutti for an embedded cluster; of no use once that cluster has ended.\n";

/// Why a kubeconfig could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Overwriting it might lose the way to a real cluster.
    #[error("{} exists and was not written by tutti; choose another file, or remove it first", path.display())]
    Foreign {
        /// The file that was wanted.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot write the kubeconfig {}: {source}", path.display())]
    Io {
        /// The file that was wanted.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// The text of a kubeconfig for the server at `url`, with all key material inline.
pub fn render(url: &str, identities: &Identities) -> String {
    let ca = STANDARD.encode(&identities.ca_pem);
    let certificate = STANDARD.encode(&identities.client_certificate_pem);
    let key = STANDARD.encode(&identities.client_key_pem);
    // The values are base64, a constant or a URL of digits: nothing in them needs quoting in YAML beyond
    // the quotes around the URL.
    format!(
        "{MARK}\
         apiVersion: v1\n\
         kind: Config\n\
         current-context: {CONTEXT}\n\
         clusters:\n\
         - name: {CONTEXT}\n  \
           cluster:\n    \
             server: \"{url}\"\n    \
             certificate-authority-data: {ca}\n\
         users:\n\
         - name: {ADMIN_USER}\n  \
           user:\n    \
             client-certificate-data: {certificate}\n    \
             client-key-data: {key}\n\
         contexts:\n\
         - name: {CONTEXT}\n  \
           context:\n    \
             cluster: {CONTEXT}\n    \
             user: {ADMIN_USER}\n    \
             namespace: default\n"
    )
}

/// Why a kubeconfig does not give a client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be read, or names nothing that is in it.
    #[error("cannot read the kubeconfig: {0}")]
    Read(#[from] kube::config::KubeconfigError),
    /// A client cannot be made of it.
    #[error("cannot make a client: {0}")]
    Make(#[from] kube::Error),
}

/// A client of the cluster that the kubeconfig describes, over the network like any other.
pub async fn client(text: &str) -> Result<kube::Client, ClientError> {
    connect(Kubeconfig::from_yaml(text)?).await
}

/// As [`client`], of a kubeconfig on the disk; files that it names are looked for beside it.
pub async fn client_of_file(path: &Path) -> Result<kube::Client, ClientError> {
    connect(Kubeconfig::read_from(path)?).await
}

async fn connect(kubeconfig: Kubeconfig) -> Result<kube::Client, ClientError> {
    // Several TLS providers may be compiled in; the client takes the default one of the process. If somebody
    // has chosen already, that choice stands.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    Ok(kube::Client::try_from(config)?)
}

/// Writes a rendered kubeconfig to `path`: readable by its owner alone, and either the old or the new file at
/// every moment. Missing folders are made. A file that was not written here is never overwritten, unless it
/// is empty.
pub fn write(path: &Path, text: &str) -> Result<(), WriteError> {
    match std::fs::read(path) {
        Ok(old) if !old.is_empty() && !old.starts_with(MARK.as_bytes()) => {
            return Err(WriteError::Foreign { path: path.to_owned() });
        }
        // What cannot be read is met again, and reported, below.
        _ => {}
    }
    write_private(path, text).map_err(|source| WriteError::Io { path: path.to_owned(), source })
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let Some(name) = path.file_name() else {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "this path names no file"));
    };
    // In the same folder, because a rename is atomic only within one file system.
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let temporary = folder.join(temporary);

    let written = write_new(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report; a leftover file is only untidy.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Creates a file that must not exist yet, so that nobody can plant a link or a readable file in its place.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Removes the file if it still has this text. Another cluster may have written its own there meanwhile, and
/// that one must stay.
pub fn remove_if_unchanged(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|found| found == text)
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove the kubeconfig of the ended cluster");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    /// A folder of its own for each test, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("tutti-test-{}", uuid::Uuid::new_v4().simple()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn identities() -> Identities {
        Identities::generate(IpAddr::V4(Ipv4Addr::LOCALHOST), jiff::Timestamp::now()).unwrap()
    }

    #[test]
    fn kube_reads_back_what_was_rendered() {
        let identities = identities();
        let text = render("https://127.0.0.1:6443", &identities);
        let read = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("tutti"));
        let cluster = read.clusters[0].cluster.clone().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        let ca = STANDARD.decode(cluster.certificate_authority_data.unwrap()).unwrap();
        assert_eq!(ca, identities.ca_pem.as_bytes());
        assert_eq!(read.contexts[0].context.clone().unwrap().user.as_deref(), Some("tutti-admin"));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_readable_by_its_owner_alone_even_if_an_open_one_was_there() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new();
        let path = folder.0.join("deep/er/kubeconfig");
        write(&path, &format!("{MARK}first")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, &format!("{MARK}second")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{MARK}second"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "no temporary file stays behind");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named_in_the_error() {
        let folder = Folder::new();
        let error = write(&folder.0, "text").unwrap_err();
        assert!(error.to_string().contains(&folder.0.display().to_string()), "{error}");
    }

    #[test]
    fn a_kubeconfig_of_somebody_else_is_never_overwritten() {
        let folder = Folder::new();
        let path = folder.0.join("config");
        std::fs::write(&path, "apiVersion: v1\n").unwrap();
        assert!(matches!(write(&path, MARK), Err(WriteError::Foreign { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
        std::fs::write(&path, "").unwrap();
        let text = render("https://127.0.0.1:1", &identities());
        write(&path, &text).expect("an empty file holds nothing to lose");
        write(&path, &text).expect("a file of an earlier run is replaced");
    }

    #[test]
    fn only_the_own_kubeconfig_is_removed() {
        let folder = Folder::new();
        let path = folder.0.join("kubeconfig");
        write(&path, "of another cluster").unwrap();
        remove_if_unchanged(&path, "mine");
        assert!(path.exists());
        remove_if_unchanged(&path, "of another cluster");
        assert!(!path.exists());
    }
}
