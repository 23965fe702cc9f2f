//! The predicted time of an iteration of a loop with products.
//!
//! # Three figures
//!
//! The interval of a schedule is what an iteration could take, and its bound what it must take. The *prediction* is
//! what the emitted code takes: nobody decides by it, and it is neither a lower nor an upper bound.
//!
//! # The model
//!
//! For each number `B` of resident blocks, in cycles of the multiprocessor for an iteration of one of them:
//!
//! - The *matrix units*: half a cycle for each column of a product of four warps, more for few columns; for a product
//!   of one warp, what the table of instructions says.
//! - The *threads*: instructions are issued by four schedulers. Special functions have a pipe of their own.
//! - *Transfers*: two cycles for each line of global memory of which an iteration requests a part, however little.
//!   Copies by threads of several blocks delay one another.
//! - *Filling*: a buffer that has become free is filled after the latency of memory and the time of its own transfer,
//!   at the rate of the shared cache when all multiprocessors request at once. As many iterations are in flight as
//!   there are stages less one, times `B`.
//!
//! How they combine depends on what threads do:
//!
//! - Only copies: all overlap, and the largest one counts.
//! - Threads convert what products read, while earlier products run. Two blocks overlap entirely, a single one in part.
//! - Threads need what products compute, or execute the products themselves: one after the other. It does not matter
//!   how many blocks there are; their phases coincide.
//! - Factors go through registers to shared memory. Loads are issued and their results stored in the same iteration: an
//!   iteration contains the latency of memory and of the fence before products read what threads stored, and then the
//!   stores, of which there may be several wavefronts for each instruction.
//!
//! Registers beyond those of a thread are stored and loaded again; the assembler then also waits for each product.
//!
//! Memory is not fully overlapped where threads work: `hypot(work, memory)`. If the products or copies are all, the
//! larger one counts.
//!
//! # Where its constants come from
//!
//! They were fitted to the cycles that an H100 took (`tools/gpu/certificate.py`), to that half of the kernels whose
//! name's SHA-256 begins with an even byte. `docs/performance.md` says how well it predicts the other half.

use llopt_codegen::walk::decision::{Choice, Decision};
use llopt_target::{Feature, Target};
use serde::{Deserialize, Serialize};

use super::emitted::EmittedLoop;
use crate::loop_schedules::Stages;

/// Parts of a multiprocessor that issue an instruction each cycle.
const ISSUERS: f64 = 4.0;
/// The part of issuing that products do not hide.
const EXPOSED: f64 = 0.75;
/// Cycles of a request of a line.
const LINE: f64 = 2.0;
/// By which part of it transfers become longer for each of the first two further blocks.
const CROWDED: f64 = 0.07;
/// Latency of a copy, and how much longer its transfer takes when all multiprocessors request at once.
const FIRST: f64 = 350.0;
const BURST: f64 = 2.2;
/// From the issue of a load until its result has been stored and can be read by products, except the stores.
const THROUGH: f64 = 1500.0;
/// Exponent of the sum of conversions and products that overlap in part.
const PARTLY: f64 = 1.3;
/// Live registers above which some are spilled, and cycles of a warp for each of them.
const SPILLED_ABOVE: u32 = 330;
const SPILLED: f64 = 3.6;
/// More instructions on floats, or stores, than loops have that only copy.
const FEW: u32 = 16;
const FEW_STORES: u32 = 4;
/// Numbers of resident blocks.
const MOST_BLOCKS: u32 = 8;
/// Registers of a thread.
const REGISTERS: u32 = 255;

/// The predicted time of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// Cycles of an iteration of a block, as its share of a multiprocessor.
    pub cycles: u32,
    /// Resident blocks, by the registers that are live.
    pub blocks: u32,
    /// What the time consists of for so many blocks: a name, and cycles.
    pub terms: Vec<(String, u32)>,
    /// Whether memory is hidden entirely by work, or work by memory; else the time is their Euclidean norm.
    pub overlaps: bool,
    /// For each number of resident blocks from one, cycles of work and of memory.
    pub shares: Vec<[u32; 2]>,
}

/// The inputs to a prediction.
pub(super) struct Iteration<'a> {
    pub(super) target: Target,
    pub(super) emitted: EmittedLoop,
    pub(super) stages: &'a Stages,
    /// Warps that execute products.
    pub(super) warps: u32,
    /// All warps of a block.
    pub(super) all_warps: u32,
    /// Bytes of shared memory.
    pub(super) shared: u32,
    pub(super) rates: Rates,
}

/// What the decisions of code generation say about instructions.
#[derive(Clone, Copy)]
pub(super) struct Rates {
    /// Wavefronts of an access of a warp to shared memory, except asynchronous copies: a load and a store.
    pub(super) wavefronts: [f64; 2],
    /// Cycles for which a product of a warp keeps its matrix unit busy.
    pub(super) product: f64,
}

impl Rates {
    pub(super) fn of(decisions: &[Decision]) -> Self {
        let mut accesses = [(0, 0); 2];
        let mut products = (0, 0);
        for decision in decisions {
            match &decision.choice {
                Choice::SharedAccess {
                    is_store, access, ..
                } if !decision.site.op.contains("async") => {
                    let (wavefronts, instructions) = &mut accesses[usize::from(*is_store)];
                    *wavefronts += access.wavefronts;
                    *instructions += access.instructions;
                }
                Choice::Product(product) => {
                    products.0 += product.cycles;
                    products.1 += u64::from(product.executions);
                }
                _ => {}
            }
        }
        let mean = |(sum, count): (u32, u32)| f64::from(sum) / f64::from(count.max(1));
        Self {
            wavefronts: accesses.map(mean),
            product: products.0 as f64 / products.1.max(1) as f64,
        }
    }
}

/// What the threads of a loop do beside copies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Nothing.
    None,
    /// They convert factors while products run.
    Converts,
    /// They wait for products.
    Waits,
}

impl Iteration<'_> {
    /// The prediction, for targets whose code the model knows.
    pub(super) fn predicted(&self) -> Option<Prediction> {
        if !self.target.has(Feature::WarpGroupMma) {
            return None;
        }
        let threads = self.all_warps * self.target.warp_size();
        let registers = self.emitted.live.min(REGISTERS);
        let blocks = self.target.resident_blocks(threads, registers, u64::from(self.shared));
        let blocks = blocks.min(MOST_BLOCKS);
        let overlaps = self.work() == Work::None && self.emitted.loads == 0;
        let shares = (1..=MOST_BLOCKS).map(|blocks| {
            [self.worked(f64::from(blocks)), self.memory(f64::from(blocks))].map(whole)
        });
        let shares: Vec<[u32; 2]> = shares.collect();
        let [work, memory] = shares[blocks as usize - 1].map(f64::from);
        let cycles = if overlaps { work.max(memory) } else { work.hypot(memory) };
        Some(Prediction {
            cycles: whole(cycles),
            blocks,
            terms: self.terms(f64::from(blocks)),
            overlaps,
            shares,
        })
    }

    fn work(&self) -> Work {
        let of = &self.emitted;
        // A few conversions belong to addresses of factors.
        let converts = if of.conversions > 4 { of.conversions } else { 0 };
        if of.warp_products > 0 {
            Work::Waits
        } else if of.arithmetic + of.special + converts <= FEW {
            Work::None
        } else if of.waits >= 2 {
            Work::Waits
        } else {
            Work::Converts
        }
    }

    /// Cycles of an instruction of each thread.
    fn each_warp(&self) -> f64 {
        f64::from(self.warps) / ISSUERS
    }

    fn matrix(&self) -> f64 {
        let of_warps = f64::from(self.emitted.warp_products) * self.rates.product;
        (self.emitted.group_cycles + of_warps) * self.each_warp()
    }

    fn special(&self) -> f64 {
        let cycles = self.emitted.special * self.target.special_function_cycles();
        f64::from(cycles) * self.each_warp()
    }

    fn issue(&self) -> f64 {
        f64::from(self.emitted.issued) * self.each_warp()
    }

    /// Wavefronts of shared memory of the threads' own accesses.
    fn wavefronts(&self) -> f64 {
        let [load, store] = self.rates.wavefronts;
        let of_warp = f64::from(self.emitted.shared_loads) * load
            + f64::from(self.emitted.shared_stores) * store;
        of_warp * f64::from(self.warps)
    }

    fn spilled(&self) -> f64 {
        let registers = self.emitted.live.saturating_sub(SPILLED_ABOVE);
        SPILLED * f64::from(registers * self.warps)
    }

    /// Cycles of the matrix units and of threads.
    fn worked(&self, blocks: f64) -> f64 {
        let (matrix, issue, work) = (self.matrix(), self.issue(), self.work());
        let threads = EXPOSED * issue.max(self.special());
        let both = match work {
            Work::None => matrix.max(issue),
            Work::Converts if blocks > 1.0 => matrix.max(threads),
            Work::Converts => (matrix.powf(PARTLY) + threads.powf(PARTLY)).powf(PARTLY.recip()),
            Work::Waits => matrix + threads,
        };
        let through = match self.emitted.loads {
            0 => 0.0,
            // The results of a few loads, such as scales, are stored when the products have been issued.
            _ if work != Work::None && self.emitted.shared_stores <= FEW_STORES => {
                let after = if self.emitted.warp_products > 0 { threads } else { 0.0 };
                THROUGH / blocks + after
            }
            _ => THROUGH / blocks + self.wavefronts() + threads,
        };
        both.max(through) + self.spilled()
    }

    fn transfers(&self, blocks: f64) -> f64 {
        let crowd = match self.emitted.copies {
            0 => 0.0,
            _ => CROWDED * (blocks - 1.0).min(2.0),
        };
        LINE * f64::from(self.stages.lines) * (1.0 + crowd)
    }

    fn filling(&self, blocks: f64) -> f64 {
        let busy = self.stages.busy.iter();
        let transfer: u32 = busy
            .filter(|(pipe, _)| pipe == "global memory")
            .map(|(_, cycles)| cycles)
            .sum();
        match self.stages.stages {
            0 | 1 => 0.0,
            stages => (FIRST + BURST * f64::from(transfer)) / (f64::from(stages - 1) * blocks),
        }
    }

    fn memory(&self, blocks: f64) -> f64 {
        self.transfers(blocks).max(self.filling(blocks))
    }

    /// The terms that are not zero.
    fn terms(&self, blocks: f64) -> Vec<(String, u32)> {
        let through = if self.emitted.loads > 0 { THROUGH / blocks } else { 0.0 };
        let all = [
            ("matrix units", self.matrix()),
            ("issue", self.issue()),
            ("special functions", self.special()),
            ("shared memory", self.wavefronts()),
            ("transfers", self.transfers(blocks)),
            ("filling buffers", self.filling(blocks)),
            ("loads through registers", through),
            ("spilled registers", self.spilled()),
        ];
        let all = all.map(|(name, cycles)| (name.to_owned(), whole(cycles)));
        all.into_iter().filter(|(_, cycles)| *cycles > 0).collect()
    }
}

fn whole(cycles: f64) -> u32 {
    cycles.round() as u32
}
