//! The loads of a loop that its products wait for, and how each can be issued earlier.

use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::tt::{DotOp, DotScaledOp, LoadOp};
use llopt_dialects::ttg::LocalAllocOp;
use llopt_dialects::ttng::{
    AsyncTMACopyGlobalToLocalOp, BarrierExpectOp, InitBarrierOp, InvalBarrierOp, WaitBarrierOp,
    WarpGroupDotOp,
};
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt};
use llopt_plan::global_access::{AccessKind, Addresses, GlobalAccess, Groups};
use llopt_plan::plans::Plans;
use llopt_plan::tensor::TensorType;
use llopt_target::Feature;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::reads::{Read, Reads, path};
use super::ring;
use crate::axis::AxisAnalysis;
use crate::copied_loads;
use crate::loops::advance::advance;
use crate::loops::needs::ancestor;
use crate::loops::view::For;
use crate::products::{is_product, products_in};

/// The operation that loads a tensor from global memory.
#[derive(Clone)]
pub(super) enum Source<'c, 'a> {
    /// A load, and the elements that one copy moves instead; `None` if registers are loaded and stored.
    Load(LoadOp<'c, 'a>, Option<u32>),
    /// A copy of a whole block, with a barrier of its own.
    Bulk(BulkLoad<'c, 'a>),
}

/// A copy of a block, from the allocation of its buffer to the wait for it.
#[derive(Clone, Copy)]
pub(super) struct BulkLoad<'c, 'a> {
    pub(super) copy: AsyncTMACopyGlobalToLocalOp<'c, 'a>,
    pub(super) expect: BarrierExpectOp<'c, 'a>,
    pub(super) wait: WaitBarrierOp<'c, 'a>,
    /// The operations that initialise, tell and invalidate the barrier.
    pub(super) barrier: [OperationRef<'c, 'a>; 3],
}

/// The blocks that a copy can bring into the cache (PTX ISA, `cp.async`, `.level::prefetch_size`).
const BLOCKS: [u32; 3] = [64, 128, 256];

/// Registers of a pointer.
pub(crate) const POINTER: u32 = 2;

/// A load whose tensor passes through a ring of buffers.
#[derive(Clone)]
pub(super) struct Load<'c, 'a> {
    pub(super) source: Source<'c, 'a>,
    pub(super) reads: Reads<'c, 'a>,
    /// One buffer.
    pub(super) slot: MemDescParts<'c>,
    /// Its bytes.
    pub(super) bytes: u64,
    /// Those of them that are adjacent in global memory, as far as is known.
    pub(super) run: u64,
    /// The bytes of the aligned blocks of global memory that a copy should bring into the cache.
    pub(super) cached_block: Option<u32>,
    /// The first operation that reads it.
    pub(super) reader: OperationRef<'c, 'a>,
    /// Elements of each access of a thread, if threads access it.
    width: u32,
}

/// The products of a body that are in none of its conditionals.
pub(super) fn products<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let all = of.operations().into_iter();
    all.filter(|operation| is_product(*operation)).collect()
}

/// All products of a body, those in its conditionals included.
pub(super) fn all_products<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    products_in(of.operation())
}

/// The operations within another one from which factors of products are made: loads, and what leads from these to the
/// products.
pub(super) fn leading_to<'c: 'a, 'a>(
    products: &[OperationRef<'c, 'a>],
    within: OperationRef<'c, 'a>,
) -> Vec<OperationRef<'c, 'a>> {
    let mut queue: Vec<Value> = Vec::new();
    for product in products {
        let sum = product_sum(*product);
        queue.extend(product.operand_values().filter(|value| Some(*value) != sum));
    }
    let mut seen: Vec<OperationRef> = Vec::new();
    while let Some(value) = queue.pop() {
        let Some(operation) = value.defining_op() else {
            continue;
        };
        if seen.contains(&operation) || !operation.is_within(within) {
            continue;
        }
        seen.push(operation);
        // The operands of a load or a product are a separate question.
        if LoadOp::of(operation).is_none() && !is_product(operation) {
            queue.extend(operation.operand_values());
        }
    }
    seen
}

/// The loads of the factors of products, in the order of the program: loads of tensors, and buffers to which blocks
/// are copied.
pub(super) fn of_products<'c: 'a, 'a>(
    of: For<'c, 'a>,
    products: &[OperationRef<'c, 'a>],
) -> Vec<OperationRef<'c, 'a>> {
    let seen = leading_to(products, of.operation());
    let all = of.operations().into_iter();
    let is_load = |operation: &OperationRef<'c, 'a>| {
        let load = LoadOp::of(*operation);
        load.is_some_and(|load| RankedTensor::of(load.result().r#type()).is_some())
            || LocalAllocOp::of(*operation).is_some_and(|buffer| buffer.src().is_none())
    };
    all.filter(|operation| seen.contains(operation) && is_load(operation))
        .collect()
}

/// The operands of a load of [`of_products`] that determine what it loads.
pub(super) fn address_operands<'c: 'a, 'a>(load: OperationRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    let copy = LocalAllocOp::of(load).and_then(|buffer| {
        let mut users = buffer.result().users();
        users.find_map(AsyncTMACopyGlobalToLocalOp::of)
    });
    match copy {
        Some(copy) => copy.coord().into_iter().chain([copy.desc()]).collect(),
        None => load.operand_values().collect(),
    }
}

/// The bytes of the aligned blocks that a copy should bring into the cache, if each iteration reads `run` bytes of
/// rows that the next one goes on with.
///
/// A row of DRAM is opened for each access to it, and closed for the next one elsewhere. Between the reads of two
/// iterations lies everything that all multiprocessors read meanwhile, so a short run costs almost as much as a long
/// one. What comes with it waits in the second-level cache. Twice the run, not more: where the data are in the cache
/// already, each copy looks for its whole block again.
fn cached_block(run: u64) -> Option<u32> {
    let block = u32::try_from(run.checked_mul(2)?).ok()?;
    BLOCKS.contains(&block).then_some(block)
}

/// The accumulator of a product.
fn product_sum<'c: 'a, 'a>(product: OperationRef<'c, 'a>) -> Option<Value<'c, 'a>> {
    WarpGroupDotOp::of(product)
        .map(WarpGroupDotOp::c)
        .or_else(|| DotOp::of(product).map(DotOp::c))
        .or_else(|| DotScaledOp::of(product).map(DotScaledOp::c))
}

impl<'c: 'a, 'a> Load<'c, 'a> {
    /// The source of a tensor of a loop, from one of [`of_products`].
    ///
    /// # Errors
    /// Why it cannot be issued earlier.
    pub(super) fn of(
        of: For<'c, 'a>,
        operation: OperationRef<'c, 'a>,
        facts: &AxisAnalysis,
        plans: &Plans,
    ) -> Result<Self, String> {
        match (LoadOp::of(operation), LocalAllocOp::of(operation)) {
            (Some(load), _) => Self::of_pointers(of, load, facts, plans),
            (_, Some(buffer)) => Self::of_block(of, buffer),
            _ => Err("it is no load".to_owned()),
        }
    }

    /// A block that is copied to a buffer.
    pub(super) fn of_block(of: For<'c, 'a>, buffer: LocalAllocOp<'c, 'a>) -> Result<Self, String> {
        let bulk = BulkLoad::to(of, buffer).ok_or("nothing is known of what fills its buffer")?;
        let slot = MemDesc::of(buffer.result().r#type()).and_then(MemDesc::parts);
        let slot = slot.ok_or("its buffer has no layout")?;
        let reads = Reads {
            buffers: vec![buffer],
            registers: Vec::new(),
        };
        let reader = first_reader(of, [buffer.result()], &[bulk.copy.operation()]);
        Ok(Self {
            source: Source::Bulk(bulk),
            reads,
            bytes: bytes_of(&slot.shape, slot.element),
            run: bytes_of(
                &slot.shape[slot.shape.len().saturating_sub(1)..],
                slot.element,
            ),
            cached_block: None,
            slot,
            reader: reader.ok_or("nothing of the loop reads it")?,
            width: 1,
        })
    }

    /// The operation that has the address.
    pub(super) fn operation(&self) -> OperationRef<'c, 'a> {
        match &self.source {
            Source::Load(load, _) => load.operation(),
            Source::Bulk(bulk) => bulk.copy.operation(),
        }
    }

    /// All operations that belong to it.
    pub(super) fn bringing(&self) -> Vec<OperationRef<'c, 'a>> {
        match &self.source {
            Source::Load(load, _) => vec![load.operation()],
            Source::Bulk(bulk) => {
                let copies = [bulk.copy.operation(), bulk.expect.operation()];
                let mut all = [&copies[..], &bulk.barrier].concat();
                all.push(bulk.wait.operation());
                all.extend(self.replaced());
                all
            }
        }
    }

    /// The values that it needs.
    pub(super) fn needs(&self) -> Vec<Value<'c, 'a>> {
        match &self.source {
            Source::Load(load, _) => [Some(load.ptr()), load.mask(), load.other()]
                .into_iter()
                .flatten()
                .collect(),
            Source::Bulk(bulk) => {
                let mut values = bulk.copy.coord();
                values.extend([bulk.copy.desc(), bulk.copy.pred(), bulk.expect.pred()]);
                values
            }
        }
    }

    /// The address from which it loads.
    pub(super) fn address(&self) -> Value<'c, 'a> {
        match &self.source {
            Source::Load(load, _) => load.ptr(),
            Source::Bulk(bulk) => bulk.copy.desc(),
        }
    }

    /// Whether it is an asynchronous copy.
    pub(super) fn is_copied(&self) -> bool {
        !matches!(self.source, Source::Load(_, None))
    }

    /// Whether it is a copy of a whole block.
    pub(super) fn is_block(&self) -> bool {
        matches!(self.source, Source::Bulk(_))
    }

    /// Whether threads load it to the registers in which they use it.
    pub(super) fn is_in_place(&self) -> bool {
        let is_read = match &self.reads.registers[..] {
            [read] => self.reads.buffers.is_empty() && read.conversions.is_empty(),
            _ => false,
        };
        matches!(self.source, Source::Load(_, None)) && is_read
    }

    /// Accesses of a thread for it; none if threads do not access it.
    pub(super) fn accesses(&self, plans: &Plans) -> u32 {
        let Source::Load(load, _) = self.source else {
            return 0;
        };
        let tensor = ring::tensor(plans, load.result().r#type());
        let registers = tensor.map_or(0, |tensor| tensor.registers() as u32);
        registers.div_ceil(self.width.max(1))
    }

    /// Whether each access moves one element.
    pub(super) fn is_scattered(&self) -> bool {
        matches!(self.source, Source::Load(..)) && self.width <= 1
    }

    /// Registers of a thread that a load through registers takes until all of it is stored: what is loaded, and an address
    /// for each access.
    pub(super) fn registers(&self, facts: &AxisAnalysis, plans: &Plans) -> u32 {
        let Source::Load(load, None) = self.source else {
            return 0;
        };
        let Some(tensor) = ring::tensor(plans, load.result().r#type()) else {
            return 0;
        };
        let groups = groups(load, &tensor, facts, plans);
        let words = (tensor.element.memory_bits() * groups.width as u32).div_ceil(u32::BITS);
        groups.groups.len() as u32 * (words + POINTER)
    }

    /// Registers of a thread for the data that are loaded to them.
    pub(super) fn words(&self, plans: &Plans) -> u32 {
        match self.source {
            Source::Load(load, None) => ring::words(load.result(), plans),
            _ => 0,
        }
    }

    /// A load of a loop with its path through memory.
    fn of_pointers(
        of: For<'c, 'a>,
        load: LoadOp<'c, 'a>,
        facts: &AxisAnalysis,
        plans: &Plans,
    ) -> Result<Self, String> {
        let result = load.result();
        let tensor = RankedTensor::of(result.r#type()).ok_or("it loads no tensor")?;
        if load.is_volatile() {
            return Err("it is volatile".to_owned());
        }
        let copied = copied(load, facts, plans);
        let registers = ring::tensor(plans, result.r#type());
        let brought = registers.map(|tensor| groups(load, &tensor, facts, plans));
        let (reads, encoding, is_copied) = path(load, copied.as_ref(), brought.as_ref(), plans)
            .ok_or("no layout of shared memory leads to its use")?;
        let copied = copied.filter(|_| is_copied);
        let width = brought.map_or(1, |groups| groups.width as u32);
        let copied = copied.map(|groups| promised(&groups));
        let slot = ring::slot(tensor, encoding);
        let bytes = bytes_of(&slot.shape, slot.element);
        let replaced = reads.replaced();
        let places = replaced
            .iter()
            .flat_map(|operation| operation.result_values());
        let reader = first_reader(of, places.chain([result]), &replaced);
        let reader = reader.ok_or("nothing of the loop reads it")?;
        let runs = facts.facts(load.ptr()).dims.into_iter();
        let along = runs
            .zip(&slot.shape)
            .max_by_key(|(dim, _)| dim.contiguity.get());
        let run = along.filter(|(dim, _)| dim.contiguity.get() > 1);
        let run = run.map_or(1, |(_, extent)| *extent);
        let growth = advance(of, load.ptr()).filter(|growth| *growth == run);
        let run = bytes_of(&[run], slot.element);
        Ok(Self {
            source: Source::Load(load, copied),
            reads,
            run,
            cached_block: growth.and_then(|_| cached_block(run)),
            slot,
            bytes,
            reader,
            width,
        })
    }

    /// For each read to registers the first operation of the body that takes them, except operations that put data into
    /// buffers.
    pub(super) fn first_readers(
        &self,
        of: For<'c, 'a>,
        putting: &[OperationRef<'c, 'a>],
    ) -> Vec<OperationRef<'c, 'a>> {
        let passed = [&self.replaced()[..], putting].concat();
        let first = |read: &Read<'c, 'a>| {
            let own = self.operation().result_values();
            let converted = read.conversions.iter().map(|op| op.result());
            match read.conversions.is_empty() {
                true => first_reader(of, own, &passed),
                false => first_reader(of, converted, &passed),
            }
        };
        let reads = self.reads.registers.iter();
        reads
            .map(|read| first(read).unwrap_or(self.reader))
            .collect()
    }

    /// The operations that the ring replaces.
    pub(super) fn replaced(&self) -> Vec<OperationRef<'c, 'a>> {
        self.reads.replaced()
    }
}

/// The registers of a thread that hold a tensor of a loop. Of addresses only the first one of each access is
/// computed, and takes two.
pub(super) fn registers(value: Value<'_, '_>, loads: &[Load<'_, '_>], plans: &Plans) -> u32 {
    let all = ring::tensor(plans, value.r#type()).map_or(0, |tensor| tensor.registers() as u32);
    let width = loads.iter().find_map(|load| match load.source {
        Source::Load(of, _) if of.ptr().r#type() == value.r#type() => Some(load.width),
        _ => None,
    });
    width.map_or(all, |width| POINTER * all.div_ceil(width.max(1)))
}

fn bytes_of(shape: &[i64], element: Type<'_>) -> u64 {
    let bits = u64::from(element.bit_width().unwrap_or(64).max(8));
    shape.iter().product::<i64>().unsigned_abs() * bits / 8
}

impl<'c: 'a, 'a> BulkLoad<'c, 'a> {
    /// The only copy to a buffer, if its barrier has no other use.
    pub(super) fn to(of: For<'c, 'a>, buffer: LocalAllocOp<'c, 'a>) -> Option<Self> {
        let copy = buffer
            .result()
            .users()
            .find_map(AsyncTMACopyGlobalToLocalOp::of)?;
        let barrier = LocalAllocOp::defining(copy.barrier())?;
        let users: Vec<OperationRef> = barrier.result().users().collect();
        let expect = users.iter().copied().find_map(BarrierExpectOp::of)?;
        let wait = users.iter().copied().find_map(WaitBarrierOp::of)?;
        let init = users.iter().copied().find_map(InitBarrierOp::of)?;
        let inval = users.iter().copied().find_map(InvalBarrierOp::of)?;
        let all = [
            buffer.operation(),
            barrier.operation(),
            init.operation(),
            expect.operation(),
            copy.operation(),
            wait.operation(),
            inval.operation(),
        ];
        let in_body = all
            .iter()
            .all(|operation| operation.parent_op() == Some(of.operation()));
        let in_order = all[2..].windows(2).all(|pair| pair[0].is_before(pair[1]));
        (in_body && in_order && users.len() == 5).then_some(Self {
            copy,
            expect,
            wait,
            barrier: [inval.operation(), init.operation(), barrier.operation()],
        })
    }
}

/// The first of some operations if they are in one block, before which all of them are.
pub(super) fn first_of_block<'c: 'a, 'a>(
    operations: &[OperationRef<'c, 'a>],
) -> Option<OperationRef<'c, 'a>> {
    let first = operations.first()?;
    let is_beside = |other: &OperationRef<'c, 'a>| other.parent_block() == first.parent_block();
    let earlier = |one: OperationRef<'c, 'a>, other: OperationRef<'c, 'a>| {
        if one.is_before(other) { one } else { other }
    };
    let all_are = operations.iter().all(is_beside);
    all_are.then(|| operations.iter().copied().reduce(earlier))?
}

/// The operation of the body that reads one of some values first; `passed` operations do not count.
fn first_reader<'c: 'a, 'a>(
    of: For<'c, 'a>,
    values: impl IntoIterator<Item = Value<'c, 'a>>,
    passed: &[OperationRef<'c, 'a>],
) -> Option<OperationRef<'c, 'a>> {
    let mut values: Vec<Value> = values.into_iter().collect();
    let mut first: Option<OperationRef> = None;
    while let Some(value) = values.pop() {
        for user in value.users() {
            if passed.contains(&user) {
                continue;
            }
            // A view of a buffer reads nothing; a buffer that is filled from registers is none.
            let is_memory = |value: &Value<'c, 'a>| MemDesc::of(value.r#type()).is_some();
            if is_memory(&value)
                && user.result_values().any(|view| is_memory(&view))
                && user.is_memory_effect_free()
            {
                values.extend(user.result_values());
                continue;
            }
            let user = ancestor(of, user)?;
            if first.is_none_or(|first| user.is_before(first)) {
                first = Some(user);
            }
        }
    }
    first
}

/// The groups of registers that are contiguous and share a mask, so that an asynchronous copy may move each; `None`
/// if no copy can replace the load.
fn copied(load: LoadOp<'_, '_>, facts: &AxisAnalysis, plans: &Plans) -> Option<Groups> {
    let target = plans.target();
    if !target.has(Feature::AsyncCopy) {
        return None;
    }
    let tensor = ring::tensor(plans, load.result().r#type())?;
    copied_loads::copied(load, &tensor, groups(load, &tensor, facts, plans))
}

/// The number of elements that a copy promises to be contiguous: such a promise is about registers that follow one another, as those of
/// each access do unless the layout counts along another dimension first. Then the facts about addresses have to say it.
fn promised(groups: &Groups) -> u32 {
    match groups.groups.first().map(Vec::as_slice) {
        Some([first, second, ..]) if *second != first + 1 => 1,
        _ => groups.width as u32,
    }
}

/// The number of accesses that a thread makes for a load.
pub(super) fn accesses(load: LoadOp<'_, '_>, facts: &AxisAnalysis, plans: &Plans) -> u32 {
    let tensor = ring::tensor(plans, load.result().r#type());
    tensor.map_or(0, |tensor| {
        groups(load, &tensor, facts, plans).groups.len() as u32
    })
}

/// The groups of registers of the accesses of a load.
fn groups(
    load: LoadOp<'_, '_>,
    tensor: &TensorType,
    facts: &AxisAnalysis,
    plans: &Plans,
) -> Groups {
    let pointers = facts.facts(load.ptr());
    let mask = load.mask().map(|mask| facts.facts(mask));
    let access = GlobalAccess {
        tensor,
        addresses: Addresses::Pointers(&pointers),
        strides: None,
        mask: mask.as_ref(),
        kind: AccessKind::Load,
    };
    access.groups(plans.target())
}
