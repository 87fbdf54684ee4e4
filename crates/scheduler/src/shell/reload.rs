//! A configuration file that is followed while the process runs.

use crate::config::{self, ConfigError, FileError, Settings};
use prometheus_client::metrics::gauge::Gauge;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// How often the file is read. It is small, and reading it finds every way in which files are replaced, such as the
/// links of a mounted ConfigMap.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What command line options say on top of a file.
pub type Adjust = Box<dyn Fn(Settings) -> Result<Settings, ConfigError> + Send>;

/// Settings that may change.
#[derive(Debug, Clone)]
pub struct Followed {
    /// What is in use.
    pub settings: watch::Receiver<Settings>,
    /// 1 while the file says something else: a new start would then go wrong, or make a difference.
    pub(super) unused: Gauge,
}

/// Settings that come from no file.
impl From<watch::Receiver<Settings>> for Followed {
    fn from(settings: watch::Receiver<Settings>) -> Self {
        Self { settings, unused: Gauge::default() }
    }
}

/// Reads a file now and again whenever it changes.
///
/// The first reading must be good. Later ones that are not are reported and change nothing. Must be called within a
/// tokio runtime.
pub fn follow(path: PathBuf, adjust: Adjust) -> Result<Followed, FileError> {
    let first = look(&path, &adjust)?;
    let (tell, settings) = watch::channel(first);
    let followed = Followed::from(settings);
    let unused = followed.unused.clone();
    tokio::spawn(async move {
        let mut complaint: Option<String> = None;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if tell.is_closed() {
                return;
            }
            complaint = look_again(&path, &adjust, &tell, complaint.as_deref());
            unused.set(i64::from(complaint.is_some()));
        }
    });
    Ok(followed)
}

/// Takes over what is new and good. Gives what is wrong, so that it is said once.
fn look_again(
    path: &Path,
    adjust: &Adjust,
    tell: &watch::Sender<Settings>,
    complaint: Option<&str>,
) -> Option<String> {
    let next = match look(path, adjust) {
        Ok(next) => next,
        Err(error) => {
            let error = error.to_string();
            if complaint != Some(error.as_str()) {
                tracing::warn!(error, "the changed configuration is not used; the one before stays");
            }
            return Some(error);
        }
    };
    let fields = tell.borrow().needs_restart(&next);
    let warning = (!fields.is_empty()).then(|| format!("{} changed", fields.join(", ")));
    if warning.is_some() && warning.as_deref() != complaint {
        tracing::warn!(
            ?fields,
            "these fields of the configuration need a restart of the process to take effect"
        );
    }
    tell.send_if_modified(|current| {
        let changed = current.config != next.config;
        if changed {
            // A process that stands by says nothing else about it.
            let scheduler_names = next.config.names_in_words();
            tracing::info!(scheduler_names, "the configuration file has changed");
            current.config = next.config;
        }
        changed
    });
    warning
}

fn look(path: &Path, adjust: &Adjust) -> Result<Settings, FileError> {
    let settings = config::read(path)?;
    let adjusted = adjust(settings).and_then(|settings| settings.validate().map(|()| settings));
    adjusted.map_err(|source| FileError::Content { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: SchedulerConfiguration\n";

    #[test]
    fn good_changes_are_taken_over_and_bad_ones_change_nothing() {
        let path = std::env::temp_dir().join(format!("tutti-reload-{}.yaml", std::process::id()));
        let write = |body: &str| std::fs::write(&path, format!("{HEADER}{body}\n")).unwrap();
        let adjust: Adjust = Box::new(Ok);
        write("limits: {bindConcurrency: 1}");
        let (tell, mut seen) = watch::channel(look(&path, &adjust).unwrap());
        seen.mark_unchanged();

        write("limits: {bindConcurrency: zero}");
        let complaint = look_again(&path, &adjust, &tell, None);
        assert!(complaint.unwrap().contains("limits.bindConcurrency"));
        assert!(!seen.has_changed().unwrap());

        write("limits: {bindConcurrency: 2}\nhttp: {address: ''}");
        let complaint = look_again(&path, &adjust, &tell, None);
        assert_eq!(complaint.as_deref(), Some("http changed"));
        let now = seen.borrow_and_update().clone();
        assert_eq!(now.config.bind_concurrency, 2);
        assert!(now.http.address.is_some(), "that needs a restart");

        look_again(&path, &adjust, &tell, None);
        assert!(!seen.has_changed().unwrap(), "the same again is no change");
        std::fs::remove_file(&path).unwrap();
    }
}
