//! Sets of ticks of the engine.
//!
//! The engine's copies do not wait for one another, so the completion of one says nothing about earlier ones. A
//! thread that waits learns of single ticks; in time these nearly always form a few ranges.

/// A set of ticks: ranges from a first to a last one, in order, with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    ranges: Vec<(u32, u32)>,
}

impl Ticks {
    /// That many ticks, in order.
    pub(crate) fn of(ticks: impl IntoIterator<Item = u32>) -> Self {
        let mut all = Self::default();
        for tick in ticks {
            all.add((tick, tick));
        }
        all
    }

    pub(crate) fn contains(&self, tick: u32) -> bool {
        let behind = self.ranges.partition_point(|(first, _)| *first <= tick);
        behind > 0 && self.ranges[behind - 1].1 >= tick
    }

    /// Adds all ticks of another set.
    pub(crate) fn join(&mut self, other: &Self) {
        for &range in &other.ranges {
            self.add(range);
        }
    }

    fn add(&mut self, (first, last): (u32, u32)) {
        // Ranges that the new one overlaps or touches are merged with it.
        let from = self
            .ranges
            .partition_point(|(_, end)| end.saturating_add(1) < first);
        let to = self
            .ranges
            .partition_point(|(begin, _)| *begin <= last.saturating_add(1));
        let met = &self.ranges[from..to.max(from)];
        let first = met.first().map_or(first, |(begin, _)| first.min(*begin));
        let last = met.last().map_or(last, |(_, end)| last.max(*end));
        self.ranges.splice(from..to.max(from), [(first, last)]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set(parts in prop::collection::vec(prop::collection::vec(0..40u32, 0..12), 0..5)) {
            let mut ranges = Ticks::default();
            let mut plain = BTreeSet::new();
            for part in parts {
                plain.extend(part.iter().copied());
                ranges.join(&Ticks::of(part));
                for tick in 0..41 {
                    prop_assert_eq!(ranges.contains(tick), plain.contains(&tick));
                }
                let apart = ranges.ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
                prop_assert!(apart);
            }
        }
    }
}
