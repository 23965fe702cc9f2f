//! The choice of layouts as a problem of labelling: what each label costs, and what is known of each pair ([`super::bringing`]).

use std::rc::Rc;

use llopt_dialects::tables::types::RankedTensor;
use melior::ir::ValueLike;

use super::bringing::{Layouts, Manner, Way};
use super::catalog::LayoutId;
use super::cost::{is_condition, times};
use super::engine::Engine;
use super::graph::Use;
use super::labelling::{IMPOSSIBLE, Known, Problem};
use super::relation::element_bits;

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The costs of choosing among these candidates, where values may be computed once more for the uses that require
    /// them in another layout or not.
    pub(super) fn problem<'f>(
        &'f self,
        candidates: &'f [Vec<LayoutId>],
        may_compute: bool,
    ) -> Problem<'f> {
        let mut problem = Problem::new();
        for (index, (node, labels)) in self.graph.nodes.iter().zip(candidates).enumerate() {
            if self.followed(index).is_some() {
                problem.add_node(vec![0]);
                continue;
            }
            let local = self.local(node);
            let costs = labels
                .iter()
                .map(|&label| self.cost(node, local.as_ref(), label));
            problem.add_node(costs.collect());
        }
        for used in &self.graph.uses {
            let (producer, consumer) = (used.producer, used.consumer);
            if self.followed(producer).is_some() {
                continue;
            }
            let (from, to) = (&self.graph.nodes[producer], &self.graph.nodes[consumer]);
            let given: Layouts = candidates[producer]
                .iter()
                .map(|&label| self.given(from, used.shape, label))
                .collect();
            let wanted: Layouts = candidates[consumer]
                .iter()
                .map(|&label| self.wanted(to, used, label))
                .collect();
            let is_ahead = from.operation().is_some_and(|load| self.is_ahead(load));
            let tensor = RankedTensor::of(used.value.r#type());
            let manner = Manner {
                bits: tensor.map_or(32, element_bits),
                frequency: used.frequency.to_bits(),
                way: if is_ahead { Way::Ring } else { Way::Conversion },
                of_conditions: tensor.is_some_and(is_condition),
                is_whole: self.parts(consumer) == 0,
            };
            let ends = [&given, &wanted].map(Rc::clone);
            let moved = self
                .kept
                .brought
                .known(manner, ends, self.catalog, self.costs);
            let known = match may_compute && self.is_from_nothing(producer) {
                true => self.known_or_anew(used, (&given, &wanted), &moved),
                false => moved,
            };
            problem.add_edge_of(producer, consumer, known, move |from, to| {
                match (given[from], wanted[to]) {
                    (Some(from), Some(to)) if may_compute => self.brought(used, from, to),
                    (Some(from), Some(to)) => times(self.moved(used, from, to), used.frequency),
                    _ => IMPOSSIBLE,
                }
            });
        }
        for factor in &self.graph.factors {
            let (products, factors) = (&candidates[factor.product], &candidates[factor.node]);
            let frequency = self.graph.nodes[factor.product].frequency;
            problem.add_edge(factor.product, factor.node, move |product, label| {
                let cost = self.taken(factor, products[product], factors[label]);
                cost.map_or(IMPOSSIBLE, |cost| times(cost, frequency))
            });
        }
        self.agree_along_k(&mut problem, candidates);
        problem
    }

    /// What is known of bringing an operand from these layouts to those, row by row, or of computing it there where that costs less.
    fn known_or_anew(
        &self,
        used: &Use<'c, 'a>,
        (given, wanted): (&[Option<LayoutId>], &[Option<LayoutId>]),
        moved: &[Known],
    ) -> Rc<[Known]> {
        let mut known = moved.to_vec();
        for (column, to) in wanted.iter().enumerate() {
            let in_registers = to.filter(|layout| !self.catalog.is_in_memory(*layout));
            let pairs = (column..known.len()).step_by(wanted.len());
            let moves = |pair: usize| known[pair].least() != 0;
            let Some(layout) = in_registers.filter(|_| pairs.clone().any(moves)) else {
                continue;
            };
            let Some(anew) = self.computed_anew(used.value, layout) else {
                continue;
            };
            for (pair, _) in pairs.zip(given).filter(|(_, given)| given.is_some()) {
                if known[pair].least() != 0 {
                    known[pair] = known[pair].min(anew);
                }
            }
        }
        known.into()
    }
}
