//! The consumers of a division: the kernel's own loops, which read the data that the producer copies.

use llopt_dialects::ttg::effects::ARRIVES_BY_WARP;
use llopt_dialects::ttng::{ArriveBarrierOp, WaitBarrierOp};
use llopt_mlir::ir::{OperationExt, ValueExt, attr};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, OperationRef, Type, Value};

use super::super::running::{complete_behind, keep_running};
use super::ASKS;
use super::channels::{Channels, next, slot};
use super::divided::Division;
use super::rings::{Rings, buffer_of, later, readers};
use crate::loops::builder::Arithmetic;
use crate::loops::carried;
use crate::loops::motion::sink_behind;
use crate::loops::view::For;

/// Carries the number of a slot and its phase through all loops, which are created anew; returns the innermost.
fn count_slots<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    division: &Division<'c, 'a>,
    location: Location<'c>,
) -> Option<For<'c, 'a>> {
    let slots = division.rings.slots;
    let number: Type = IntegerType::new(rewriter.context(), 32).into();
    let zero = Arithmetic { rewriter, location }.constant(number, 0);
    let inner = *division.nest.last()?;
    let inner = carried::add(rewriter, inner, &[zero; 2], |rewriter, _, arguments| {
        next(rewriter, location, [arguments[0], arguments[1]], slots).to_vec()
    });
    let mut below = inner;
    for &outer in division.nest.iter().rev().skip(1) {
        let of_below = below.results();
        let results = of_below[of_below.len() - 2..].to_vec();
        let outer = carried::add(rewriter, outer, &[zero; 2], |_, _, _| results);
        let arguments = outer.carried();
        let mut initial = below.initial();
        let own = initial.len() - 2;
        initial[own..].copy_from_slice(&arguments[arguments.len() - 2..]);
        below.set_initial(&initial);
        below = outer;
    }
    below.operation().remove_attr(ASKS);
    Some(inner)
}

/// The slot before a slot.
fn slot_before<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    index: Value<'c, 'a>,
    slots: usize,
) -> Value<'c, 'a> {
    let number: Type = IntegerType::new(rewriter.context(), 32).into();
    let mut arithmetic = Arithmetic { rewriter, location };
    let one = arithmetic.constant(number, 1);
    let last = arithmetic.constant(number, slots as i64 - 1);
    let is_first = arithmetic.is_below(index, one, false);
    let lower = arithmetic.subtract(index, one);
    arithmetic.select(is_first, last, lower)
}

/// The context for releasing slots.
struct Giving<'d, 'c, 'a> {
    rings: &'d Rings<'c, 'a>,
    channels: &'d Channels<'c, 'a>,
    warps: u32,
    location: Location<'c>,
}

impl<'c: 'a, 'a> Giving<'_, 'c, 'a> {
    /// Each warp arrives at the barrier of a slot that it has read.
    fn give_back(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        group: usize,
        index: Value<'c, 'a>,
        condition: Option<Value<'c, 'a>>,
    ) -> Option<()> {
        let of = &self.rings.groups[group].barrier;
        let barrier = slot(
            rewriter,
            self.location,
            of,
            self.channels.empty[group],
            index,
        )?;
        let arrive =
            ArriveBarrierOp::build(self.location, barrier, i64::from(self.warps), condition);
        let arrive = rewriter.insert(arrive);
        arrive.set_attr(ARRIVES_BY_WARP, attr::unit(arrive.ctx()));
        Some(())
    }
}

/// Makes the readers of the loads' buffers read slots, and removes the copies.
fn read_rings<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    rings: &Rings<'c, 'a>,
    channels: &Channels<'c, 'a>,
    index: Value<'c, 'a>,
) -> Option<()> {
    for (load, bulk) in rings.loads.iter().zip(&rings.copies) {
        let buffer = buffer_of(load)?;
        rewriter.set_before(buffer.operation());
        let ring = channels.rings[rings.loads.iter().position(|own| std::ptr::eq(own, load))?];
        let view = slot(rewriter, buffer.operation().loc(), &load.slot, ring, index)?;
        bulk.copy.operation().erase();
        bulk.expect.operation().erase();
        bulk.wait.operation().erase();
        for operation in bulk.barrier {
            operation.erase();
        }
        buffer.result().replace_all_uses(view);
        buffer.operation().erase();
    }
    Some(())
}

/// Makes the loops read the producer's data; returns the innermost.
pub(super) fn consume<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    division: &Division<'c, 'a>,
    [channels, around]: [&Channels<'c, 'a>; 2],
    warps: u32,
) -> Option<For<'c, 'a>> {
    let root = *division.nest.first()?;
    let location = root.operation().loc();
    rewriter.set_before(root.operation());
    let of = count_slots(rewriter, division, location)?;
    let arguments = of.carried();
    let (index, phase) = (
        arguments[arguments.len() - 2],
        arguments[arguments.len() - 1],
    );

    let rings = &division.rings;
    let giving = Giving {
        rings,
        channels,
        warps,
        location,
    };
    let late: Vec<usize> = (0..rings.groups.len())
        .filter(|&group| rings.groups[group].last.is_none())
        .collect();

    // Waits, and releases of slots that all have read.
    for (number, group) in rings.groups.iter().enumerate() {
        rewriter.set_before(group.first);
        let at = group.first.loc();
        let full = slot(rewriter, at, &group.barrier, channels.full[number], index)?;
        rewriter.insert(WaitBarrierOp::build(at, full, phase, None, &[]));
        if let Some(last) = group.last {
            rewriter.set_after(last);
            giving.give_back(rewriter, number, index, None)?;
        }
    }
    // No product is running after the loop.
    let behind = complete_behind(rewriter, of, &division.running)?.pop();
    if !late.is_empty() {
        rewriter.set_after(behind.unwrap_or(of.operation()));
        let results = of.results();
        let last = slot_before(rewriter, location, results[results.len() - 2], rings.slots);
        let mut arithmetic = Arithmetic { rewriter, location };
        let any = arithmetic.is_below(of.lower(), of.upper(), of.is_unsigned());
        for &group in &late {
            giving.give_back(rewriter, group, last, Some(any))?;
        }
    }
    read_rings(rewriter, rings, channels, index)?;
    // Each iteration waits for the product of the one before.
    let wait = keep_running(rewriter, of, &division.running)?.pop();
    if let Some(wait) = wait.filter(|_| !late.is_empty()) {
        rewriter.set_after(wait);
        let last = slot_before(rewriter, location, index, rings.slots);
        let mut arithmetic = Arithmetic { rewriter, location };
        let any = arithmetic.is_below(of.lower(), of.number(), of.is_unsigned());
        for &group in &late {
            giving.give_back(rewriter, group, last, Some(any))?;
        }
    }
    read_around(rewriter, division, around, warps, of, behind)?;
    if behind.is_some() {
        // Where a tile is stored is computed while its last product runs.
        sink_behind(of);
    }
    Some(of)
}

/// Makes products read what the producer copies for the loop around theirs, which is released when the last of them is
/// complete.
fn read_around<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    division: &Division<'c, 'a>,
    channels: &Channels<'c, 'a>,
    warps: u32,
    inner: For<'c, 'a>,
    behind: Option<OperationRef<'c, 'a>>,
) -> Option<()> {
    let rings = &division.around;
    if rings.loads.is_empty() {
        return Some(());
    }
    let outer = For::of(inner.operation().parent_op()?)?;
    let location = outer.operation().loc();
    rewriter.set_before(outer.operation());
    let number: Type = IntegerType::new(rewriter.context(), 32).into();
    let zero = Arithmetic { rewriter, location }.constant(number, 0);
    let outer = carried::add(rewriter, outer, &[zero; 2], |rewriter, _, arguments| {
        next(
            rewriter,
            location,
            [arguments[0], arguments[1]],
            rings.slots,
        )
        .to_vec()
    });
    let arguments = outer.carried();
    let [.., index, phase] = arguments[..] else {
        return None;
    };
    let giving = Giving {
        rings,
        channels,
        warps,
        location,
    };
    for (number, group) in rings.groups.iter().enumerate() {
        let wait = rings.copies[*group.members.first()?].wait.operation();
        rewriter.set_before(wait);
        let full = slot(
            rewriter,
            wait.loc(),
            &group.barrier,
            channels.full[number],
            index,
        )?;
        rewriter.insert(WaitBarrierOp::build(wait.loc(), full, phase, None, &[]));
        let mut last = behind.unwrap_or(inner.operation());
        for &member in &group.members {
            for reader in readers(outer, &rings.loads[member], &rings.copies[member])? {
                last = later(last, reader);
            }
        }
        rewriter.set_after(last);
        giving.give_back(rewriter, number, index, None)?;
    }
    read_rings(rewriter, rings, channels, index)
}
