//! Labels that others are never dearer than.

use super::Problem;
use super::cost::{Cost, IMPOSSIBLE};
use super::edges::Edge;

/// How often all nodes are searched for dominated labels at most. What one pass finds lets the next
/// find more; on programs the second pass finds little and the third next to nothing.
const MOST_PASSES: usize = 3;

impl Problem<'_> {
    /// The labels of each node, without those that others dominate.
    pub(super) fn without_dominated(&self, neighbours: &[Vec<Edge<'_, '_>>]) -> Vec<Vec<usize>> {
        let mut useful: Vec<Vec<usize>> = self
            .nodes
            .iter()
            .map(|costs| (0..costs.len()).collect())
            .collect();
        for _ in 0..MOST_PASSES {
            let mut dropped = false;
            for node in 0..self.nodes.len() {
                if useful[node].len() < 2 {
                    continue;
                }
                let samples = self.samples(node, &neighbours[node], &useful);
                let mut position = useful[node].len();
                while position > 0 && useful[node].len() > 1 {
                    position -= 1;
                    let label = useful[node][position];
                    let dominated = useful[node].iter().any(|&other| {
                        other != label
                            && !is_refuted(&samples, other, label)
                            && self.dominates(node, other, label, &neighbours[node], &useful)
                    });
                    if dominated {
                        useful[node].remove(position);
                        dropped = true;
                    }
                }
            }
            if !dropped {
                break;
            }
        }
        useful
    }

    /// What each label of a node costs with all around it where each neighbour has its first useful label, and where each
    /// has its last one.
    fn samples(
        &self,
        node: usize,
        neighbours: &[Edge<'_, '_>],
        useful: &[Vec<usize>],
    ) -> [Vec<Cost>; 2] {
        let mut samples = [self.nodes[node].clone(), self.nodes[node].clone()];
        let [first, last] = &mut samples;
        for edge in neighbours {
            let [Some(&one), Some(&other)] =
                [useful[edge.other].first(), useful[edge.other].last()]
            else {
                continue;
            };
            for &label in &useful[node] {
                first[label] = first[label].saturating_add(edge.at(label, one));
                last[label] = last[label].saturating_add(edge.at(label, other));
            }
        }
        samples
    }

    /// Whether `better` costs no more than `label` whatever labels the neighbours have, and less if
    /// it is the later one.
    fn dominates(
        &self,
        node: usize,
        better: usize,
        label: usize,
        neighbours: &[Edge<'_, '_>],
        useful: &[Vec<usize>],
    ) -> bool {
        let costs = &self.nodes[node];
        if costs[better] == IMPOSSIBLE {
            return false;
        }
        if costs[label] == IMPOSSIBLE {
            return true;
        }
        let difference = |edge: &Edge<'_, '_>, of_other: usize| {
            let (with, without) = (edge.at(better, of_other), edge.at(label, of_other));
            match (with == IMPOSSIBLE, without == IMPOSSIBLE) {
                (true, false) => None,
                (_, true) => Some(0),
                (false, false) => Some(i128::from(with) - i128::from(without)),
            }
        };
        let is_more = |more: i128| more > 0 || more == 0 && better > label;
        // The difference of the two; edges can only be known to save what they save for all labels of the neighbour.
        // At first each counts with what it saves for one of them.
        let mut more = i128::from(costs[better]) - i128::from(costs[label]);
        for edge in neighbours {
            let Some(difference) = difference(edge, useful[edge.other][0]) else {
                return false;
            };
            more += difference;
        }
        if is_more(more) {
            return false;
        }
        for edge in neighbours {
            let [first, others @ ..] = &useful[edge.other][..] else {
                continue;
            };
            let Some(mut most) = difference(edge, *first) else {
                return false;
            };
            for &of_other in others {
                let Some(difference) = difference(edge, of_other) else {
                    return false;
                };
                if difference > most {
                    more += difference - most;
                    most = difference;
                    if is_more(more) {
                        return false;
                    }
                }
            }
        }
        true
    }
}

/// Whether `better` costs more than `label`, or as much and is the later one, for some labels of the neighbours, by the costs
/// with these ([`Problem::samples`]). It refutes most pairs, and takes a fraction of the time of a look at all.
fn is_refuted(samples: &[Vec<Cost>; 2], better: usize, label: usize) -> bool {
    samples.iter().any(|costs| {
        // What is impossible with some label of a neighbour says nothing of the other labels.
        costs[label] != IMPOSSIBLE
            && (costs[better] > costs[label] || costs[better] == costs[label] && better > label)
    })
}
