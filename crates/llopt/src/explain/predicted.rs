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
//! - The *matrix units*: half a cycle for each column of a product of four warps, more for few columns.
//! - The *threads*: instructions are issued by four schedulers. Special functions have a pipe of their own.
//! - *Transfers*: the time for which the slices of the shared cache are busy ([`super::shared_cache`]). Of loops that
//!   only copy it counts if blocks do not stay in step, and of loops with products of one warp, which nothing keeps in
//!   step. Where threads convert factors, lines take as long on every GPU, by their number.
//! - *Filling*: a buffer that has become free is filled after the latency of memory and the time of its own transfer,
//!   at the rate of the shared cache when all multiprocessors request at once, each for itself. As many iterations are
//!   in flight as there are stages less one, times `B`.
//! - *Fences* between what threads store and what products read: each is a wait of the block for its own stores.
//!
//! How they combine depends on what threads do ([`Work`]):
//!
//! - Only copies: all overlap, and the largest counts. But products are issued to a queue, and warps go on to copy when
//!   all but the last few have begun: what the copies of a single block take longer than those is *exposed*.
//! - They convert what products read. The warps of a single block issue products, and then convert the factors of the
//!   next ones, which takes all schedulers, and the products wait for that: one after the other. Of two blocks one
//!   converts while the products of the other run.
//! - They need what products compute, or execute the products themselves: one after the other, and resident blocks do
//!   not change that, since their phases coincide. What is copied for the next iterations is hidden. Groups of a
//!   *divided* block are synchronised only with the warp that copies: each computes by itself, a warp of each
//!   scheduler, which issues an instruction every few cycles.
//! - Factors go through registers to shared memory. Where loads are issued and their results stored in the same iteration,
//!   it contains the latency of memory and of the fence, and then the stores, of which there may be several wavefronts for
//!   each instruction. Where results are *held* while the next loads are issued, less of the latency is left.
//!
//! Registers beyond those of a thread are stored and loaded again; the assembler then also waits for each product.
//!
//! Where threads convert factors, and where warps execute products themselves, memory is not hidden entirely: the
//! time is a norm of work and memory, whose exponent says how well they overlap.
//!
//! # Where its constants come from
//!
//! They were fitted to the cycles that an H100 and an H200 took (`tools/gpu/certificate.py`), to that half of the
//! kernels whose names' SHA-256 begins with an even byte. `docs/performance/certificate.md` says how well it predicts
//! the other half.

use llopt_codegen::walk::decision::{Choice, Decision};
use llopt_plan::schedule::Pipe;
use llopt_target::{Feature, Target};

use super::emitted::EmittedLoop;
use super::prediction::{OnMachine, Prediction, Share, norm, whole};
use super::shared_cache::{APART, FILLING, MACHINES, Machine, UNPROMOTED, are_in_step};
use crate::accounts::loop_schedules::Stages;

/// Parts of a multiprocessor that issue an instruction each cycle.
const ISSUERS: f64 = 4.0;
/// Products that are left when warps go on, and bytes that threads copy in a cycle.
const QUEUED: f64 = 2.0;
const COPIED: f64 = 128.0;
/// The part of issuing that products of four warps do not hide, if it waits for them; and any other products.
const CHAINED: f64 = 0.9;
const EXPOSED: f64 = 0.75;
/// Cycles from one instruction to the next of a scheduler's only warp.
const ALONE: f64 = 3.58;
/// Cycles for which a product of one warp keeps its matrix unit busy, by the table of instructions.
const WARP_PRODUCT: f64 = 7.0;
/// Cycles of a line where threads convert factors.
const LINE: f64 = 2.2;
/// Latency of a copy.
const FIRST: f64 = 350.0;
/// A fence.
const FENCE: f64 = 60.0;
/// From the issue of a load until its result has been stored and can be read by products, except the stores.
const THROUGH: f64 = 1500.0;
/// The same if results are held.
const HELD: f64 = 1130.0;
/// Exponent of the norms of what overlaps in part: conversions and products of several blocks, and work and memory.
const OVERLAPPING: u32 = 3;
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
    /// Wavefronts of an access of a warp to shared memory, except asynchronous copies: a load and a store.
    pub(super) wavefronts: [f64; 2],
}

/// Wavefronts of an access of a warp to shared memory, except asynchronous copies, by the decisions of code generation:
/// a load and a store.
pub(super) fn wavefronts(decisions: &[Decision]) -> [f64; 2] {
    let mut accesses = [(0, 0); 2];
    for decision in decisions {
        let Choice::SharedAccess {
            is_store, access, ..
        } = &decision.choice
        else {
            continue;
        };
        if !decision.site.op.contains("async") {
            let (wavefronts, instructions) = &mut accesses[usize::from(*is_store)];
            *wavefronts += access.wavefronts;
            *instructions += access.instructions;
        }
    }
    accesses.map(|(sum, count)| f64::from(sum) / f64::from(count.max(1)))
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
        let blocks = self
            .target
            .resident_blocks(threads, registers, u64::from(self.shared));
        let blocks = blocks.min(MOST_BLOCKS);
        let machines = MACHINES.map(|machine| OnMachine {
            bus_bits: machine.bus_bits,
            multiprocessors: machine.multiprocessors,
            megahertz: machine.megahertz,
            shares: (1..=MOST_BLOCKS)
                .map(|blocks| self.share(machine, f64::from(blocks)))
                .collect(),
        });
        let own = &machines[0].shares[blocks as usize - 1];
        Some(Prediction {
            cycles: own.cycles(),
            blocks,
            terms: self.terms(own, f64::from(blocks)),
            machines: machines.into(),
        })
    }

    /// The share of one of so many blocks.
    fn share(&self, machine: Machine, blocks: f64) -> Share {
        let worked = self.worked(blocks);
        let cache = machine.cache_cycles(self.stages.lines, self.sent());
        let [memory, apart] = self.memory(cache, blocks);
        Share {
            work: whole(worked),
            port: whole(self.port()),
            memory: whole(memory),
            apart: whole(apart),
            cache: whole(cache),
            is_in_step: are_in_step(cache, worked),
            exponent: self.exponent(),
        }
    }

    fn work(&self) -> Work {
        let of = &self.emitted;
        // A few conversions belong to addresses of factors.
        let converts = if of.conversions > 4 {
            of.conversions
        } else {
            0
        };
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
        let of_warps = f64::from(self.emitted.warp_products) * WARP_PRODUCT;
        (self.emitted.group_cycles + of_warps) * self.each_warp()
    }

    /// What copies by threads take longer than the products that have not begun when the threads go on to copy.
    fn exposed(&self, blocks: f64) -> f64 {
        let of = &self.emitted;
        if blocks > 1.0 || of.copies == 0 || of.group_products == 0 {
            return 0.0;
        }
        let copied = self.stages.bytes / u64::from(self.stages.buffers.max(1));
        let left = QUEUED * self.matrix() / f64::from(of.group_products);
        (copied as f64 / COPIED - left).max(0.0)
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
        let [load, store] = self.wavefronts;
        let of_warp = f64::from(self.emitted.shared_loads) * load
            + f64::from(self.emitted.shared_stores) * store;
        of_warp * f64::from(self.warps)
    }

    fn spilled(&self) -> f64 {
        // The assembler moves loads across products of one warp.
        if self.emitted.warp_products > 0 {
            return 0.0;
        }
        let registers = self.emitted.live.saturating_sub(SPILLED_ABOVE);
        SPILLED * f64::from(registers * self.warps)
    }

    /// What is left of the latency of loads whose results are stored.
    fn through(&self) -> f64 {
        if self.stages.held { HELD } else { THROUGH }
    }

    /// Loads of an iteration to registers, except those of addresses, which are used an iteration later.
    fn loads(&self) -> u32 {
        match self.stages.feeders > 0 && self.stages.through_registers == 0 {
            true => 0,
            false => self.emitted.loads,
        }
    }

    /// Whether each iteration stores the factors that it loads.
    fn stores_factors(&self) -> bool {
        let of = &self.emitted;
        self.loads() > 0 && (self.work() == Work::None || of.shared_stores > FEW_STORES)
    }

    /// How well work and memory overlap.
    fn exponent(&self) -> Option<u32> {
        match self.work() {
            // The latency of loads through registers is that of memory.
            _ if self.stores_factors() => None,
            Work::None => None,
            Work::Converts => Some(OVERLAPPING),
            Work::Waits if self.emitted.warp_products > 0 => Some(OVERLAPPING),
            Work::Waits => None,
        }
    }

    /// Cycles of the matrix units and of threads.
    fn worked(&self, blocks: f64) -> f64 {
        let (matrix, issue, work) = (self.matrix(), self.issue(), self.work());
        let busy = issue.max(self.special());
        let both = match work {
            Work::None => (matrix + self.exposed(blocks)).max(issue),
            Work::Converts if blocks > 1.0 => norm([matrix, EXPOSED * busy], OVERLAPPING),
            Work::Converts => matrix + CHAINED * busy,
            Work::Waits if self.emitted.warp_products > 0 => matrix + EXPOSED * busy,
            Work::Waits if self.stages.producer.is_some() => {
                let own = matrix / self.each_warp() + ALONE * f64::from(self.emitted.issued);
                (own / blocks).max(matrix).max(busy)
            }
            Work::Waits => matrix + CHAINED * busy,
        };
        if self.stores_factors() {
            let through = self.through() / blocks + self.wavefronts() + EXPOSED * busy;
            return both.max(through) + self.spilled();
        }
        // The results of a few loads, such as scales, are stored when the products have been issued.
        let few = match self.loads() {
            0 => 0.0,
            _ if self.emitted.warp_products > 0 => self.through() / blocks + EXPOSED * busy,
            _ => self.through() / blocks,
        };
        both.max(few) + self.fenced(blocks) + self.spilled()
    }

    /// Fences, unless the latency of loads through registers includes them.
    fn fenced(&self, blocks: f64) -> f64 {
        if self.stores_factors() {
            return 0.0;
        }
        f64::from(self.emitted.fences) * FENCE / blocks
    }

    /// How many times 64 bytes are copied: the table counts a cycle for each.
    fn sent(&self) -> u32 {
        let global = Pipe::Global.to_string();
        let busy = self.stages.busy.iter();
        busy.filter(|(pipe, _)| *pipe == global)
            .map(|(_, cycles)| cycles)
            .sum()
    }

    /// What the multiprocessor takes for lines, beside other work of its threads.
    fn port(&self) -> f64 {
        let only_copies = self.work() == Work::None && !self.stores_factors();
        if only_copies || self.emitted.warp_products > 0 {
            return 0.0;
        }
        LINE * f64::from(self.stages.lines)
    }

    /// Transfers of blocks that are in step, and of blocks that are not, in so many cycles of the shared cache.
    fn transfers(&self, cache: f64) -> [f64; 2] {
        let apart = APART * cache;
        if self.emitted.warp_products > 0 {
            return [apart; 2];
        }
        if self.work() != Work::None || self.stores_factors() {
            return [0.0; 2];
        }
        match self.emitted.own_descriptors {
            0 => [0.0, apart],
            _ => [UNPROMOTED * cache, apart],
        }
    }

    fn filling(&self, cache: f64, blocks: f64) -> f64 {
        match self.stages.stages {
            0 | 1 => 0.0,
            stages => (FIRST + FILLING * cache) / (f64::from(stages - 1) * blocks),
        }
    }

    /// Memory of blocks that are in step, and of blocks that are not.
    fn memory(&self, cache: f64, blocks: f64) -> [f64; 2] {
        let filling = self.filling(cache, blocks);
        self.transfers(cache).map(|transfers| {
            let busy = transfers.max(filling);
            // Copies are issued after the fence.
            if self.work() == Work::None {
                busy + self.fenced(blocks)
            } else {
                busy
            }
        })
    }

    /// The terms that are not zero.
    fn terms(&self, own: &Share, blocks: f64) -> Vec<(String, u32)> {
        let through = if self.loads() > 0 {
            self.through() / blocks
        } else {
            0.0
        };
        let exposed = match self.work() {
            Work::None => self.exposed(blocks),
            _ => 0.0,
        };
        let cache = f64::from(own.cache);
        let [in_step, apart] = self.transfers(cache);
        let transfers = if own.is_in_step { in_step } else { apart }.max(self.port());
        let all = [
            ("matrix units", self.matrix()),
            ("issue", self.issue()),
            ("special functions", self.special()),
            ("exposed copies", exposed),
            ("shared memory", self.wavefronts()),
            ("transfers", transfers),
            ("filling buffers", self.filling(cache, blocks)),
            ("loads through registers", through),
            ("fences", self.fenced(blocks)),
            ("spilled registers", self.spilled()),
        ];
        let all = all.map(|(name, cycles)| (name.to_owned(), whole(cycles)));
        all.into_iter().filter(|(_, cycles)| *cycles > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop of so many stages that requests so many lines in copies.
    fn stages(stages: u32, lines: u32) -> Stages {
        Stages {
            stages,
            wanted: stages,
            iterations: None,
            needed: stages,
            loaded: stages,
            interval: 0,
            bound: 0,
            limit: None,
            busy: vec![("global memory".to_owned(), 2 * lines)],
            lines,
            units: Vec::new(),
            buffers: stages,
            bytes: u64::from(stages * lines) * 128,
            copies: 2,
            through_registers: 0,
            feeders: 0,
            held: false,
            running_products: 1,
            unrolled: 1,
            product_ahead: None,
            not_ahead: None,
            turns: None,
            not_in_turns: None,
            producer: None,
        }
    }

    fn predicted(emitted: EmittedLoop, stages: &Stages, warps: u32, blocks: u32) -> f64 {
        let iteration = Iteration {
            target: Target::parse("cuda:90").expect("it is in the table"),
            emitted,
            stages,
            warps,
            all_warps: warps,
            shared: 0,
            wavefronts: [1.0, 8.0],
        };
        let all = iteration.predicted().expect("the model knows this code");
        f64::from(all.machines[0].shares[blocks as usize - 1].cycles())
    }

    fn is_near(predicted: f64, measured: f64) -> bool {
        (measured / predicted - 1.0).abs() <= 0.1
    }

    /// Cycles that an H100 took, of one kernel of each kind of work.
    #[test]
    fn each_kind_of_work_takes_what_was_measured() {
        // A product of 128x256 by 64 halves, by eight warps.
        let copies = EmittedLoop {
            issued: 108,
            group_cycles: 512.0,
            group_products: 4,
            waits: 1,
            copies: 12,
            live: 202,
            ..EmittedLoop::default()
        };
        assert!(is_near(predicted(copies, &stages(3, 384), 8, 1), 1026.0));
        // The same by twice as many products of half as many columns; and of 128x128 by 64, by four warps.
        let many = EmittedLoop {
            group_products: 8,
            ..copies
        };
        assert!(is_near(predicted(many, &stages(3, 384), 8, 1), 1144.0));
        assert!(is_near(predicted(many, &stages(4, 256), 4, 1), 612.0));
        // Weights of eight bits, converted by the threads, in a single block and in two.
        let converts = EmittedLoop {
            issued: 223,
            arithmetic: 64,
            copies: 8,
            shared_loads: 16,
            ..copies
        };
        assert!(is_near(predicted(converts, &stages(3, 256), 8, 1), 1372.0));
        let converts = EmittedLoop {
            issued: 225,
            ..converts
        };
        assert!(is_near(predicted(converts, &stages(3, 192), 4, 2), 640.0));
        // A factor that the threads transpose, with four wavefronts too many for each store.
        let through = EmittedLoop {
            issued: 202,
            loads: 8,
            shared_stores: 16,
            fences: 1,
            copies: 4,
            ..copies
        };
        assert!(is_near(predicted(through, &stages(3, 384), 8, 1), 2985.0));
        // Attention.
        let waits = EmittedLoop {
            issued: 264,
            group_cycles: 256.0,
            waits: 2,
            special: 34,
            arithmetic: 106,
            conversions: 18,
            ..EmittedLoop::default()
        };
        assert!(is_near(predicted(waits, &stages(4, 128), 4, 3), 523.0));
        // Few rows, by products of one warp.
        let warps = EmittedLoop {
            issued: 96,
            warp_products: 16,
            copies: 9,
            ..EmittedLoop::default()
        };
        assert!(is_near(predicted(warps, &stages(4, 144), 4, 3), 417.0));
    }

    #[test]
    fn parts_of_lines_and_spilled_registers_cost() {
        let copies = EmittedLoop {
            group_cycles: 128.0,
            copies: 8,
            live: 100,
            ..EmittedLoop::default()
        };
        let time = |emitted, lines| predicted(emitted, &stages(5, lines), 4, 1);
        assert!(time(copies, 200) > time(copies, 100));
        let spills = EmittedLoop {
            live: SPILLED_ABOVE + 100,
            ..copies
        };
        assert!(time(spills, 100) > time(copies, 100));
        // More blocks never make the share of one longer than it is alone, except that their copies interfere.
        let alone = predicted(copies, &stages(2, 8), 4, 1);
        assert!(predicted(copies, &stages(2, 8), 4, 2) <= alone);
    }
}
