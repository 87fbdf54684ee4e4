//! What the server asks of whatever keeps the state of the cluster.

use super::{Commit, CommitError, Environment, Events, Key, Object, Page, Range, TooOld};
use crate::registry::ResourceId;
use std::sync::Arc;
use tokio::sync::watch;

/// All objects of the cluster and their recent past.
///
/// Writes are totally ordered by one revision for everything; a write is done whole or not at all, and whoever reads
/// sees either what was before or what is after it.
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Makes room for this many resources. There is never less room than before.
    fn grow(&self, resources: usize);

    /// Clock, identities and chance of this cluster.
    fn environment(&self) -> &dyn Environment;

    /// Revision of the newest write.
    fn revision(&self) -> u64;

    /// One object.
    fn get(&self, id: ResourceId, key: &Key) -> Option<Arc<Object>>;

    /// One object, if it exists, and the revision at which that was so.
    fn get_with_revision(&self, id: ResourceId, key: &Key) -> (Option<Arc<Object>>, u64);

    /// Objects as they are now.
    fn list(&self, id: ResourceId, range: Range<'_>) -> Page;

    /// How many objects there are behind a key.
    fn count(&self, id: ResourceId, range: Range<'_>) -> usize;

    /// Objects as they were at a revision, by undoing what happened since.
    fn list_at(&self, id: ResourceId, revision: u64, range: Range<'_>) -> Result<Page, TooOld>;

    /// Events after a revision, at most `max` of them.
    fn events(&self, id: ResourceId, after: u64, max: usize) -> Result<Events, TooOld>;

    /// Wakes up when this resource has events after the revision that the channel holds.
    fn subscribe(&self, id: ResourceId) -> watch::Receiver<u64>;

    /// Wakes up on every write.
    fn subscribe_all(&self) -> watch::Receiver<u64>;

    /// Tells whether a commit would be done now.
    fn check(&self, commit: &Commit) -> Result<(), CommitError>;

    /// Does a write, or nothing. The object that is returned carries its new `resourceVersion`.
    fn commit(&self, commit: Commit) -> Result<Arc<Object>, CommitError>;
}
