//! Values for each label of each node, one node after the other.
//!
//! Nodes have five labels or so, and passes visit them all many times: one vector for all takes a fraction of the time that one
//! for each node would.

use std::ops::{Index, IndexMut, Range};

/// Values for the labels that are left of each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PerLabel<T> {
    values: Vec<T>,
    /// Where those of each node begin, and behind it the end of the last one.
    first: Vec<usize>,
}

impl<T> PerLabel<T> {
    /// The values of no nodes.
    pub(super) fn new() -> Self {
        Self {
            values: Vec::new(),
            first: vec![0],
        }
    }

    /// Adds the values of the next node.
    pub(super) fn push(&mut self, values: impl IntoIterator<Item = T>) {
        self.values.extend(values);
        self.first.push(self.values.len());
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// The places of the values of a node among all.
    pub(super) fn places(&self, node: usize) -> Range<usize> {
        self.first[node]..self.first[node + 1]
    }

    /// The values of each node.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        self.first
            .windows(2)
            .map(|ends| &self.values[ends[0]..ends[1]])
    }

    /// The values of all nodes.
    pub(super) fn all(&self) -> &[T] {
        &self.values
    }

    /// The same numbers of values, all of them this one, in the room that there is.
    pub(super) fn fill_like<U>(&mut self, other: &PerLabel<U>, value: T)
    where
        T: Clone,
    {
        self.first.clone_from(&other.first);
        self.values.clear();
        self.values.resize(other.values.len(), value);
    }

    /// Forgets the values of labels that are not kept.
    pub(super) fn retain(&mut self, is_kept: &PerLabel<bool>) {
        let mut kept = is_kept.values.iter();
        self.values.retain(|_| kept.next() == Some(&true));
        let mut end = 0;
        for (node, kept) in is_kept.iter().enumerate() {
            end += kept.iter().filter(|kept| **kept).count();
            self.first[node + 1] = end;
        }
    }
}

impl<T> Index<usize> for PerLabel<T> {
    type Output = [T];

    fn index(&self, node: usize) -> &[T] {
        &self.values[self.places(node)]
    }
}

impl<T> IndexMut<usize> for PerLabel<T> {
    fn index_mut(&mut self, node: usize) -> &mut [T] {
        let places = self.places(node);
        &mut self.values[places]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_not_kept_are_forgotten() {
        let mut numbers = PerLabel::new();
        let mut is_kept = PerLabel::new();
        for (values, kept) in [
            ([1, 2, 3], [true, false, true]),
            ([4, 5, 6], [false; 3]),
            ([7, 8, 9], [true; 3]),
        ] {
            numbers.push(values);
            is_kept.push(kept);
        }
        numbers.retain(&is_kept);
        let left: Vec<&[i32]> = numbers.iter().collect();
        assert_eq!(left, [&[1, 3][..], &[], &[7, 8, 9]]);
        assert_eq!(numbers[2], [7, 8, 9]);
    }
}
