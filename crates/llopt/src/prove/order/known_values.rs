//! The known values that are handed on from iteration to iteration, and which of them take too many.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::skeleton::Slot;

/// Known values that a value handed on takes before it gets names: more than the places of a ring.
const MOST: usize = 32;

/// The known values that each value handed on has taken.
#[derive(Debug, Default)]
pub(super) struct KnownValues {
    taken: HashMap<Slot, BTreeSet<i64>>,
    widened: HashSet<Slot>,
}

impl KnownValues {
    /// Whether a value that has a known value now gets a name nevertheless; `None` if it is the first time.
    pub(super) fn is_widened(&mut self, slot: Slot, value: i64) -> Option<bool> {
        if self.widened.contains(&slot) {
            return Some(true);
        }
        let taken = self.taken.entry(slot).or_default();
        taken.insert(value);
        if taken.len() <= MOST {
            return Some(false);
        }
        self.widened.insert(slot);
        None
    }
}
