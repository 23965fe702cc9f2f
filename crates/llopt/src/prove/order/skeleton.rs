//! The asynchronous skeleton of a kernel: what is left of it when everything is removed that neither touches shared memory
//! nor decides which of its buffers, which phase and how often.
//!
//! It is a list of instructions with jumps; loops, conditions and partitions were structured, and between the blocks of a
//! function jumps only go forward.

use std::collections::HashMap;
use std::ops::Range;

use llopt_dialects::arith::CmpIPredicate;

/// Where a value is during an execution.
pub(super) type Slot = usize;

/// An op of the kernel that an instruction comes from.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) location: String,
    pub(super) op: String,
    pub(super) types: String,
}

/// A function of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Same,
    Add,
    Sub,
    Mul,
    DivS,
    DivU,
    RemS,
    RemU,
    And,
    Or,
    Xor,
    /// Of truths.
    Both,
    Either,
    ShiftLeft,
    ShiftRight,
    MinS,
    MaxS,
    MinU,
    MaxU,
    Compare(CmpIPredicate),
    Select,
    /// Another function without effects, by number.
    Other(u32),
    /// It may be something else each time.
    New,
}

/// What happens to shared memory, or to asynchronous work.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Begin {
        barrier: Slot,
        count: i64,
    },
    End {
        barrier: Slot,
    },
    Arrive {
        barrier: Slot,
        count: i64,
        bytes: i64,
        by_warp: bool,
        /// Whether the lanes of a warp meet before one of them arrives for it.
        lanes_meet: bool,
        pred: Option<Slot>,
    },
    Wait {
        barrier: Slot,
        phase: Slot,
        flipped: bool,
        pred: Option<Slot>,
    },
    BulkLoad {
        barrier: Slot,
        to: Slot,
        bytes: i64,
        pred: Option<Slot>,
    },
    BulkStore {
        from: Slot,
    },
    BulkWait {
        left: i64,
    },
    Copy {
        to: Slot,
    },
    Commit,
    CopyWait {
        left: i64,
    },
    Product {
        shared: Vec<Slot>,
        registers: Vec<Slot>,
        to: Slot,
        waits: bool,
    },
    ProductWait {
        moves: Vec<(Slot, Slot)>,
        left: i64,
    },
    Read {
        from: Slot,
    },
    Write {
        to: Slot,
    },
    /// An op with memory of its own: it is divided among the warps in one of several ways, or all threads meet before
    /// they read.
    Scratch {
        bytes: Range<u64>,
        parts: Option<usize>,
        meets: bool,
    },
    Fence,
    Barrier,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) enum Instruction {
    Constant {
        to: Slot,
        value: i64,
    },
    Compute {
        to: Slot,
        function: Function,
        from: Vec<Slot>,
    },
    Move(Vec<(Slot, Slot)>),
    /// Begins a loop with these bounds and this step, or a loop with none of them.
    Enter {
        number: usize,
        bounds: Option<[Slot; 3]>,
        to: Option<Slot>,
    },
    /// Leaves the loop if it has no iteration left; these values are handed from each iteration to the next.
    Head {
        exit: usize,
        handed: Vec<Slot>,
    },
    Next {
        to: Option<Slot>,
    },
    /// Continues at `otherwise` unless the condition holds. Code from here to `end` is of one of both cases, if there is one.
    Branch {
        condition: Slot,
        otherwise: usize,
        end: Option<usize>,
    },
    Jump(usize),
    Fork {
        partitions: Vec<(usize, Vec<(Slot, Slot)>)>,
        warps: Vec<i64>,
    },
    Join,
    EndPartition,
    Allocate {
        to: Slot,
        bytes: Range<u64>,
    },
    View {
        to: Slot,
        from: Slot,
    },
    Index {
        to: Slot,
        from: Slot,
        index: Slot,
        count: i64,
        each: u64,
        stride: u64,
    },
    Uses {
        from: Vec<Slot>,
        place: usize,
    },
    Event {
        event: Event,
        place: usize,
    },
    Return {
        place: usize,
    },
    /// In place of a jump whose target is not known yet.
    Open,
}

/// A kernel's skeleton.
#[derive(Clone, Debug, Default)]
pub(super) struct Skeleton {
    pub(super) code: Vec<Instruction>,
    pub(super) places: Vec<Place>,
    pub(super) slots: usize,
    /// The location of each loop.
    pub(super) loops: Vec<String>,
    /// The agents: the partitions that run at the same time, and the kernel itself.
    pub(super) agents: usize,
    /// The warps of the kernel itself.
    pub(super) warps: i64,
    /// Whether a value decides about buffers, phases, conditions or iterations.
    pub(super) needed: Vec<bool>,
    /// Values that loops and conditions hand on.
    pub(super) carried: Vec<Slot>,
}

impl Skeleton {
    /// Whether anything in it is asynchronous or concurrent, or takes buffers in turn.
    pub(super) fn is_asynchronous(&self) -> bool {
        self.agents > 1
            || self.code.iter().any(|instruction| {
                matches!(
                    instruction,
                    Instruction::Index { .. }
                        | Instruction::Event {
                            event: Event::Begin { .. }
                                | Event::BulkStore { .. }
                                | Event::Copy { .. }
                                | Event::Product { waits: false, .. },
                            ..
                        }
                )
            })
    }

    /// Finds the values that decide about buffers, phases, conditions or iterations, and removes conditions that decide
    /// about nothing of these.
    pub(super) fn find_needed(&mut self) {
        let mut needed = vec![false; self.slots];
        let mut queue: Vec<Slot> = Vec::new();
        let mut from: HashMap<Slot, Vec<Slot>> = HashMap::new();
        let mut carried = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (at, instruction) in self.code.iter().enumerate() {
            match instruction {
                Instruction::Compute {
                    to, from: sources, ..
                } => {
                    from.entry(*to).or_default().extend(sources);
                }
                Instruction::Move(moves) => {
                    for &(source, to) in moves {
                        from.entry(to).or_default().push(source);
                        carried.push(to);
                    }
                }
                Instruction::Enter { bounds, .. } => queue.extend(bounds.iter().flatten()),
                Instruction::Branch { .. } => open.push(at),
                Instruction::Index { index, .. } => queue.push(*index),
                Instruction::Fork { partitions, .. } => {
                    for &(source, to) in partitions.iter().flat_map(|(_, moves)| moves) {
                        from.entry(to).or_default().push(source);
                        carried.push(to);
                    }
                }
                Instruction::Event { event, .. } => match event {
                    Event::Wait { phase, pred, .. } => queue.extend([*phase].iter().chain(pred)),
                    Event::Arrive { pred, .. } | Event::BulkLoad { pred, .. } => queue.extend(pred),
                    _ => {}
                },
                _ => {}
            }
        }
        loop {
            while let Some(slot) = queue.pop() {
                if !std::mem::replace(&mut needed[slot], true) {
                    queue.extend(from.get(&slot).into_iter().flatten());
                }
            }
            // A condition is needed if something in its branches is.
            open.retain(|&at| {
                let Instruction::Branch { condition, .. } = self.code[at] else {
                    return false;
                };
                let decides = self.branches(at).is_none_or(|branches| {
                    self.code[branches]
                        .iter()
                        .any(|instruction| decides(instruction, &needed))
                });
                if decides {
                    queue.push(condition);
                }
                !decides
            });
            if queue.is_empty() {
                break;
            }
        }
        for at in open {
            if let Some(branches) = self.branches(at) {
                self.code[at] = Instruction::Jump(branches.end);
            }
        }
        carried.sort_unstable();
        carried.dedup();
        (self.needed, self.carried) = (needed, carried);
    }

    /// The instructions of both branches of a condition, if they meet.
    fn branches(&self, at: usize) -> Option<Range<usize>> {
        let Instruction::Branch { end, .. } = self.code[at] else {
            return None;
        };
        end.map(|end| at + 1..end)
    }
}

/// Whether an instruction does anything but compute what nobody needs.
fn decides(instruction: &Instruction, needed: &[bool]) -> bool {
    match instruction {
        Instruction::Constant { to, .. } | Instruction::Compute { to, .. } => needed[*to],
        Instruction::Move(moves) => moves.iter().any(|&(_, to)| needed[to]),
        Instruction::Jump(_) | Instruction::Open => false,
        _ => true,
    }
}
