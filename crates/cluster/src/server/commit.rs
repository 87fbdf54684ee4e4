//! Writes, and what follows from them at once.

use super::definitions::definitions;
use super::{ApiServer, rules};
use crate::store::{Change, Commit, CommitError, Object};
use std::sync::Arc;

impl ApiServer {
    /// Does a write, or nothing. When this returns, the kinds of a new definition are served and a new namespace has
    /// its service account.
    pub(super) fn commit(&self, commit: Commit) -> Result<Arc<Object>, CommitError> {
        let is_definition = definitions() == Some(commit.id);
        let is_new_namespace =
            rules::namespaces() == Some(commit.id) && matches!(commit.change, Change::Create(_));
        let object = self.store.commit(commit)?;
        if is_definition {
            self.serve_definitions();
        }
        if is_new_namespace {
            self.create_default_account(&object.key().name);
        }
        Ok(object)
    }
}
