//! The producer of a division: one warp, with the copies and what their addresses and the loops around them need
//! ([`super::divided`]).
//!
//! It has the loops of the consumers with the carried values that it needs, and carries the number of its next slot and the
//! phase of that through all of them. Before the first copy of a group it waits until the slot is empty, and sets how many
//! bytes make it full; each copy then arrives at the group's barrier by itself.

use llopt_dialects::ttng::{AsyncTMACopyGlobalToLocalOp, BarrierExpectOp, WaitBarrierOp};
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::Value;
use melior::ir::r#type::IntegerType;

use super::channels::{Channels, next, slot};
use super::divided::Division;
use super::rings::Rings;
use crate::loops::builder::{Arithmetic, yield_values};
use crate::loops::clone::Mapping;
use crate::loops::view::For;

/// Inserts the producer of a division, for the channels of the innermost loop and of the one around it; `mapping` has the names
/// of what it takes from outside.
pub(super) fn produce<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    division: &Division<'c, 'a>,
    channels: [&Channels<'c, 'a>; 2],
    mapping: Mapping<'c, 'a>,
) -> Option<()> {
    let location = division.nest.first()?.operation().loc();
    let number = IntegerType::new(rewriter.context(), 32).into();
    let mut arithmetic = Arithmetic { rewriter, location };
    let first = [0, 1].map(|value| arithmetic.constant(number, value));
    let [channels, around] = channels.map(|of| of.renamed(&mapping));
    let mut producer = Producer {
        rewriter,
        channels,
        around,
        mapping,
        division,
    };
    producer.run(0, first).map(|_| ())
}

/// The code of the producer during its insertion.
struct Producer<'r, 'd, 'c, 'a> {
    rewriter: &'r mut Rewriter<'c, 'a>,
    /// Those of the innermost loop, and of the loop around it.
    channels: Channels<'c, 'a>,
    around: Channels<'c, 'a>,
    mapping: Mapping<'c, 'a>,
    division: &'d Division<'c, 'a>,
}

impl<'c: 'a, 'a> Producer<'_, '_, 'c, 'a> {
    /// One of the loops with its contents, from a slot and a phase on; returns the slot and the phase after it.
    fn run(&mut self, level: usize, state: [Value<'c, 'a>; 2]) -> Option<[Value<'c, 'a>; 2]> {
        let of = self.division.nest[level];
        let location = of.operation().loc();
        let kept = &self.division.needs.carried[level];
        let mut initial: Vec<Value> = kept
            .iter()
            .map(|&index| self.mapping.get(of.initial()[index]))
            .collect();
        initial.extend(state);
        // A ring of the loop around begins as the others do.
        let has_around = level == 0 && !self.division.around.loads.is_empty();
        if has_around {
            initial.extend(state);
        }
        let attributes = of.operation().attrs();
        let attributes: Vec<_> = attributes
            .into_iter()
            .filter(|(name, _)| *name == "unsignedCmp")
            .collect();
        let bounds = of.bounds().map(|bound| self.mapping.get(bound));
        let own = For::build(self.rewriter, location, bounds, &initial, &attributes);
        self.mapping.map(of.number(), own.number());
        let arguments = own.carried();
        for (&index, &argument) in kept.iter().zip(&arguments) {
            self.mapping.map(of.carried()[index], argument);
        }
        let mut state = [arguments[kept.len()], arguments[kept.len() + 1]];
        let of_around = has_around.then(|| [arguments[kept.len() + 2], arguments[kept.len() + 3]]);
        self.rewriter.set_to_end(own.body());
        let inner = self.division.nest.get(level + 1).copied();
        let mut open = vec![false; self.division.rings.groups.len()];
        let mut open_around = vec![false; self.division.around.groups.len()];
        let division = self.division;
        for operation in of.operations() {
            let copied = |rings: &Rings<'c, 'a>| {
                let mut copies = rings.copies.iter();
                copies.position(|bulk| bulk.copy.operation() == operation)
            };
            if inner.is_some_and(|inner| inner.operation() == operation) {
                state = self.run(level + 1, state)?;
                self.rewriter.set_to_end(own.body());
            } else if let Some(load) = copied(&division.rings) {
                let channels = self.channels.clone();
                self.copy(&division.rings, &channels, load, state, &mut open)?;
            } else if let Some((load, state)) = copied(&division.around).zip(of_around) {
                let channels = self.around.clone();
                self.copy(&division.around, &channels, load, state, &mut open_around)?;
            } else if self.division.needs.operations.contains(&operation) {
                self.mapping.copy(self.rewriter, operation);
            }
        }
        if inner.is_none() {
            state = next(self.rewriter, location, state, division.rings.slots);
        }
        let of_around =
            of_around.map(|state| next(self.rewriter, location, state, division.around.slots));
        let yielded = of.yielded();
        let mut values: Vec<Value> = kept
            .iter()
            .map(|&index| self.mapping.get(yielded[index]))
            .collect();
        values.extend(state);
        values.extend(of_around.into_iter().flatten());
        yield_values(self.rewriter, location, &values);
        let results = own.results();
        for (&index, &result) in kept.iter().zip(&results) {
            self.mapping.map(of.results()[index], result);
        }
        Some([results[kept.len()], results[kept.len() + 1]])
    }

    /// A copy; before the first one of its group, the producer waits for the slot and sets the number of expected
    /// bytes.
    fn copy(
        &mut self,
        rings: &Rings<'c, 'a>,
        channels: &Channels<'c, 'a>,
        load: usize,
        [index, phase]: [Value<'c, 'a>; 2],
        open: &mut [bool],
    ) -> Option<()> {
        let bulk = rings.copies[load];
        let location = bulk.copy.operation().loc();
        let groups = &rings.groups;
        let number = groups
            .iter()
            .position(|group| group.members.contains(&load))?;
        let group = &groups[number];
        let truth = IntegerType::new(self.rewriter.context(), 1).into();
        let mut arithmetic = Arithmetic {
            rewriter: self.rewriter,
            location,
        };
        let always = arithmetic.constant(truth, 1);
        if !std::mem::replace(&mut open[number], true) {
            let empty = channels.empty[number];
            let empty = slot(self.rewriter, location, &group.barrier, empty, index)?;
            self.rewriter
                .insert(WaitBarrierOp::build(location, empty, phase, None, &[]));
            let full = channels.full[number];
            let full = slot(self.rewriter, location, &group.barrier, full, index)?;
            let expect = BarrierExpectOp::build(location, full, group.bytes, always);
            self.rewriter.insert(expect);
        }
        let full = channels.full[number];
        let full = slot(self.rewriter, location, &group.barrier, full, index)?;
        let (of, ring) = (&rings.loads[load].slot, channels.rings[load]);
        let to = slot(self.rewriter, location, of, ring, index)?;
        let coordinates = bulk.copy.coord();
        let coordinates: Vec<Value> = coordinates
            .into_iter()
            .map(|value| self.mapping.get(value))
            .collect();
        self.rewriter.insert(AsyncTMACopyGlobalToLocalOp::build(
            location,
            self.mapping.get(bulk.copy.desc()),
            &coordinates,
            full,
            to,
            always,
            bulk.copy.cache(),
            bulk.copy.evict(),
            bulk.copy.is_volatile(),
        ));
        Some(())
    }
}
