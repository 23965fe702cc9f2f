//! Writing bytecode: slots, constants, blocks and the common patterns of all translators.

use std::collections::HashMap;

use llopt_target::{Target, Vendor};

use crate::machine::bytecode::{
    Access, AccessKind, Address, Async, Atomic, Block, BlockId, Collective, Edge, EdgeId,
    Expectation, Fence, Function, Life, Line, Meeting, Op, Part, Site, SiteId, Slot, Space,
    Special, Terminator,
};
use crate::machine::row::{self, IntOp, Real, Row1, Row2, Row3};

/// Tables of the whole program that functions add to.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) sites: Vec<Site>,
    pub(crate) lines: Vec<Line>,
    line_numbers: HashMap<Line, u32>,
    pub(crate) global_atomics: bool,
}

impl Tables {
    /// Number of a line; number 0 means "no location".
    pub(crate) fn line(&mut self, line: Line) -> u32 {
        if let Some(&known) = self.line_numbers.get(&line) {
            return known;
        }
        let number = self.lines.len() as u32;
        self.lines.push(line.clone());
        self.line_numbers.insert(line, number);
        number
    }
}

/// A block that is being written.
struct Draft {
    ops: Vec<Op>,
    lines: Vec<u32>,
    terminator: Option<Terminator>,
    terminator_line: u32,
}

/// Writes the bytecode of one function.
pub(crate) struct Emitter<'t> {
    pub(crate) target: Target,
    pub(crate) tables: &'t mut Tables,
    function: String,
    slots: u32,
    constants: HashMap<u64, Slot>,
    blocks: Vec<Draft>,
    edges: Vec<Edge>,
    current: BlockId,
    line: u32,
    /// Text of the LLVM instruction being translated, for sites.
    text: String,
    /// The site that the instruction's first one is.
    first_site: SiteId,
    /// Type of `float` arithmetic in this function.
    pub(crate) single: Real,
    pub(crate) local_bytes: u64,
    /// Conversions to formats of 16 bits and fewer clamp on overflow, as set in a mode register of AMD from this
    /// point on.
    pub(crate) clamp_overflow: bool,
}

impl<'t> Emitter<'t> {
    pub(crate) fn new(
        target: Target,
        tables: &'t mut Tables,
        function: &str,
        single: Real,
    ) -> Self {
        Self {
            target,
            tables,
            function: function.to_owned(),
            slots: 0,
            constants: HashMap::new(),
            blocks: Vec::new(),
            edges: Vec::new(),
            current: 0,
            line: 0,
            text: String::new(),
            first_site: 0,
            single,
            local_bytes: 0,
            clamp_overflow: false,
        }
    }

    /// Whether warps advance in lockstep, so that lanes of one warp are ordered by the program.
    /// Lanes of a warp.
    pub(crate) fn warp_size(&self) -> u32 {
        self.target.warp_size()
    }

    pub(crate) fn is_nvptx(&self) -> bool {
        self.target.vendor() == Vendor::Nvptx
    }

    /// Sets the instruction that the following ops come from.
    pub(crate) fn at(&mut self, line: u32, text: String) {
        self.line = line;
        self.text = text;
        self.first_site = self.tables.sites.len() as SiteId;
    }

    /// A number of the LLVM instruction being translated, if it has any site.
    pub(crate) fn instruction(&self) -> SiteId {
        self.first_site
    }

    pub(crate) fn slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    pub(crate) fn slots(&mut self, count: usize) -> Vec<Slot> {
        (0..count).map(|_| self.slot()).collect()
    }

    pub(crate) fn constant(&mut self, value: u64) -> Slot {
        if let Some(&slot) = self.constants.get(&value) {
            return slot;
        }
        let slot = self.slot();
        self.constants.insert(value, slot);
        slot
    }

    /// A new block; ops are appended to it once it is entered.
    pub(crate) fn new_block(&mut self) -> BlockId {
        self.blocks.push(Draft {
            ops: Vec::new(),
            lines: Vec::new(),
            terminator: None,
            terminator_line: 0,
        });
        (self.blocks.len() - 1) as BlockId
    }

    pub(crate) fn enter(&mut self, block: BlockId) {
        self.current = block;
    }

    pub(crate) fn edge(&mut self, target: BlockId) -> EdgeId {
        self.edges.push(Edge {
            target,
            moves: Vec::new(),
        });
        (self.edges.len() - 1) as EdgeId
    }

    /// Attaches phi moves to an edge. They are simultaneous; the order written here makes them correct one by one.
    pub(crate) fn set_moves(&mut self, edge: EdgeId, mut moves: Vec<(Slot, Slot)>) {
        let mut ordered = Vec::with_capacity(moves.len());
        while !moves.is_empty() {
            let mut reads: HashMap<Slot, usize> = HashMap::new();
            for &(_, source) in &moves {
                *reads.entry(source).or_default() += 1;
            }
            let before = moves.len();
            // A move may go first if no other move still reads its target.
            moves.retain(|&(target, source)| {
                let free = !reads.contains_key(&target);
                if free {
                    ordered.push((target, source));
                    if let Some(count) = reads.get_mut(&source) {
                        *count -= 1;
                        if *count == 0 {
                            reads.remove(&source);
                        }
                    }
                }
                !free
            });
            if moves.len() == before {
                // Only cycles are left: break one by saving a target's old value.
                let (target, _) = moves[0];
                let saved = self.slot();
                ordered.push((saved, target));
                for (_, source) in &mut moves {
                    if *source == target {
                        *source = saved;
                    }
                }
            }
        }
        self.edges[edge as usize].moves = ordered;
    }

    pub(crate) fn terminate(&mut self, terminator: Terminator) {
        let line = self.line;
        let draft = &mut self.blocks[self.current as usize];
        draft.terminator = Some(terminator);
        draft.terminator_line = line;
    }

    pub(crate) fn push(&mut self, op: Op) {
        let line = self.line;
        let draft = &mut self.blocks[self.current as usize];
        draft.ops.push(op);
        draft.lines.push(line);
    }

    /// Number of ops in the current block, to wrap a range in a guard afterwards.
    pub(crate) fn mark(&self) -> usize {
        self.blocks[self.current as usize].ops.len()
    }

    /// Makes the ops since `mark` execute only where `predicate` is set (or, negated, clear).
    pub(crate) fn guard_since(&mut self, mark: usize, predicate: Slot, negate: bool) {
        let line = self.line;
        let draft = &mut self.blocks[self.current as usize];
        let length = (draft.ops.len() - mark) as u32;
        if length == 0 {
            return;
        }
        let guard = Op::Guard {
            predicate,
            negate,
            length,
        };
        draft.ops.insert(mark, guard);
        draft.lines.insert(mark, line);
    }

    /// Makes the sanitizer check a value: below a bound, or not zero.
    pub(crate) fn expect(&mut self, value: Slot, below: Option<u64>) {
        let site = self.site();
        let expectation = Expectation { value, below, site };
        self.push(Op::Expect(Box::new(expectation)));
    }

    /// Tells the sanitizer that the live range of a buffer begins or ends.
    pub(crate) fn life(&mut self, address: Slot, bytes: u64, begins: bool) {
        let site = self.site();
        self.push(Op::Life(Box::new(Life {
            address,
            bytes,
            begins,
            site,
        })));
    }

    /// A site for the current instruction.
    pub(crate) fn site(&mut self) -> SiteId {
        self.tables.sites.push(Site {
            function: self.function.clone(),
            text: self.text.clone(),
            line: self.line,
        });
        (self.tables.sites.len() - 1) as SiteId
    }

    /// An operation of asynchronous copies.
    pub(crate) fn asynchronous(&mut self, what: Async) {
        let site = self.site();
        self.push(Op::Async(Box::new(what), site));
    }

    /// A wait for the kernel before.
    pub(crate) fn grid_wait(&mut self) {
        let site = self.site();
        self.push(Op::GridWait(site));
    }

    /// A fence.
    pub(crate) fn fence(&mut self, fence: Fence) {
        let site = self.site();
        self.push(Op::Fence(fence, site));
    }

    pub(crate) fn map1(&mut self, f: Row1, a: Slot) -> Slot {
        let dst = self.slot();
        self.push(Op::Map1 { f, dst, a });
        dst
    }

    pub(crate) fn map2(&mut self, f: Row2, a: Slot, b: Slot) -> Slot {
        let dst = self.slot();
        self.push(Op::Map2 { f, dst, a, b });
        dst
    }

    pub(crate) fn map3(&mut self, f: Row3, a: Slot, b: Slot, c: Slot) -> Slot {
        let dst = self.slot();
        self.push(Op::Map3 { f, dst, a, b, c });
        dst
    }

    pub(crate) fn copy(&mut self, dst: Slot, a: Slot) {
        self.push(Op::Copy { dst, a });
    }

    pub(crate) fn select(&mut self, condition: Slot, a: Slot, b: Slot) -> Slot {
        self.map3(row::SELECT, condition, a, b)
    }

    /// The low `bits` bits.
    pub(crate) fn truncate(&mut self, a: Slot, bits: u32) -> Slot {
        let mask = self.constant(row::mask(bits));
        self.map2(row::AND, a, mask)
    }

    /// The low `bits` bits as a signed number in 64 bits.
    pub(crate) fn sign_extend(&mut self, a: Slot, bits: u32) -> Slot {
        let shift = self.constant(u64::from(64 - bits));
        self.map2(row::SIGN_EXTEND, a, shift)
    }

    /// Bits `shift..shift + bits`.
    pub(crate) fn extract(&mut self, a: Slot, shift: u32, bits: u32) -> Slot {
        let shift = self.constant(u64::from(shift));
        let mask = self.constant(row::mask(bits));
        self.map3(row::EXTRACT_BITS, a, shift, mask)
    }

    /// Puts equal pieces of `bits` bits side by side, the first one lowest; at most 64 bits.
    pub(crate) fn pack(&mut self, pieces: &[Slot], bits: u32) -> Slot {
        let mut result = pieces[0];
        for (i, &piece) in pieces.iter().enumerate().skip(1) {
            let shift = self.constant(u64::from(i as u32 * bits));
            result = self.map3(row::INSERT_BITS, result, piece, shift);
        }
        result
    }

    /// Splits a value into `count` pieces of `bits` bits.
    pub(crate) fn unpack(&mut self, value: Slot, bits: u32, count: usize) -> Vec<Slot> {
        (0..count)
            .map(|i| self.extract(value, i as u32 * bits, bits))
            .collect()
    }

    /// An integer operation of any width up to 64.
    pub(crate) fn int_binary(&mut self, op: IntOp, bits: u32, a: Slot, b: Slot) -> Slot {
        if let Some(f) = row::int_binary(op, bits) {
            return self.map2(f, a, b);
        }
        let signed = matches!(
            op,
            IntOp::SDiv | IntOp::SRem | IntOp::AShr | IntOp::SMin | IntOp::SMax
        );
        let (mut x, mut y) = (a, b);
        if signed {
            x = self.sign_extend(a, bits);
            if op != IntOp::AShr {
                y = self.sign_extend(b, bits);
            }
        }
        let wide = row::int_binary(op, 64).unwrap_or(row::AND);
        let result = self.map2(wide, x, y);
        self.truncate(result, bits)
    }

    pub(crate) fn special(&mut self, what: Special) -> Slot {
        let dst = self.slot();
        self.push(Op::Special { what, dst });
        dst
    }

    /// A collective; `members` is the member mask of a `.sync` form.
    pub(crate) fn collective(&mut self, what: Collective, members: Option<Slot>) {
        let site = self.site();
        self.push(Op::Collective(Box::new(Meeting {
            what,
            members,
            site,
        })));
    }

    /// A load of scalar pieces into existing slots.
    pub(crate) fn access(
        &mut self,
        kind: AccessKind,
        space: Space,
        address: Address,
        parts: Vec<Part>,
        align: u32,
        synchronizing: bool,
    ) {
        let bytes = parts.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
        self.push_access(Access {
            kind,
            address,
            space,
            parts: parts.into_boxed_slice(),
            bytes,
            width: bytes,
            align,
            synchronizing,
            site: 0,
        });
    }

    /// A load or store, unless it has no parts; its site is set here.
    pub(crate) fn push_access(&mut self, mut access: Access) {
        if access.bytes != 0 {
            access.site = self.site();
            self.push(Op::Access(Box::new(access)));
        }
    }

    /// Records that the program has an atomic operation on global memory.
    pub(crate) fn update_global_memory(&mut self) {
        self.tables.global_atomics = true;
    }

    pub(crate) fn atomic(&mut self, mut atomic: Atomic) {
        if atomic.space != Space::Shared && atomic.space != Space::Local {
            self.tables.global_atomics = true;
        }
        atomic.site = self.site();
        self.push(Op::Atomic(Box::new(atomic)));
    }

    /// Completes the function: determines where diverged lanes reconverge.
    pub(crate) fn finish(self, parameters: Vec<Slot>, results: Vec<Slot>) -> Function {
        let successors: Vec<Vec<BlockId>> = self
            .blocks
            .iter()
            .map(|b| successors(b.terminator.as_ref(), &self.edges))
            .collect();
        let ends: Vec<bool> = self
            .blocks
            .iter()
            .map(|b| matches!(b.terminator, Some(Terminator::Return(_))))
            .collect();
        let meets = crate::translate::dominance::immediate_post_dominators(&successors, &ends);
        let mut constants: Vec<(Slot, u64)> = self
            .constants
            .iter()
            .map(|(&value, &slot)| (slot, value))
            .collect();
        constants.sort_unstable();
        let blocks = self
            .blocks
            .into_iter()
            .zip(meets)
            .map(|(draft, meets_at)| Block {
                ops: draft.ops,
                lines: draft.lines,
                terminator: draft.terminator.unwrap_or(Terminator::Exit),
                terminator_line: draft.terminator_line,
                meets_at,
            })
            .collect();
        Function {
            name: self.function,
            slots: self.slots,
            constants,
            parameters,
            results,
            blocks,
            edges: self.edges,
            local_bytes: self.local_bytes,
        }
    }
}

fn successors(terminator: Option<&Terminator>, edges: &[Edge]) -> Vec<BlockId> {
    let target = |e: &EdgeId| edges[*e as usize].target;
    match terminator {
        Some(Terminator::Jump(edge)) => vec![target(edge)],
        Some(Terminator::Branch {
            then, otherwise, ..
        }) => vec![target(then), target(otherwise)],
        Some(Terminator::Switch { cases, default, .. }) => cases
            .iter()
            .map(|(_, edge)| target(edge))
            .chain([target(default)])
            .collect(),
        Some(Terminator::Return(_) | Terminator::Exit | Terminator::Unreachable(_)) | None => {
            Vec::new()
        }
    }
}
