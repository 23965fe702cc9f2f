//! The loads of a loop that go through rings of buffers, which the producer fills and the consumers read.
//!
//! Loads that are read first at the same place form a *group*: they are waited for together, and their slots are released
//! together, so a group has one pair of barriers for each slot. A group whose last reader is a product that runs on is
//! released where that product is known to be complete.

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::{MemDesc, MemDescParts};
use llopt_dialects::ttg::LocalAllocOp;
use llopt_mlir::ir::{OperationExt, ValueExt};
use melior::ir::{OperationRef, Value, ValueLike};

use super::super::loads::{BulkLoad, Load, Source};
use super::super::running::Running;
use crate::loops::needs::ancestor;
use crate::loops::view::For;

/// Copies that are read first at one place.
pub(super) struct Group<'c, 'a> {
    /// The positions of the loads.
    pub(super) members: Vec<usize>,
    /// Bytes of all copies.
    pub(super) bytes: i64,
    /// The first operation that reads them.
    pub(super) first: OperationRef<'c, 'a>,
    /// The last operation that reads them; `None` if that is a product that runs on.
    pub(super) last: Option<OperationRef<'c, 'a>>,
    /// The type of one of its barriers.
    pub(super) barrier: MemDescParts<'c>,
}

/// Loads of a loop that go through rings of buffers.
pub(crate) struct Rings<'c, 'a> {
    pub(super) loads: Vec<Load<'c, 'a>>,
    pub(super) copies: Vec<BulkLoad<'c, 'a>>,
    pub(super) groups: Vec<Group<'c, 'a>>,
    pub(super) slots: usize,
}

impl<'c: 'a, 'a> Rings<'c, 'a> {
    /// Rings for no loads.
    pub(crate) fn none() -> Self {
        Self {
            loads: Vec::new(),
            copies: Vec::new(),
            groups: Vec::new(),
            slots: 0,
        }
    }

    /// Rings of so many slots for loads of a loop, in which these products run on.
    ///
    /// # Errors
    /// Why they cannot go through rings.
    pub(crate) fn of(
        of: For<'c, 'a>,
        loads: Vec<Load<'c, 'a>>,
        running: &[Running<'c, 'a>],
        slots: u64,
    ) -> Result<Self, String> {
        let mut copies = Vec::new();
        for load in &loads {
            match load.source {
                Source::Bulk(bulk) => copies.push(bulk),
                Source::Load(..) => {
                    return Err("a factor is loaded by pointers, by many threads".to_owned());
                }
            }
        }
        let always = |value: Value<'c, 'a>| {
            ConstantOp::defining(value)
                .is_some_and(|constant| !fold::is_zero(constant.operation().attr("value")))
        };
        if !copies
            .iter()
            .all(|bulk| always(bulk.copy.pred()) && always(bulk.expect.pred()))
        {
            return Err("a copy is under a condition".to_owned());
        }
        let mut groups: Vec<Group> = Vec::new();
        for (index, (load, bulk)) in loads.iter().zip(&copies).enumerate() {
            let readers = readers(of, load, bulk).ok_or("nothing is known of who reads it")?;
            let runs = |reader: &OperationRef<'c, 'a>| {
                running
                    .iter()
                    .any(|running| running.product.operation() == *reader)
            };
            let last = match readers.iter().any(runs) {
                true => None,
                false => readers.iter().copied().reduce(later),
            };
            let bytes = bulk.expect.size();
            let group = groups.iter_mut().find(|group| group.first == load.reader);
            let Some(group) = group else {
                let barrier = MemDesc::of(bulk.expect.alloc().r#type());
                groups.push(Group {
                    members: vec![index],
                    bytes,
                    first: load.reader,
                    last,
                    barrier: barrier
                        .and_then(MemDesc::parts)
                        .ok_or("its barrier has no layout")?,
                });
                continue;
            };
            group.members.push(index);
            group.bytes += bytes;
            group.last = match (group.last, last) {
                (Some(one), Some(other)) => Some(later(one, other)),
                _ => None,
            };
        }
        Ok(Self {
            loads,
            copies,
            groups,
            slots: usize::try_from(slots).unwrap_or(usize::MAX),
        })
    }
}

pub(super) fn later<'c: 'a, 'a>(
    one: OperationRef<'c, 'a>,
    other: OperationRef<'c, 'a>,
) -> OperationRef<'c, 'a> {
    if one.is_before(other) { other } else { one }
}

/// The operations of a body that read the data of a copy.
pub(super) fn readers<'c: 'a, 'a>(
    of: For<'c, 'a>,
    load: &Load<'c, 'a>,
    bulk: &BulkLoad<'c, 'a>,
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut values = vec![buffer_of(load)?.result()];
    let mut readers = Vec::new();
    while let Some(value) = values.pop() {
        for user in value.users().filter(|user| *user != bulk.copy.operation()) {
            let views = user
                .result_values()
                .filter(|view| MemDesc::of(view.r#type()).is_some());
            let views: Vec<Value> = views.collect();
            match views.is_empty() || !user.is_memory_effect_free() {
                true => readers.push(ancestor(of, user)?),
                false => values.extend(views),
            }
        }
    }
    (!readers.is_empty()).then_some(readers)
}

pub(super) fn buffer_of<'c: 'a, 'a>(load: &Load<'c, 'a>) -> Option<LocalAllocOp<'c, 'a>> {
    load.reads.buffers.first().copied()
}
