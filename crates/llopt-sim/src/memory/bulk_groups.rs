//! Groups of asynchronous work: which of it has been committed, and which has been waited for.

use std::collections::VecDeque;

use crate::machine::bytecode::SiteId;

/// A lane's bulk copies out of shared memory, by ticks of the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct BulkGroups {
    /// The latest copy that is in no group yet.
    open: Option<(u32, SiteId)>,
    /// The latest copy of each group that has not been waited for, oldest first.
    groups: VecDeque<Option<(u32, SiteId)>>,
}

impl BulkGroups {
    /// A copy that belongs to the next group.
    pub(crate) fn open(&mut self, tick: u32, site: SiteId) {
        self.open = Some((tick, site));
    }

    /// `commit_group`.
    pub(crate) fn commit(&mut self) {
        self.groups.push_back(self.open.take());
    }

    /// `wait_group`: the latest copy of those that are complete then.
    pub(crate) fn wait(&mut self, pending: usize) -> u32 {
        let done = self.groups.len().saturating_sub(pending);
        self.groups
            .drain(..done)
            .flatten()
            .map(|(tick, _)| tick)
            .max()
            .unwrap_or(0)
    }

    /// The site of a copy that nobody has waited for.
    pub(crate) fn unfinished(&self) -> Option<SiteId> {
        let groups = self.groups.iter().flatten();
        groups.chain(&self.open).map(|(_, site)| *site).next()
    }
}
