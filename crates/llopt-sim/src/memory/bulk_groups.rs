//! Groups of asynchronous work: what has been committed, and what has been waited for.

use std::collections::VecDeque;

use crate::machine::bytecode::SiteId;

/// A lane's bulk copies from shared memory, by ticks of the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct BulkGroups {
    /// The copies that are in no group yet.
    open: Vec<(u32, SiteId)>,
    /// The copies of each group that has not been waited for, oldest first.
    groups: VecDeque<Vec<(u32, SiteId)>>,
}

impl BulkGroups {
    /// A copy that belongs to the next group.
    pub(crate) fn open(&mut self, tick: u32, site: SiteId) {
        self.open.push((tick, site));
    }

    /// `commit_group`.
    pub(crate) fn commit(&mut self) {
        self.groups.push_back(std::mem::take(&mut self.open));
    }

    /// `wait_group`: the copies that are then complete and have not been waited for before.
    pub(crate) fn wait(&mut self, pending: usize) -> Vec<u32> {
        let done = self.groups.len().saturating_sub(pending);
        let copies = self.groups.drain(..done).flatten();
        copies.map(|(tick, _)| tick).collect()
    }

    /// The site of a copy that has not been waited for.
    pub(crate) fn unfinished(&self) -> Option<SiteId> {
        let groups = self.groups.iter().flatten();
        groups.chain(&self.open).map(|(_, site)| *site).next()
    }
}
