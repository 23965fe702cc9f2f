//! `--stage-conversions`: what waits in registers for a conversion waits in shared memory, where registers are scarce.
//!
//! A conversion through shared memory stores its operand, waits, and loads its result in one go, in scratch memory that
//! the next conversion uses again. Until then the operand is in registers, and from then on the result:
//!
//! ```text
//!   load a                         load a
//!   load b                         store a to its buffer
//!   convert a                 →    load b
//!   multiply a (many values)       multiply (read a)
//!   convert b                      ...
//! ```
//!
//! With a buffer of its own the operand is stored as early as necessary, and the result is read where it is used. A
//! product by a matrix unit then takes a fragment of it at a time. A buffer costs memory instead of registers, but no
//! additional access: it is a spill for which the program pays already.
//!
//! What a loop reads in each iteration is in registers for all of it. If that leaves too few, the load from the buffer
//! moves into the loop, next to the use: a read in each iteration, as after a spill. What is used elsewhere, too, as by the
//! loop that follows, is read once more there.
//!
//! Nothing is moved past a wait for copies, which is a barrier: what is loaded before it is computed in whole, although a
//! product needs a fragment at a time. Successive waits of a block with too few registers become one, before all loads.
//!
//! The live values of a block are counted from its first operation to its last. At the first operation with too many,
//! among the values that wait there for a conversion the one whose conversion is used last is stored (Belady's rule,
//! as in linear scans of registers), until few enough are left. A buffer may reduce the blocks that are resident by no
//! more than the share of the live words that would be spilled.

use std::collections::{HashMap, HashSet};

use llopt_dialects::meaning::facts::{Control, LayoutAnchor, OpFacts};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::ttg::{AsyncWaitOp, ConvertLayoutOp, LocalAllocOp, LocalLoadOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, Use, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::buffer;
use llopt_plan::late_operands::BESIDE;
use llopt_plan::plans::Plans;
use llopt_target::Target;
use melior::ir::{BlockLike, BlockRef, OperationRef, Value, ValueLike};

use super::live::{
    Live, held_outside, part_of_only_product, part_of_product, renames, root, threads, words,
};
use crate::allocation::{FunctionBuffers, placement, plans_of};
use crate::flow::Symbols;
use crate::late_operands::{Crossing, buffer_of, crossing, store_to_buffer, through_buffer};

/// The pass.
pub static STAGE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "stage-conversions",
        "let values wait for conversions in shared memory where registers are scarce",
        |module, run| {
            let plans = &*plans_of(module, run)?;
            for function in Symbols::of(module).callees_first()? {
                let mut memory = Memory::of(function, plans)?;
                for block in blocks_with_conversions(function) {
                    stage(block, &mut memory, plans);
                }
            }
            Ok(())
        },
    )
};

/// Shared memory of a function.
struct Memory {
    target: Target,
    threads: u32,
    bytes: u64,
    /// Blocks that are resident without further buffers.
    resident: u32,
}

impl Memory {
    fn of(function: OperationRef<'_, '_>, plans: &Plans) -> Result<Self, Complaint> {
        let buffers = FunctionBuffers::of(function, plans, &HashMap::new())?;
        let mut memory = Self {
            target: plans.target(),
            threads: threads(function),
            bytes: placement::load(&buffers.requests()),
            resident: 0,
        };
        memory.resident = memory.resident_with(memory.bytes);
        Ok(memory)
    }

    /// Blocks that are resident with so many bytes, if threads use all their registers.
    fn resident_with(&self, bytes: u64) -> u32 {
        let registers = self.target.registers_of_each(self.threads);
        self.target.resident_blocks(self.threads, registers, bytes)
    }

    /// Whether another buffer costs no more than too few registers for so many live words: the share of the blocks that
    /// are still resident is no less than that of the words for which there are registers.
    fn has_room(&self, bytes: u64, live: u32) -> bool {
        let bytes = self.bytes + bytes;
        let registers = self.target.registers_of_each(self.threads);
        bytes <= u64::from(self.target.shared_memory_limit())
            && u64::from(self.resident_with(bytes)) * u64::from(live + BESIDE)
                >= u64::from(self.resident) * u64::from(registers)
    }
}

/// The blocks of a function that have conversions.
fn blocks_with_conversions<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Vec<BlockRef<'c, 'a>> {
    let mut blocks: Vec<BlockRef<'c, 'a>> = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| {
        if ConvertLayoutOp::of(operation).is_some()
            && let Some(block) = operation.parent_block()
            && !blocks.contains(&block)
        {
            blocks.push(block);
        }
    });
    blocks
}

/// A conversion through shared memory, by the positions of operations in its block.
struct Waiting<'c, 'a> {
    conversion: ConvertLayoutOp<'c, 'a>,
    /// The last operation that needs the operand in registers, except the conversion.
    made: usize,
    at: usize,
    /// The first operation that uses the result.
    used: usize,
    /// Words of the operand, of the result, and of what of the result is in registers at its first use then.
    words: [u32; 3],
    bytes: u64,
}

impl Waiting<'_, '_> {
    /// Registers that are free at an operation if the value waits in a buffer from there on.
    fn gain(&self, at: usize) -> u32 {
        let [source, result, read] = self.words;
        match at {
            at if at <= self.made || at > self.used => 0,
            at if at <= self.at => source,
            at if at < self.used => result,
            _ => result.saturating_sub(read),
        }
    }
}

/// Gives buffers to conversions of a block.
fn stage<'c: 'a, 'a>(block: BlockRef<'c, 'a>, memory: &mut Memory, plans: &Plans) {
    let mut live = Live::of(block, plans);
    let Some(first) = live.operations.first().copied() else {
        return;
    };
    let limit = plans.target().registers_of_each(threads(first));
    let limit = limit.saturating_sub(BESIDE);
    if live.words.iter().all(|words| *words <= limit) {
        return;
    }
    if join_waits(&live.operations) {
        live = Live::of(block, plans);
    }
    let mut waiting = live.waiting(plans);
    let mut carried = live.carried_in(block, plans);
    let mut rewriter = Rewriter::new(first.ctx());
    let mut replaced = HashSet::new();
    for at in 0..live.operations.len() {
        while live.words[at] > limit {
            let fits = |one: &Waiting<'_, '_>| {
                one.gain(at) > 0 && memory.has_room(one.bytes, live.words[at])
            };
            let candidates = (0..waiting.len()).filter(|index| fits(&waiting[*index]));
            let Some(last) = candidates.max_by_key(|index| waiting[*index].used) else {
                let fits = |one: &Carried<'_, '_>| {
                    one.gain(at) > 0
                        && memory.has_room(one.bytes, live.words[at])
                        && !replaced.contains(&one.used[0])
                };
                let candidates = (0..carried.len()).filter(|index| fits(&carried[*index]));
                let Some(most) = candidates.max_by_key(|index| carried[*index].gain(at)) else {
                    break;
                };
                let chosen = carried.swap_remove(most);
                memory.bytes += chosen.bytes;
                for (place, words) in live.words.iter_mut().enumerate() {
                    *words = words.saturating_sub(chosen.gain(place));
                }
                chosen.read_at(live.operations[chosen.used[0]], &mut rewriter, plans);
                continue;
            };
            let chosen = waiting.swap_remove(last);
            // Nothing is inserted before what has been replaced.
            let from = at.min(chosen.at);
            let Some(place) = (from..=chosen.at).find(|place| !replaced.contains(place)) else {
                continue;
            };
            memory.bytes += chosen.bytes;
            for place in from..=chosen.used {
                live.words[place] = live.words[place].saturating_sub(chosen.gain(place));
            }
            // Neither end of a buffer may move across that of another which holds the same data in another layout.
            let (source, result) = (root(chosen.conversion.src()), chosen.conversion.result());
            waiting.retain(|other| {
                let (before, after) = (root(other.conversion.src()), other.conversion.result());
                before != result && after != source
            });
            replaced.insert(chosen.at);
            let places = [place, chosen.used].map(|place| live.operations[place]);
            through_buffer(chosen.conversion, places, &mut rewriter, plans);
        }
    }
}

/// Moves each wait for asynchronous copies behind the wait before it, if no copies are issued between the two; returns
/// whether any has moved.
fn join_waits(operations: &[OperationRef<'_, '_>]) -> bool {
    let mut moved = false;
    let mut before: Option<(usize, OperationRef<'_, '_>)> = None;
    for (at, operation) in operations.iter().copied().enumerate() {
        if AsyncWaitOp::of(operation).is_some() {
            let mut from = at;
            if let Some((first, wait)) = before {
                let behind = &operations[first + 1..at];
                let mut made = operation.operand_values().filter_map(ValueExt::defining_op);
                if !behind.is_empty() && !made.any(|made| behind.contains(&made)) {
                    Rewriter::new(operation.ctx()).move_after(operation, wait);
                    (from, moved) = (first, true);
                }
            }
            before = Some((from, operation));
        } else if issues(operation) {
            before = None;
        }
    }
    moved
}

/// Whether an operation may issue asynchronous work, or its regions may.
fn issues(operation: OperationRef<'_, '_>) -> bool {
    let reads = LocalLoadOp::of(operation).is_some();
    !reads
        && !operation.is_memory_effect_free()
        && OpFacts::of(operation).anchor != Some(LayoutAnchor::Load)
}

/// A value from outside a loop that is, or may be, read from a buffer.
struct Carried<'c, 'a> {
    made: Made<'c, 'a>,
    /// The operations of the block that makes it which use it, too, or have others in their regions that do.
    others: Vec<OperationRef<'c, 'a>>,
    /// The first and the last operation of the block that use it.
    used: [usize; 2],
    words: u32,
    /// Words that are in registers at the only use if that reads the buffer.
    read: u32,
    bytes: u64,
}

/// What makes a value of registers.
enum Made<'c, 'a> {
    /// A conversion, whose buffer is new.
    Converted(ConvertLayoutOp<'c, 'a>),
    /// A load from a buffer that nothing else writes.
    Read(LocalLoadOp<'c, 'a>),
}

impl<'c: 'a, 'a> Made<'c, 'a> {
    /// The value.
    fn value(&self) -> Value<'c, 'a> {
        match self {
            Self::Converted(conversion) => conversion.result(),
            Self::Read(load) => load.result(),
        }
    }

    /// The operation that makes it.
    fn operation(&self) -> OperationRef<'c, 'a> {
        match self {
            Self::Converted(conversion) => conversion.operation(),
            Self::Read(load) => load.operation(),
        }
    }

    /// The buffer that has it, which is made if there is none.
    fn buffer(&self, rewriter: &mut Rewriter<'c, 'a>, plans: &Plans) -> Option<Value<'c, 'a>> {
        match *self {
            Self::Read(load) => Some(load.src()),
            Self::Converted(conversion) => {
                store_to_buffer(conversion, conversion.operation(), rewriter, plans)
            }
        }
    }
}

impl<'c: 'a, 'a> Carried<'c, 'a> {
    /// Reads the value from a buffer before each of the others, and before an operation of the loop.
    fn read_at(&self, used: OperationRef<'c, 'a>, rewriter: &mut Rewriter<'c, 'a>, plans: &Plans) {
        let (value, made) = (self.made.value(), self.made.operation());
        let Some(buffer) = self.made.buffer(rewriter, plans) else {
            return;
        };
        for place in self.others.iter().copied().chain([used]) {
            rewriter.set_before(place);
            let load = LocalLoadOp::build(made.loc(), value.r#type(), buffer, None);
            let Some(loaded) = rewriter.insert(load).result_value(0) else {
                return;
            };
            let uses: Vec<Use<'c, 'a>> = value.uses().collect();
            // What is left for the last of them are the uses in the loop.
            for user in uses {
                if place == used || user.operation.is_within(place) {
                    user.operation.set_operand_value(user.operand, loaded);
                }
            }
        }
        made.erase();
    }

    /// Registers that are free at an operation if the loop reads the value.
    fn gain(&self, at: usize) -> u32 {
        let [first, last] = self.used;
        if at < first || at > last {
            self.words
        } else if first == last {
            self.words.saturating_sub(self.read)
        } else {
            0
        }
    }
}

impl<'c: 'a, 'a> Live<'c, 'a> {
    /// The conversions of the block that may go through buffers.
    fn waiting(&self, plans: &Plans) -> Vec<Waiting<'c, 'a>> {
        let all = self.operations.iter().enumerate();
        let found = all.filter_map(|(at, operation)| {
            let conversion = ConvertLayoutOp::of(*operation)?;
            if crossing(conversion, plans) < Some(Crossing::WarpMemory) {
                return None;
            }
            let (source, result) = (conversion.src(), conversion.result());
            // Rows and columns are counted beside the tensors, and reading one late is one more barrier.
            let elements: i64 = RankedTensor::of(result.r#type())?.shape().iter().product();
            if elements <= i64::from(threads(*operation)) {
                return None;
            }
            let uses = self.uses(result);
            let used = uses.iter().copied().min()?;
            let others = self.uses(root(source));
            let made = source.defining_op().and_then(|made| self.position(made));
            let others = others.into_iter().filter(|other| *other != at);
            let made = others.chain(made).max().unwrap_or(0);
            let words = [root(source), result].map(|value| words(value, plans));
            let buffer = buffer_of(conversion, plans)?;
            Some(Waiting {
                conversion,
                made: made.min(at),
                at,
                used,
                words: [
                    words[0],
                    words[1],
                    part_of_product(result, plans).unwrap_or(words[1]),
                ],
                bytes: buffer::room(buffer).ok()?.bytes,
            })
        });
        found.collect()
    }
}

impl<'c: 'a, 'a> Live<'c, 'a> {
    /// The values from outside the block, which is a loop's, that its operations use and that may lie in buffers.
    fn carried_in(&self, block: BlockRef<'c, 'a>, plans: &Plans) -> Vec<Carried<'c, 'a>> {
        let is_loop =
            |of: OperationRef<'c, 'a>| matches!(Control::of(of), Control::For | Control::While);
        if !BlockLike::parent_operation(&block).is_some_and(is_loop) {
            return Vec::new();
        }
        let found = held_outside(block).into_iter().filter_map(|value| {
            let origin = value.defining_op()?;
            let (made, bytes) = match ConvertLayoutOp::of(origin) {
                Some(conversion) => {
                    crossing(conversion, plans)?;
                    let buffer = buffer_of(conversion, plans)?;
                    let bytes = buffer::room(buffer).ok()?.bytes;
                    (Made::Converted(conversion), bytes)
                }
                None => {
                    let load = LocalLoadOp::of(origin)?;
                    let filled = LocalAllocOp::defining(load.src())?;
                    let mut users = filled.result().users();
                    let is_read = users.all(|user| LocalLoadOp::of(user).is_some());
                    filled.src().filter(|_| is_read)?;
                    (Made::Read(load), 0)
                }
            };
            let is_here = |user: &OperationRef<'c, 'a>| user.parent_block() == Some(block);
            let (here, elsewhere): (Vec<_>, Vec<_>) = value.users().partition(is_here);
            if here.is_empty() || elsewhere.iter().any(|user| renames(*user)) {
                return None;
            }
            let others = others(&elsewhere, origin, block)?;
            let uses = self.uses(value);
            let words = words(value, plans);
            let part = part_of_only_product(value, here.into_iter(), plans);
            Some(Carried {
                made,
                others,
                used: [*uses.iter().min()?, *uses.iter().max()?],
                words,
                read: part.unwrap_or(words),
                bytes,
            })
        });
        found.collect()
    }
}

/// The operations of the block that makes a value in which these users are, none of which is around `block` as well.
fn others<'c: 'a, 'a>(
    users: &[OperationRef<'c, 'a>],
    made: OperationRef<'c, 'a>,
    block: BlockRef<'c, 'a>,
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let beside = |operation: OperationRef<'c, 'a>| {
        let mut outer = std::iter::successors(Some(operation), |inner| inner.parent_op());
        outer.find(|outer| outer.parent_block() == made.parent_block())
    };
    let around = beside(BlockLike::parent_operation(&block)?)?;
    let mut found: Vec<OperationRef<'c, 'a>> = Vec::new();
    for user in users {
        let other = beside(*user).filter(|other| *other != around)?;
        if !found.contains(&other) {
            found.push(other);
        }
    }
    Some(found)
}
