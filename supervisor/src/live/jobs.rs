//! The rows of all jobs, in the order of a listing, and what cannot be read. What must never be here: when to look.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use state_machine::id::JobId;
use state_machine::liveness::needs_probe;
use state_machine::protocol::look::View;

use crate::store::made_at_ms;

/// What jobs are ordered by: when they were made, and together with which others.
type Order = (u64, u32, JobId);

/// All jobs, as they were last seen.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    rows: BTreeMap<Order, Arc<View>>,
    orders: HashMap<JobId, Order>,
    /// Those of which a lock tells more than their records, or that have not ended.
    unsettled: BTreeSet<JobId>,
}

/// Whether the records alone say everything about a job, and for good.
pub(super) fn is_settled(view: &View) -> bool {
    !needs_probe(&view.status) && !view.held && !view.leftovers
}

impl Jobs {
    /// Every job, oldest first.
    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = &Arc<View>> {
        self.rows.values()
    }

    /// One job.
    pub(super) fn row(&self, id: &JobId) -> Option<&Arc<View>> {
        self.rows.get(self.orders.get(id)?)
    }

    /// Those that are not settled.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &JobId> {
        self.unsettled.iter()
    }

    /// The ids of all.
    pub(super) fn ids(&self) -> impl Iterator<Item = &JobId> {
        self.orders.keys()
    }

    /// A job is like this. Whether that is new.
    pub(super) fn put(&mut self, view: View) -> bool {
        if self
            .row(&view.descriptor.id)
            .is_some_and(|row| **row == view)
        {
            return false;
        }
        let id = view.descriptor.id.clone();
        if is_settled(&view) {
            self.unsettled.remove(&id);
        } else {
            self.unsettled.insert(id.clone());
        }
        let order = (made_at_ms(id.as_str()), view.descriptor.order, id.clone());
        if let Some(before) = self.orders.insert(id, order.clone())
            && before != order
        {
            self.rows.remove(&before);
        }
        self.rows.insert(order, Arc::new(view));
        true
    }

    /// A job is gone, or cannot be read. Whether it was there.
    pub(super) fn remove(&mut self, id: &JobId) -> bool {
        self.unsettled.remove(id);
        let Some(order) = self.orders.remove(id) else {
            return false;
        };
        self.rows.remove(&order).is_some()
    }
}
