//! How the users of a tensor read it that is loaded ahead, once it is in a ring of buffers.
//!
//! The users of a load are buffers that it is stored to, conversions to other layouts, and ops that take it as it is. In a ring
//! the tensor has two ways to its users. They may read it *apart*: each layout from the ring by itself, so that nothing is
//! converted. Or it is read *together*: once in the layout of the load, and converted from there as before. Which one costs less
//! is asked of the plans of both.
//!
//! A ring takes the place of the buffers that the users have, if all are of one type: products read the slots as they would read
//! those. Otherwise its layout is free, and the one is chosen with the cheapest passage from the load to all reads.

use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::tt::LoadOp;
use llopt_dialects::ttg::{ConvertLayoutOp, LocalAllocOp};
use llopt_mlir::ir::ValueExt;
use llopt_plan::global_access::Groups;
use llopt_plan::plans::Plans;
use llopt_plan::tensor::TensorType;
use melior::ir::{Attribute, OperationRef, Type, Value, ValueLike};

use super::ring;
use crate::layouts::parts_of;

/// How the users of a load read it.
#[derive(Clone)]
pub(super) struct Reads<'c, 'a> {
    /// In memory: the buffers to which it was stored.
    pub(super) buffers: Vec<LocalAllocOp<'c, 'a>>,
    /// In registers.
    pub(super) registers: Vec<Read<'c, 'a>>,
}

/// A read of a buffer to registers.
#[derive(Clone)]
pub(super) struct Read<'c, 'a> {
    /// The type of the tensor there.
    pub(super) to: Type<'c>,
    /// The conversions that it replaces; without any, it is for the users of the load itself.
    pub(super) conversions: Vec<ConvertLayoutOp<'c, 'a>>,
}

impl Read<'_, '_> {
    /// Whether it is for factors of matrix units only.
    fn makes_factors(&self, plans: &Plans) -> bool {
        let mut conversions = self.conversions.iter();
        !self.conversions.is_empty() && conversions.all(|of| plans.makes_factor(of.operation()))
    }
}

impl<'c: 'a, 'a> Reads<'c, 'a> {
    /// The operations for which a buffer is used or read instead.
    pub(super) fn replaced(&self) -> Vec<OperationRef<'c, 'a>> {
        let buffers = self.buffers.iter().map(|buffer| buffer.operation());
        let conversions = self.registers.iter().flat_map(|read| &read.conversions);
        buffers
            .chain(conversions.map(|conversion| conversion.operation()))
            .collect()
    }
}

/// The users of a tensor that is loaded ahead.
struct Users<'c, 'a> {
    /// Buffers that it is stored to.
    buffers: Vec<LocalAllocOp<'c, 'a>>,
    /// Whether all users are buffers.
    only_buffers: bool,
    /// The others, each type of a tensor that they take as one read: of a conversion its result, of anything else the tensor
    /// itself.
    direct: Vec<Read<'c, 'a>>,
    /// What all conversions cost, if each is possible.
    converting: Option<f32>,
}

impl<'c: 'a, 'a> Users<'c, 'a> {
    fn of(result: Value<'c, 'a>, from: &TensorType, plans: &Plans) -> Self {
        let (buffers, others): (Vec<OperationRef>, Vec<OperationRef>) = result
            .users()
            .partition(|user| LocalAllocOp::of(*user).is_some());
        let mut direct: Vec<Read> = Vec::new();
        let mut is_used = false;
        for user in &others {
            let Some(conversion) = ConvertLayoutOp::of(*user) else {
                is_used = true;
                continue;
            };
            let to = conversion.result().r#type();
            match direct.iter_mut().find(|read| read.to == to) {
                Some(read) => read.conversions.push(conversion),
                None => direct.push(Read {
                    to,
                    conversions: vec![conversion],
                }),
            }
        }
        let convert = |read: &Read<'c, 'a>| {
            let conversion = read.conversions.first()?.operation();
            let plan = plans.conversion(conversion, from, &*ring::tensor(plans, read.to)?);
            plan.ok().map(|plan| plan.cost)
        };
        let converting = direct.iter().map(convert).sum();
        if is_used {
            direct.push(Read::unconverted(result));
        }
        Self {
            buffers: buffers.into_iter().filter_map(LocalAllocOp::of).collect(),
            only_buffers: others.is_empty(),
            direct,
            converting,
        }
    }

    /// The reads that cost less: of each type by itself, which cost `apart`, or `whole`, which costs `together` and is
    /// converted for the others.
    fn cheaper(
        self,
        whole: Read<'c, 'a>,
        apart: Option<f32>,
        together: Option<f32>,
    ) -> Vec<Read<'c, 'a>> {
        let together = together.zip(self.converting);
        let together = together.map(|(read, converting)| read + converting);
        match apart {
            Some(apart) if together.is_none_or(|together| apart <= together) => self.direct,
            _ => vec![whole],
        }
    }
}

impl<'c: 'a, 'a> Read<'c, 'a> {
    /// The read of a tensor as it is loaded.
    fn unconverted(result: Value<'c, 'a>) -> Self {
        Self {
            to: result.r#type(),
            conversions: Vec::new(),
        }
    }
}

/// The types that are read.
fn types<'c>(reads: &[Read<'c, '_>]) -> Vec<Type<'c>> {
    reads.iter().map(|read| read.to).collect()
}

/// How a tensor is read that is loaded ahead, the layout of its buffers, and whether copies write them.
pub(super) type Path<'c, 'a> = (Reads<'c, 'a>, Attribute<'c>, bool);

/// The path of a tensor that is loaded ahead.
///
/// Where its users are buffers, it is in those; if only some are, they have to take copies: otherwise it would be loaded to
/// registers, stored and read again for the others. Conversions become reads of the buffer where that costs less than to
/// read the tensor in the layout of the load and to convert it.
pub(super) fn path<'c: 'a, 'a>(
    load: LoadOp<'c, 'a>,
    copied: Option<&Groups>,
    brought: Option<&Groups>,
    plans: &Plans,
) -> Option<Path<'c, 'a>> {
    let result = load.result();
    let from = ring::tensor(plans, result.r#type())?;
    let mut users = Users::of(result, &from, plans);
    if let Some(first) = users.buffers.first() {
        let memory = first.result().r#type();
        let mut all = users.buffers.iter();
        let same = all.all(|buffer| buffer.result().r#type() == memory);
        let slot = MemDesc::of(memory)?.parts()?;
        let takes = |groups| ring::takes_copies(plans, result.r#type(), &slot, groups);
        let is_copied = copied.and_then(takes).unwrap_or(false);
        if same && (users.only_buffers || is_copied) {
            return Some(path_in_buffers(users, result, &slot, is_copied, plans));
        }
        users.direct = vec![Read::unconverted(result)];
    }
    path_through_ring(users, result, copied, brought, plans)
}

/// The path through a ring in place of the buffers that users have, which are all of one type.
fn path_in_buffers<'c: 'a, 'a>(
    mut users: Users<'c, 'a>,
    result: Value<'c, 'a>,
    slot: &MemDescParts<'c>,
    is_copied: bool,
    plans: &Plans,
) -> Path<'c, 'a> {
    let buffers = std::mem::take(&mut users.buffers);
    let registers = match users.only_buffers {
        true => Vec::new(),
        false => {
            let own = result.r#type();
            let apart = ring::read(plans, own, slot, &types(&users.direct));
            let together = ring::read(plans, own, slot, &[own]);
            users.cheaper(Read::unconverted(result), apart, together)
        }
    };
    let reads = Reads { buffers, registers };
    (reads, slot.encoding, is_copied)
}

/// The path through a ring whose layout is chosen for the cheapest passage; none if no ring takes the tensor.
fn path_through_ring<'c: 'a, 'a>(
    users: Users<'c, 'a>,
    result: Value<'c, 'a>,
    copied: Option<&Groups>,
    brought: Option<&Groups>,
    plans: &Plans,
) -> Option<Path<'c, 'a>> {
    let tensor = RankedTensor::of(result.r#type())?;
    let parts = parts_of(result, plans);
    let through = |reads: &[Read<'c, 'a>]| {
        let pairs = reads.iter().all(|read| read.makes_factors(plans));
        ring::between(plans, tensor, &types(reads), copied, brought, parts, pairs)
    };
    let registers = match users.direct.len() {
        1 => users.direct,
        _ => {
            let whole = Read::unconverted(result);
            let apart = through(&users.direct).map(|passage| passage.cost);
            let together = through(std::slice::from_ref(&whole)).map(|passage| passage.cost);
            users.cheaper(whole, apart, together)
        }
    };
    let passage = through(&registers)?;
    let reads = Reads {
        buffers: Vec::new(),
        registers,
    };
    Some((reads, passage.encoding, passage.is_copied))
}
