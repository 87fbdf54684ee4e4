//! Disruption budgets: facts for whoever takes room away from pods.

use super::super::Core;
use std::collections::BTreeMap;
use tutti_k8s::{BudgetReading, ObjectKind};
use tutti_model::{ObjectKey, Time};

/// Budgets that were understood.
#[derive(Debug, Default)]
pub(in super::super) struct Budgets(BTreeMap<ObjectKey, BudgetReading>);

impl Budgets {
    /// Names of all of them.
    pub(in super::super) fn names(&self) -> Vec<ObjectKey> {
        self.0.keys().cloned().collect()
    }
}

impl Core {
    pub(in super::super) fn budget_set(&mut self, reading: BudgetReading, now: Time) {
        let pods = &reading.pods;
        let (key, uid, errors) = (pods.key.clone(), pods.uid.clone(), pods.errors.clone());
        if self.understood(ObjectKind::Budget, &key, &uid, errors, now) {
            self.budgets.0.insert(key, reading);
        } else {
            self.budget_gone(&key);
        }
    }

    pub(in super::super) fn budget_gone(&mut self, key: &ObjectKey) {
        self.budgets.0.remove(key);
    }
}
