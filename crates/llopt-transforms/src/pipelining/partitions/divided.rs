//! Loops that are divided between a producer and consumers, and what the producer needs of them.
//!
//! What the producer needs is a slice of the loops: from the bounds of all loops and the positions of the blocks back to
//! values from outside. Of a loop it has the carried values that are needed, of its body the operations that are; so it
//! executes the same iterations as the consumers without their work. The slice has no tensors, since one warp is too few
//! for these, and no effects but loads from memory that the loops do not store to.

use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use super::super::indirect;
use super::super::loads::{BulkLoad, Load};
use super::super::running::Running;
use super::rings::Rings;
use crate::loops::needs::ancestor;
use crate::loops::view::For;

/// The fewest slots with which a product may run on.
const FEWEST_SLOTS: u64 = 2;

/// A division of loops between producer and consumers.
pub(crate) struct Division<'c, 'a> {
    pub(super) nest: Vec<For<'c, 'a>>,
    /// The loads of the innermost loop.
    pub(super) rings: Rings<'c, 'a>,
    /// Those of the loop around it that products of the innermost one read.
    pub(super) around: Rings<'c, 'a>,
    pub(super) running: Vec<Running<'c, 'a>>,
    pub(super) needs: Needs<'c, 'a>,
}

impl<'c: 'a, 'a> Division<'c, 'a> {
    /// Divides loops, which store to these parameters; the innermost has these loads, with at most so many slots, and the
    /// one around it has loads in rings of their own.
    ///
    /// # Errors
    /// Why they cannot be divided.
    pub(crate) fn of(
        nest: Vec<For<'c, 'a>>,
        loads: Vec<Load<'c, 'a>>,
        around: Rings<'c, 'a>,
        running: Vec<Running<'c, 'a>>,
        slots: u64,
        stored: &[Option<Value<'c, 'a>>],
    ) -> Result<Self, String> {
        if slots < FEWEST_SLOTS {
            return Err("two buffers for each load do not fit in shared memory".to_owned());
        }
        let of = *nest.last().ok_or("there is no loop")?;
        let rings = Rings::of(of, loads, &running, slots)?;
        let copies = rings.copies.iter().chain(&around.copies);
        let needs = Needs::of(&nest, copies.copied(), stored)?;
        Ok(Self {
            nest,
            rings,
            around,
            running,
            needs,
        })
    }

    /// Buffers for each load.
    pub(crate) fn slots(&self) -> u32 {
        self.rings.slots as u32
    }

    /// The loads.
    pub(crate) fn loads(&self) -> &[Load<'c, 'a>] {
        &self.rings.loads
    }

    /// Products that run on.
    pub(crate) fn running(&self) -> &[Running<'c, 'a>] {
        &self.running
    }
}

/// The parts of the loops that a producer needs.
pub(super) struct Needs<'c, 'a> {
    /// Operations directly in one of the loops.
    pub(super) operations: Vec<OperationRef<'c, 'a>>,
    /// For each loop, the positions of the carried values.
    pub(super) carried: Vec<Vec<usize>>,
    /// Values from outside of all loops.
    pub(super) outside: Vec<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Needs<'c, 'a> {
    /// The needs of copies in loops that store to these parameters.
    pub(super) fn of(
        nest: &[For<'c, 'a>],
        copies: impl IntoIterator<Item = BulkLoad<'c, 'a>>,
        stored: &[Option<Value<'c, 'a>>],
    ) -> Result<Self, String> {
        let mut needs = Self {
            operations: Vec::new(),
            carried: vec![Vec::new(); nest.len()],
            outside: Vec::new(),
        };
        let mut queue: Vec<Value> = Vec::new();
        for of in nest {
            queue.extend(of.bounds());
        }
        for bulk in copies {
            queue.push(bulk.copy.desc());
            queue.extend(bulk.copy.coord());
        }
        let level_of = |operation: OperationRef<'c, 'a>| {
            nest.iter().position(|of| of.operation() == operation)
        };
        while let Some(value) = queue.pop() {
            if RankedTensor::of(value.r#type()).is_some() {
                return Err("where it loads from depends on a tensor".to_owned());
            }
            if nest[0].is_outside(value) {
                if !needs.outside.contains(&value) {
                    needs.outside.push(value);
                }
                continue;
            }
            let of_loop = match value.argument_of() {
                Some((block, index)) => {
                    let level = block.parent_operation().and_then(level_of);
                    // Arguments of other blocks are created with the copy of their operation.
                    let Some(level) = level else { continue };
                    match index.checked_sub(1) {
                        Some(index) => Some((level, index)),
                        None => continue,
                    }
                }
                None => {
                    let level = value.defining_op().and_then(level_of);
                    level.zip(value.result_index())
                }
            };
            if let Some((level, index)) = of_loop {
                if !needs.carried[level].contains(&index) {
                    needs.carried[level].push(index);
                    queue.extend([nest[level].initial()[index], nest[level].yielded()[index]]);
                }
                continue;
            }
            let operation = value
                .defining_op()
                .and_then(|maker| nest.iter().rev().find_map(|of| directly_in(*of, maker)));
            let Some(operation) = operation.filter(|op| !needs.operations.contains(op)) else {
                continue;
            };
            let loads = indirect::may_feed(operation, stored);
            if !loads && !operation.is_memory_effect_free() {
                return Err(format!(
                    "where it loads from depends on {}",
                    operation.name_str()
                ));
            }
            needs.operations.push(operation);
            operation.for_each_op(Walk::PreOrder, |inner| queue.extend(inner.operand_values()));
        }
        for carried in &mut needs.carried {
            carried.sort_unstable();
        }
        Ok(needs)
    }
}

/// The operation of a loop's body that an operation is or is nested in, if it is in that loop.
fn directly_in<'c: 'a, 'a>(
    of: For<'c, 'a>,
    operation: OperationRef<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    (operation.is_within(of.operation()) && operation != of.operation())
        .then(|| ancestor(of, operation))
        .flatten()
}
