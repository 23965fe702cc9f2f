//! `ttg.warp_specialize`: several groups of warps that run their own code, interpreted in turns.
//!
//! Groups pass data to one another at barriers in memory, which have no effect outside of partitions here. So a group
//! is a stack of loops and branches that can be suspended at a wait and resumed: it runs until it has to wait at a
//! barrier, then another group runs; when all of them wait, the program hangs, which is reported. A program without
//! races has the same result in any order.

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::{scf, ttg, ttng};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt};
use melior::ir::{BlockRef, OperationRef};

use super::failure::{Failure, Interpreted};
use super::program::{Barrier, Flow, Located, Program};
use super::value::{Element, Tensor, Value, View, count};

/// The construct whose block is being executed.
enum Inside<'c, 'a> {
    /// The group's whole code.
    All,
    /// `scf.for`: the next value of the variable.
    For {
        op: OperationRef<'c, 'a>,
        element: Element,
        next: i64,
        high: i64,
        step: i64,
    },
    /// `scf.if`.
    If(OperationRef<'c, 'a>),
    /// `scf.while`.
    While(OperationRef<'c, 'a>),
}

/// A group of warps.
struct Group<'c, 'a> {
    /// The blocks that are being executed, innermost last, each with its next operation.
    stack: Vec<(Inside<'c, 'a>, Option<OperationRef<'c, 'a>>)>,
    /// The values that the default region yields.
    results: Vec<Value>,
}

/// The progress of a group.
enum Progress<'c, 'a> {
    /// It waits at a barrier; whether it has executed anything before.
    Waits(OperationRef<'c, 'a>, bool),
    /// It has ended; whether it has executed anything.
    Done(bool),
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// Executes the regions of the op together.
    pub(super) fn specialize(
        &mut self,
        op: ttg::WarpSpecializeOp<'c, 'a>,
    ) -> Located<'c, 'a, Vec<Value>> {
        let operation = op.operation();
        let at = |failure: Failure| (failure, operation);
        let captured = operation
            .operand_values()
            .map(|value| self.get(value))
            .collect::<Interpreted<Vec<Value>>>()
            .map_err(at)?;
        let mut groups = Vec::new();
        let regions = std::iter::once((operation.region_ref(0), Vec::new())).chain(
            op.partition_regions()
                .into_iter()
                .map(|region| (Some(region), captured.clone())),
        );
        for (region, arguments) in regions {
            let mut group = Group {
                stack: Vec::new(),
                results: Vec::new(),
            };
            if let Some(block) = region.and_then(RegionExt::entry) {
                self.enter(&mut group, Inside::All, block, arguments);
            }
            groups.push(group);
        }
        loop {
            let (mut moved, mut kept) = (false, None);
            for group in &mut groups {
                match self.advance(group)? {
                    Progress::Waits(wait, before) => {
                        moved |= before;
                        kept = Some(wait);
                    }
                    Progress::Done(before) => moved |= before,
                }
            }
            match kept {
                None => return Ok(groups.swap_remove(0).results),
                Some(wait) if !moved => {
                    let what = "all groups of warps wait at barriers that nobody completes";
                    return Err((Failure::Wrong(what.to_owned()), wait));
                }
                Some(_) => {}
            }
        }
    }

    fn enter(
        &mut self,
        group: &mut Group<'c, 'a>,
        inside: Inside<'c, 'a>,
        block: BlockRef<'c, 'a>,
        arguments: Vec<Value>,
    ) {
        for (handle, value) in block.argument_values().zip(arguments) {
            self.set(handle, value);
        }
        group.stack.push((inside, block.operations().next()));
    }

    /// Executes a group until it waits or ends.
    fn advance(&mut self, group: &mut Group<'c, 'a>) -> Located<'c, 'a, Progress<'c, 'a>> {
        let mut moved = false;
        while let Some((_, next)) = group.stack.last_mut() {
            let Some(op) = *next else {
                // A block without a terminator yields nothing.
                self.leave(group, Vec::new())?;
                continue;
            };
            let at = |failure: Failure| (failure, op);
            if self.is_kept(op).map_err(at)? {
                return Ok(Progress::Waits(op, moved));
            }
            *next = op.next_op();
            moved = true;
            self.spend(op)?;
            match Control::of(op) {
                Control::PartitionEnd => self.leave(group, Vec::new())?,
                Control::ConcurrentYield => {
                    let values = op.operand_values().map(|value| self.get(value));
                    let values = values.collect::<Interpreted<Vec<Value>>>().map_err(at)?;
                    self.leave(group, values)?;
                }
                Control::For => self.begin_for(group, op).map_err(at)?,
                Control::Choice if scf::IfOp::of(op).is_some() => {
                    let taken = self.condition(op).map_err(at)?;
                    let region = op.region_ref(usize::from(!taken));
                    if let Some(block) = region.and_then(RegionExt::entry) {
                        self.enter(group, Inside::If(op), block, Vec::new());
                    }
                }
                Control::While => {
                    let values = op.operand_values().map(|value| self.get(value));
                    let values = values.collect::<Interpreted<Vec<Value>>>().map_err(at)?;
                    if let Some(block) = op.region_ref(0).and_then(RegionExt::entry) {
                        self.enter(group, Inside::While(op), block, values);
                    }
                }
                Control::Computes
                | Control::Function
                | Control::Call
                | Control::Return
                | Control::Condition
                | Control::Choice
                | Control::Masked
                | Control::Yield
                | Control::Result
                | Control::Concurrent
                | Control::Partitions
                | Control::Branch
                | Control::ConditionalBranch => match self.terminator(op).map_err(at)? {
                    Some(Flow::Values(values)) => self.leave(group, values)?,
                    Some(Flow::Condition(goes_on, values)) => {
                        self.decide(group, op, goes_on, values)?;
                    }
                    Some(Flow::Branch(..)) => {
                        return Err(at(Failure::Unknown("a branch in a partition".to_owned())));
                    }
                    None => {
                        let results = match self.control(op)? {
                            Some(results) => results,
                            None => self.operation(op).map_err(at)?,
                        };
                        self.give(op, results);
                    }
                },
            }
        }
        Ok(Progress::Done(moved))
    }

    fn give(&mut self, op: OperationRef<'c, 'a>, results: Vec<Value>) {
        for (handle, value) in op.result_values().zip(results) {
            self.set(handle, value);
        }
    }

    fn begin_for(
        &mut self,
        group: &mut Group<'c, 'a>,
        op: OperationRef<'c, 'a>,
    ) -> Interpreted<()> {
        let element = self.operand(op, 0)?.element;
        let bound = |index| -> Interpreted<i64> { self.operand(op, index)?.signed() };
        let (low, high, step) = (bound(0)?, bound(1)?, bound(2)?);
        let carried = op.operand_values().skip(3).map(|value| self.get(value));
        let carried = carried.collect::<Interpreted<Vec<Value>>>()?;
        let inside = Inside::For {
            op,
            element,
            next: low,
            high,
            step: step.max(1),
        };
        group.stack.push((inside, None));
        self.iterate(group, carried);
        Ok(())
    }

    /// The next iteration of the innermost loop, or its end.
    fn iterate(&mut self, group: &mut Group<'c, 'a>, carried: Vec<Value>) {
        let Some((
            Inside::For {
                op,
                element,
                next,
                high,
                step,
            },
            place,
        )) = group.stack.last_mut()
        else {
            return;
        };
        let op = *op;
        let block = op.region_ref(0).and_then(RegionExt::entry);
        match block {
            Some(block) if *next < *high => {
                let variable = Tensor::scalar(*element, *next as u64 & element.mask());
                *next += *step;
                *place = block.operations().next();
                let arguments = std::iter::once(Value::Tensor(variable)).chain(carried);
                for (handle, value) in block.argument_values().zip(arguments) {
                    self.set(handle, value);
                }
            }
            _ => {
                group.stack.pop();
                self.give(op, carried);
            }
        }
    }

    /// A block ends with these values.
    fn leave(&mut self, group: &mut Group<'c, 'a>, values: Vec<Value>) -> Located<'c, 'a, ()> {
        match group.stack.last() {
            Some((Inside::For { .. }, _)) => self.iterate(group, values),
            Some((Inside::If(op), _)) => {
                let op = *op;
                group.stack.pop();
                self.give(op, values);
            }
            Some((Inside::While(op), _)) => {
                let op = *op;
                group.stack.pop();
                if let Some(block) = op.region_ref(0).and_then(RegionExt::entry) {
                    self.enter(group, Inside::While(op), block, values);
                }
            }
            Some((Inside::All, _)) => {
                group.stack.pop();
                group.results = values;
            }
            None => {}
        }
        Ok(())
    }

    /// `scf.condition`.
    fn decide(
        &mut self,
        group: &mut Group<'c, 'a>,
        condition: OperationRef<'c, 'a>,
        goes_on: bool,
        values: Vec<Value>,
    ) -> Located<'c, 'a, ()> {
        let Some((Inside::While(op), _)) = group.stack.pop() else {
            let what = "a condition outside of a loop".to_owned();
            return Err((Failure::Unknown(what), condition));
        };
        match op.region_ref(1).and_then(RegionExt::entry) {
            Some(block) if goes_on => self.enter(group, Inside::While(op), block, values),
            _ => self.give(op, values),
        }
        Ok(())
    }

    // Barriers.

    fn barrier_key(view: &View) -> (usize, usize) {
        (view.array, view.offset)
    }

    /// Whether an op waits for a phase that is not complete.
    fn is_kept(&self, op: OperationRef<'c, 'a>) -> Interpreted<bool> {
        let Some(wait) = ttng::WaitBarrierOp::of(op) else {
            return Ok(false);
        };
        if let Some(condition) = wait.pred()
            && self.tensor(condition)?.only()? & 1 == 0
        {
            return Ok(false);
        }
        let parity = self.tensor(wait.phase())?.only()? & 1;
        let view = self.view(wait.alloc())?;
        let barrier = self.barriers.get(&Self::barrier_key(&view));
        Ok(barrier.is_some_and(|barrier| barrier.phase & 1 == parity))
    }

    /// Initialises a barrier.
    pub(super) fn init_barrier(&mut self, op: ttng::InitBarrierOp<'c, 'a>) -> Interpreted<()> {
        let expected = op.count();
        let barrier = Barrier {
            expected,
            missing: expected,
            bytes: 0,
            phase: 0,
        };
        let view = self.view(op.alloc())?;
        self.barriers.insert(Self::barrier_key(&view), barrier);
        Ok(())
    }

    /// One arrival, and a number of expected bytes.
    pub(super) fn expect_bytes(&mut self, op: ttng::BarrierExpectOp<'c, 'a>) -> Interpreted<()> {
        if self.tensor(op.pred())?.only()? & 1 == 1 {
            self.signal(&self.view(op.alloc())?, 1, op.size());
        }
        Ok(())
    }

    /// Arrivals.
    pub(super) fn arrive(&mut self, op: ttng::ArriveBarrierOp<'c, 'a>) -> Interpreted<()> {
        let acts = match op.pred() {
            Some(condition) => self.tensor(condition)?.only()? & 1 == 1,
            None => true,
        };
        if acts {
            self.signal(&self.view(op.alloc())?, op.count(), 0);
        }
        Ok(())
    }

    /// The bytes of a copy have arrived.
    pub(super) fn arrived(
        &mut self,
        op: ttng::AsyncTMACopyGlobalToLocalOp<'c, 'a>,
    ) -> Interpreted<()> {
        let copied = self.view(op.result())?;
        let bytes = count(&copied.shape) as i64 * i64::from(copied.element.bits()) / 8;
        self.signal(&self.view(op.barrier())?, 0, -bytes);
        Ok(())
    }

    fn signal(&mut self, view: &View, arrivals: i64, bytes: i64) {
        if let Some(barrier) = self.barriers.get_mut(&Self::barrier_key(view)) {
            barrier.missing -= arrivals;
            barrier.bytes += bytes;
            barrier.settle();
        }
    }
}
