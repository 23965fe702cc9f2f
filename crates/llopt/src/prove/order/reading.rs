//! The skeleton of a function of tile IR: which ops are left, and what each of them does.

use std::collections::HashMap;

use llopt_dialects::arith;
use llopt_dialects::meaning::facts::{Asynchronous, Control, OpFacts, Synchronization};
use llopt_dialects::meaning::resource::{BULK_SHARED_MEMORY, PRODUCT_SHARED_MEMORY, SHARED_MEMORY};
use llopt_dialects::tables::module::NUM_WARPS;
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::effects::{
    ALLOCATION_OFFSET, ARRIVES_BY_WARP, CLUSTER_WAITS_LATER, LANES_HAVE_MET,
};
use llopt_dialects::{amdg, scf, tt, ttg, ttng};
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, TypeExt, key};
use llopt_plan::buffer::room;
use llopt_plan::plans::Plans;
use llopt_plan::scratch::{Readers, scratch};
use llopt_plan::warp_parts::WarpParts;
use melior::ir::{BlockRef, OperationRef, RegionRef, TypeLike, Value, ValueLike};

use super::skeleton::{Event, Function, Instruction, Place, Skeleton, Slot};
use crate::module::location_of;

impl Skeleton {
    /// The skeleton of a function; the reason if it has none.
    pub(super) fn of(function: OperationRef<'_, '_>, plans: &Plans) -> Result<Self, String> {
        let mut builder = Builder {
            skeleton: Self {
                agents: 1,
                warps: warps_of(function),
                ..Self::default()
            },
            slots: HashMap::new(),
            functions: HashMap::new(),
            divisions: Vec::new(),
            arrived: None,
            plans,
        };
        let body = function.region_ref(0).ok_or("it has no body")?;
        for argument in arguments(body) {
            let to = builder.slot(argument);
            builder.push(Instruction::Compute {
                to,
                function: Function::New,
                from: Vec::new(),
            });
        }
        builder.body(body)?;
        let place = builder.place(function);
        builder.push(Instruction::Return { place });
        let mut skeleton = builder.skeleton;
        skeleton.find_needed();
        Ok(skeleton)
    }
}

/// The warps of a kernel, without those of partitions.
fn warps_of(function: OperationRef<'_, '_>) -> i64 {
    let module = function.parent_op();
    let warps = module
        .and_then(|module| module.attr(NUM_WARPS))
        .and_then(AttributeExt::as_int);
    warps.unwrap_or(i64::MAX)
}

fn arguments<'c: 'a, 'a>(region: RegionRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    let entry = region.entry();
    entry
        .map(|entry| entry.argument_values().collect())
        .unwrap_or_default()
}

pub(super) struct Builder<'p> {
    skeleton: Skeleton,
    slots: HashMap<usize, Slot>,
    functions: HashMap<String, u32>,
    divisions: Vec<WarpParts>,
    /// Where all threads have arrived at a barrier of the cluster for which nothing has waited yet.
    arrived: Option<usize>,
    plans: &'p Plans,
}

impl Builder<'_> {
    pub(super) fn push(&mut self, instruction: Instruction) -> usize {
        self.skeleton.code.push(instruction);
        self.skeleton.code.len() - 1
    }

    /// Puts an instruction in the place of one that was open.
    pub(super) fn replace(&mut self, at: usize, instruction: Instruction) {
        self.skeleton.code[at] = instruction;
    }

    pub(super) fn here(&self) -> usize {
        self.skeleton.code.len()
    }

    /// The number of a way in which warps divide memory.
    fn division(&mut self, parts: WarpParts) -> usize {
        let known = self.divisions.iter().position(|known| *known == parts);
        known.unwrap_or_else(|| {
            self.divisions.push(parts);
            self.divisions.len() - 1
        })
    }

    fn new_slot(&mut self) -> Slot {
        self.skeleton.slots += 1;
        self.skeleton.slots - 1
    }

    pub(super) fn slot(&mut self, value: Value<'_, '_>) -> Slot {
        if let Some(&slot) = self.slots.get(&key(value)) {
            return slot;
        }
        let slot = self.new_slot();
        self.slots.insert(key(value), slot);
        slot
    }

    pub(super) fn slots_of<'c: 'a, 'a>(
        &mut self,
        values: impl IntoIterator<Item = Value<'c, 'a>>,
    ) -> Vec<Slot> {
        values.into_iter().map(|value| self.slot(value)).collect()
    }

    pub(super) fn moves(&mut self, from: &[Slot], to: &[Slot]) {
        let moves: Vec<_> = from.iter().copied().zip(to.iter().copied()).collect();
        if !moves.is_empty() {
            self.push(Instruction::Move(moves));
        }
    }

    fn place(&mut self, op: OperationRef<'_, '_>) -> usize {
        let list = |types: Vec<String>| types.join(", ");
        let operands = op.operand_types().map(|of| of.to_string()).collect();
        let results = op.result_types().map(|of| of.to_string()).collect();
        self.skeleton.places.push(Place {
            location: location_of(op),
            op: op.name_str().to_owned(),
            types: format!("{} -> {}", list(operands), list(results)),
        });
        self.skeleton.places.len() - 1
    }

    fn event(&mut self, op: OperationRef<'_, '_>, event: Event) {
        let place = self.place(op);
        self.push(Instruction::Event { event, place });
    }

    /// The code of a region; the slots of what its terminator hands on.
    fn region(&mut self, region: RegionRef<'_, '_>) -> Result<Vec<Slot>, String> {
        let mut blocks = region.blocks();
        let Some(block) = blocks.next() else {
            return Ok(Vec::new());
        };
        if blocks.next().is_some() {
            return Err("its control flow is not structured".into());
        }
        self.block(block)
    }

    pub(super) fn block(&mut self, block: BlockRef<'_, '_>) -> Result<Vec<Slot>, String> {
        let mut handed = Vec::new();
        for op in block.operations() {
            match Control::of(op) {
                Control::Yield | Control::ConcurrentYield | Control::Condition => {
                    handed = op.operand_values().map(|value| self.slot(value)).collect();
                }
                // Where blocks go on is read with their function.
                Control::Return
                | Control::PartitionEnd
                | Control::Result
                | Control::Branch
                | Control::ConditionalBranch => {}
                Control::For => self.for_loop(op)?,
                Control::While => self.while_loop(op)?,
                Control::Choice => self.choice(op)?,
                Control::Concurrent => self.partitions(op)?,
                Control::Call if op.attr(ALLOCATION_OFFSET).is_some() => {
                    return Err("it calls a function that uses shared memory".into());
                }
                Control::Computes
                | Control::Masked
                | Control::Call
                | Control::Function
                | Control::Partitions => self.plain(op)?,
            }
        }
        Ok(handed)
    }

    /// Removes code from `start` on if nothing happens in it, except that values are used; its results are unknown.
    fn drop_if_idle(&mut self, op: OperationRef<'_, '_>, start: usize) {
        let acts = |instruction: &Instruction| {
            matches!(
                instruction,
                Instruction::Event { .. } | Instruction::Fork { .. } | Instruction::Allocate { .. }
            )
        };
        let decides = |op: OperationRef<'_, '_>| op.result_types().any(|of| of.integer().is_some());
        if self.skeleton.code[start..].iter().any(acts)
            || Control::of(op) == Control::Choice && decides(op)
        {
            return;
        }
        let dropped = self.skeleton.code.split_off(start);
        let used = dropped
            .into_iter()
            .filter_map(|instruction| match instruction {
                Instruction::Uses { from, .. } => Some(from),
                _ => None,
            });
        let mut used: Vec<Slot> = used.flatten().collect();
        used.extend(op.operand_values().map(|value| self.slot(value)));
        let place = self.place(op);
        self.push(Instruction::Uses { from: used, place });
        for result in op.result_values() {
            if result.r#type().integer().is_some() {
                self.unknown(result);
            }
        }
    }

    fn unknown(&mut self, value: Value<'_, '_>) {
        let to = self.slot(value);
        self.push(Instruction::Compute {
            to,
            function: Function::New,
            from: Vec::new(),
        });
    }

    fn begin_loop(&mut self, op: OperationRef<'_, '_>) -> usize {
        self.skeleton.loops.push(location_of(op));
        self.skeleton.loops.len() - 1
    }

    fn for_loop(&mut self, op: OperationRef<'_, '_>) -> Result<(), String> {
        let start = self.here();
        let of = scf::ForOp::of(op).ok_or("it has an unknown kind of loop")?;
        let body = of.region();
        let number = self.begin_loop(op);
        let bounds = [of.lower_bound(), of.upper_bound(), of.step()].map(|value| self.slot(value));
        let inside = self.slots_of(arguments(body));
        let [induction, iterated @ ..] = &inside[..] else {
            return Err("it has a loop without an induction variable".into());
        };
        let inits = self.slots_of(of.init_args());
        self.moves(&inits, iterated);
        let to = Some(*induction);
        self.push(Instruction::Enter {
            number,
            bounds: Some(bounds),
            to,
        });
        let head = self.push(Instruction::Open);
        let handed = self.region(body)?;
        self.moves(&handed, iterated);
        self.push(Instruction::Next { to });
        self.push(Instruction::Jump(head));
        let exit = self.here();
        self.replace(
            head,
            Instruction::Head {
                exit,
                handed: inside.clone(),
            },
        );
        let results = self.slots_of(op.result_values());
        self.moves(iterated, &results);
        self.drop_if_idle(op, start);
        Ok(())
    }

    fn while_loop(&mut self, op: OperationRef<'_, '_>) -> Result<(), String> {
        let start = self.here();
        let of = scf::WhileOp::of(op).ok_or("it has an unknown kind of loop")?;
        let number = self.begin_loop(op);
        let (before, after) = (
            self.slots_of(arguments(of.before())),
            self.slots_of(arguments(of.after())),
        );
        let inits = self.slots_of(of.inits());
        self.moves(&inits, &before);
        self.push(Instruction::Enter {
            number,
            bounds: None,
            to: None,
        });
        let again = self.here();
        let condition = self.region(of.before())?;
        let handed = condition.get(1..).unwrap_or_default();
        let head = self.push(Instruction::Open);
        self.moves(handed, &after);
        let yielded = self.region(of.after())?;
        self.moves(&yielded, &before);
        self.push(Instruction::Next { to: None });
        self.push(Instruction::Jump(again));
        let exit = self.here();
        self.replace(
            head,
            Instruction::Head {
                exit,
                handed: handed.to_vec(),
            },
        );
        let results = self.slots_of(op.result_values());
        self.moves(handed, &results);
        self.drop_if_idle(op, start);
        Ok(())
    }

    fn choice(&mut self, op: OperationRef<'_, '_>) -> Result<(), String> {
        let start = self.here();
        let of = scf::IfOp::of(op).ok_or("it has an unknown kind of condition")?;
        let condition = self.slot(of.condition());
        let results = self.slots_of(op.result_values());
        let branch = self.push(Instruction::Open);
        let handed = self.region(of.then_region())?;
        self.moves(&handed, &results);
        let end = self.push(Instruction::Open);
        let otherwise = self.here();
        let handed = self.region(of.else_region())?;
        self.moves(&handed, &results);
        let after = self.here();
        let branches = Instruction::Branch {
            condition,
            otherwise,
            end: Some(after),
        };
        self.replace(branch, branches);
        self.replace(end, Instruction::Jump(after));
        self.drop_if_idle(op, start);
        Ok(())
    }

    fn partitions(&mut self, op: OperationRef<'_, '_>) -> Result<(), String> {
        let of = ttg::WarpSpecializeOp::of(op).ok_or("it has an unknown kind of concurrency")?;
        let holder = of.partition_op_holder().entry();
        let holder = holder.and_then(|block| {
            block
                .operations()
                .find_map(ttg::WarpSpecializePartitionsOp::of)
        });
        let regions = holder
            .map(|holder| holder.partition_regions())
            .unwrap_or_default();
        let captured = self.slots_of(of.explicit_captures());
        let warps = of
            .partition_num_warps()
            .into_iter()
            .map(i64::from)
            .collect();
        let fork = self.push(Instruction::Open);
        let handed = self.region(of.default_region())?;
        let results = self.slots_of(op.result_values());
        self.moves(&handed, &results);
        let join = self.push(Instruction::Open);
        let mut partitions = Vec::new();
        for region in regions {
            let inside = self.slots_of(arguments(region));
            let moves = captured.iter().copied().zip(inside).collect();
            partitions.push((self.here(), moves));
            self.region(region)?;
            self.push(Instruction::EndPartition);
        }
        self.skeleton.agents = self.skeleton.agents.max(1 + partitions.len());
        let after = self.push(Instruction::Join);
        self.replace(fork, Instruction::Fork { partitions, warps });
        self.replace(join, Instruction::Jump(after));
        Ok(())
    }

    /// An op without control flow.
    fn plain(&mut self, op: OperationRef<'_, '_>) -> Result<(), String> {
        // Other names for the same registers.
        if let Some(of) = tt::TransOp::of(op) {
            let (from, to) = (self.slot(of.src()), self.slot(of.result()));
            self.push(Instruction::Move(vec![(from, to)]));
            return Ok(());
        }
        if self.computes(op) || self.views(op)? || self.transacts(op)? {
            return Ok(());
        }
        let used = self.slots_of(
            op.operand_values()
                .filter(|value| value.r#type().is_tensor()),
        );
        if !used.is_empty() {
            let place = self.place(op);
            self.push(Instruction::Uses { from: used, place });
        }
        if self.is_scratch(op)? {
            return Ok(());
        }
        if ttng::ClusterWaitOp::of(op).is_some() {
            // It orders what came before the arrival.
            let is_event = |of: &Instruction| matches!(of, Instruction::Event { .. });
            let since = self.arrived.take();
            let since = since.and_then(|at| self.skeleton.code.get(at..));
            if since.is_some_and(|since| !since.iter().any(is_event)) {
                self.event(op, Event::Barrier);
            }
            return Ok(());
        }
        let facts = OpFacts::of(op);
        match facts.synchronization {
            Synchronization::Block => self.event(op, Event::Barrier),
            Synchronization::Proxies => self.event(op, Event::Fence),
            Synchronization::None => {}
        }
        for effect in op.effects().unwrap_or_default() {
            let is = |memory| {
                effect
                    .resource
                    .is_some_and(|resource| std::ptr::eq(resource, memory))
            };
            let Some(value) = effect
                .value
                .filter(|value| MemDesc::of(value.r#type()).is_some())
            else {
                continue;
            };
            if facts.asynchronous.is_some() || is(&BULK_SHARED_MEMORY) || is(&PRODUCT_SHARED_MEMORY)
            {
                return Err(unknown(op));
            }
            if !is(&SHARED_MEMORY) {
                continue;
            }
            let slot = self.slot(value);
            match effect.kind {
                EffectKind::Read => self.event(op, Event::Read { from: slot }),
                EffectKind::Write => self.event(op, Event::Write { to: slot }),
                EffectKind::Allocate | EffectKind::Free => {}
            }
        }
        if let Some(Asynchronous { .. }) = facts.asynchronous {
            return Err(unknown(op));
        }
        Ok(())
    }

    /// An op with scratch memory: threads write, meet, and read.
    fn is_scratch(&mut self, op: OperationRef<'_, '_>) -> Result<bool, String> {
        let offset = op.attr(ALLOCATION_OFFSET).and_then(AttributeExt::as_bits);
        let (Some(offset), Some(scratch)) = (offset, scratch(op, self.plans)) else {
            return Ok(false);
        };
        let bytes = offset..offset + scratch.bytes;
        // All threads arrive after they have read, and the op itself waits for them, unless another one does later.
        let arrives = scratch.readers == Readers::ClusterReads;
        let waits = arrives && op.attr(CLUSTER_WAITS_LATER).is_none();
        let (parts, meets) = match scratch.readers {
            Readers::Warp { parts } => (parts.map(|parts| self.division(parts)), false),
            Readers::Block | Readers::ClusterReads | Readers::ClusterWrites => (None, true),
        };
        let event = Event::Scratch {
            bytes,
            parts,
            meets,
        };
        self.event(op, event);
        if waits {
            self.event(op, Event::Barrier);
        } else if arrives {
            self.arrived = Some(self.here());
        }
        Ok(true)
    }

    /// A function of integers.
    fn computes(&mut self, op: OperationRef<'_, '_>) -> bool {
        let results: Vec<Value> = op.result_values().collect();
        let [result] = results[..] else {
            return false;
        };
        if result.r#type().is_tensor() || result.r#type().integer().is_none() && !is_index(result) {
            return false;
        }
        let to = self.slot(result);
        if let Some(constant) = arith::ConstantOp::of(op) {
            let value = constant.value().and_then(AttributeExt::as_i64).unwrap_or(0);
            let value = if result.r#type().is_integer_of_width(1) {
                value & 1
            } else {
                value
            };
            self.push(Instruction::Constant { to, value });
            return true;
        }
        let function = match function(op) {
            Some(function) => function,
            None if op.is_memory_effect_free() && op.region_refs().len() == 0 => {
                let attributes: String = op
                    .attrs()
                    .iter()
                    .map(|(name, value)| format!(" {name}={value}"))
                    .collect();
                let text = format!("{}{attributes}", op.name_str());
                let next = self.functions.len() as u32;
                Function::Other(*self.functions.entry(text).or_insert(next))
            }
            // What it does besides is not forgotten.
            None => {
                self.unknown(result);
                return false;
            }
        };
        if let Some((number, by)) = remainder(op) {
            let from = [number, by].map(|value| self.slot(value)).to_vec();
            let function = Function::RemU;
            self.push(Instruction::Compute { to, function, from });
            return true;
        }
        let from = self.slots_of(op.operand_values());
        let from_tensor = op.operand_types().any(|of| of.is_tensor());
        let function = if from_tensor { Function::New } else { function };
        self.push(Instruction::Compute { to, function, from });
        // It may use the result of a product.
        !from_tensor
    }

    /// A buffer, or a part of one.
    fn views(&mut self, op: OperationRef<'_, '_>) -> Result<bool, String> {
        let Some(result) = op.result_value(0) else {
            return Ok(false);
        };
        let Some(memory) = MemDesc::of(result.r#type()) else {
            return Ok(false);
        };
        if !memory.is_shared() {
            return Err("it uses tensor memory".into());
        }
        // Products hand on the buffers that they read.
        if ttng::WarpGroupDotWaitOp::of(op).is_some() {
            return Ok(false);
        }
        let to = self.slot(result);
        let bytes = room(memory)?.bytes;
        if let Some(alloc) = ttg::LocalAllocOp::of(op) {
            let offset = op.attr(ALLOCATION_OFFSET).and_then(AttributeExt::as_bits);
            let offset = offset.ok_or("a buffer has no place in shared memory")?;
            self.push(Instruction::Allocate {
                to,
                bytes: offset..offset + bytes,
            });
            if let Some(source) = alloc.src() {
                let from = self.slot(source);
                let place = self.place(op);
                self.push(Instruction::Uses {
                    from: vec![from],
                    place,
                });
                self.event(op, Event::Write { to });
            }
            return Ok(true);
        }
        let source = op
            .operand_value(0)
            .filter(|value| MemDesc::of(value.r#type()).is_some());
        let source = source.ok_or_else(|| unknown(op))?;
        let from = self.slot(source);
        if let Some(index) = ttg::MemDescIndexOp::of(op) {
            let ring = MemDesc::of(source.r#type()).ok_or_else(|| unknown(op))?;
            let count = ring.shape().first().copied().unwrap_or(1);
            let whole = room(ring)?.bytes;
            // Padding continues from one buffer to the next, and only the last has none at its end.
            let between = u64::try_from(count - 1).unwrap_or(0).max(1);
            let stride = if count > 1 {
                whole.saturating_sub(bytes) / between
            } else {
                bytes
            };
            let index = self.slot(index.index());
            self.push(Instruction::Index {
                to,
                from,
                index,
                count,
                each: bytes,
                stride,
            });
        } else {
            self.push(Instruction::View { to, from });
        }
        Ok(true)
    }

    /// Transaction barriers, copies and products.
    fn transacts(&mut self, op: OperationRef<'_, '_>) -> Result<bool, String> {
        let event = if let Some(of) = ttng::InitBarrierOp::of(op) {
            let (barrier, count) = (self.slot(of.alloc()), of.count());
            Event::Begin { barrier, count }
        } else if let Some(of) = ttng::InvalBarrierOp::of(op) {
            let barrier = self.slot(of.alloc());
            Event::End { barrier }
        } else if let Some(of) = ttng::BarrierExpectOp::of(op) {
            Event::Arrive {
                barrier: self.slot(of.alloc()),
                count: 1,
                bytes: of.size(),
                by_warp: false,
                lanes_meet: false,
                pred: Some(self.slot(of.pred())),
            }
        } else if let Some(of) = ttng::ArriveBarrierOp::of(op) {
            Event::Arrive {
                barrier: self.slot(of.alloc()),
                count: of.count(),
                bytes: 0,
                by_warp: op.attr(ARRIVES_BY_WARP).is_some(),
                lanes_meet: op.attr(LANES_HAVE_MET).is_none(),
                pred: of.pred().map(|pred| self.slot(pred)),
            }
        } else if let Some(of) = ttng::WaitBarrierOp::of(op) {
            Event::Wait {
                barrier: self.slot(of.alloc()),
                phase: self.slot(of.phase()),
                flipped: false,
                pred: of.pred().map(|pred| self.slot(pred)),
            }
        } else if let Some(of) = ttng::AsyncTMACopyGlobalToLocalOp::of(op) {
            self.bulk_load(of.barrier(), of.result(), of.pred())?
        } else if let Some(of) = ttng::AsyncTMAGatherOp::of(op) {
            self.bulk_load(of.barrier(), of.result(), of.pred())?
        } else if ttng::AsyncTMACopyLocalToGlobalOp::of(op).is_some()
            || ttng::AsyncTMAReduceOp::of(op).is_some()
            || ttng::AsyncTMAScatterOp::of(op).is_some()
        {
            let from = op
                .operand_values()
                .find(|value| MemDesc::of(value.r#type()).is_some());
            let from = from.ok_or_else(|| unknown(op))?;
            let from = self.slot(from);
            Event::BulkStore { from }
        } else if let Some(of) = ttng::TMAStoreWaitOp::of(op) {
            let left = of.pendings();
            Event::BulkWait { left }
        } else if let Some(of) = ttg::AsyncCopyGlobalToLocalOp::of(op) {
            let to = self.slot(of.result());
            Event::Copy { to }
        } else if let Some(of) = amdg::BufferLoadToLocalOp::of(op) {
            let to = self.slot(of.dest());
            Event::Copy { to }
        } else if ttg::AsyncCommitGroupOp::of(op).is_some() {
            Event::Commit
        } else if let Some(of) = ttg::AsyncWaitOp::of(op) {
            Event::CopyWait { left: of.num() }
        } else if let Some(of) = ttng::WarpGroupDotOp::of(op) {
            let is_shared = |value: &Value<'_, '_>| MemDesc::of(value.r#type()).is_some();
            let operands = [of.a(), of.b()];
            Event::Product {
                shared: self.slots_of(operands.into_iter().filter(is_shared)),
                registers: self.slots_of(operands.into_iter().filter(|value| !is_shared(value))),
                to: self.slot(of.d()),
                waits: !of.is_async(),
            }
        } else if let Some(of) = ttng::WarpGroupDotWaitOp::of(op) {
            let (from, to) = (self.slots_of(of.inputs()), self.slots_of(of.outputs()));
            Event::ProductWait {
                moves: from.into_iter().zip(to).collect(),
                left: of.pendings(),
            }
        } else {
            return Ok(false);
        };
        self.event(op, event);
        Ok(true)
    }

    fn bulk_load<'c: 'a, 'a>(
        &mut self,
        barrier: Value<'c, 'a>,
        to: Value<'c, 'a>,
        pred: Value<'c, 'a>,
    ) -> Result<Event, String> {
        let memory = MemDesc::of(to.r#type()).ok_or("a copy writes no buffer")?;
        Ok(Event::BulkLoad {
            barrier: self.slot(barrier),
            to: self.slot(to),
            bytes: i64::try_from(room(memory)?.bytes).map_err(|error| error.to_string())?,
            pred: Some(self.slot(pred)),
        })
    }
}

fn unknown(op: OperationRef<'_, '_>) -> String {
    format!("'{}' has no meaning in the skeleton", op.name_str())
}

fn is_index(value: Value<'_, '_>) -> bool {
    value.r#type().is_index()
}

/// `x` and `n`, if the op computes `x - x / n * n`.
fn remainder<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<(Value<'c, 'a>, Value<'c, 'a>)> {
    let difference = arith::SubIOp::of(op)?;
    let product = arith::MulIOp::defining(difference.rhs())?;
    let quotient = arith::DivUIOp::defining(product.lhs())?;
    let same = |one: Value<'_, '_>, other: Value<'_, '_>| key(one) == key(other);
    let is_remainder =
        same(quotient.lhs(), difference.lhs()) && same(quotient.rhs(), product.rhs());
    is_remainder.then(|| (quotient.lhs(), quotient.rhs()))
}

fn is_truth(op: OperationRef<'_, '_>) -> bool {
    op.result_types().all(|of| of.is_integer_of_width(1))
}

/// The function that an op computes, if the skeleton knows it.
fn function(op: OperationRef<'_, '_>) -> Option<Function> {
    use llopt_dialects::arith::Op as A;
    Some(match A::of(op)? {
        A::AddI(_) => Function::Add,
        A::SubI(_) => Function::Sub,
        A::MulI(_) => Function::Mul,
        A::DivSI(_) => Function::DivS,
        A::DivUI(_) => Function::DivU,
        A::RemSI(_) => Function::RemS,
        A::RemUI(_) => Function::RemU,
        A::AndI(_) if is_truth(op) => Function::Both,
        A::AndI(_) => Function::And,
        A::OrI(_) if is_truth(op) => Function::Either,
        A::OrI(_) => Function::Or,
        A::XOrI(_) => Function::Xor,
        A::ShLI(_) => Function::ShiftLeft,
        A::ShRSI(_) | A::ShRUI(_) => Function::ShiftRight,
        A::MinSI(_) => Function::MinS,
        A::MaxSI(_) => Function::MaxS,
        A::MinUI(_) => Function::MinU,
        A::MaxUI(_) => Function::MaxU,
        A::ExtSI(_) | A::ExtUI(_) | A::TruncI(_) | A::IndexCast(_) | A::IndexCastUI(_) => {
            Function::Same
        }
        A::CmpI(of) => Function::Compare(of.predicate()?),
        A::Select(_) => Function::Select,
        _ => return None,
    })
}
