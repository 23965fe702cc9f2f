//! A warp's state: its frames, its paths, and the regions in which diverged lanes wait for each other.
//!
//! The theory is in the crate's header. In short: a *path* is a set of lanes that are at the same place with the same
//! call stack. A branch on which lanes disagree splits a path, and opens a *region* around the parts: the block where
//! all of its lanes reconverge. A part that arrives there waits; when the last lane has arrived, or left the kernel,
//! one path with all of them continues.

use crate::machine::bytecode::{BlockId, SiteId};
pub(crate) use crate::machine::row::{Row, lanes};
use crate::memory::bulk_groups::BulkGroups;
use crate::units::in_flight::InFlight;
use crate::units::product_registers::ProductRegisters;

/// Slots of one call.
pub(crate) struct Frame<const W: usize> {
    pub(crate) rows: Vec<Row<W>>,
    /// Where the call's private memory begins.
    pub(crate) local_base: u64,
}

/// A place in a function that is being executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Activation {
    pub(crate) function: usize,
    pub(crate) frame: usize,
    pub(crate) block: BlockId,
    /// Index of the next op in the block.
    pub(crate) next: usize,
}

/// Why a path does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Waits for these lanes of its warp at the op that it has reached.
    Meeting {
        members: u64,
        barrier: bool,
        site: SiteId,
    },
    /// Waits at a barrier of the block.
    Barrier,
}

/// Lanes that execute together.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) mask: u64,
    pub(crate) stack: Vec<Activation>,
    /// Regions the lanes are in, outermost first.
    pub(crate) regions: Vec<usize>,
    pub(crate) state: State,
    /// The op that the path has reached may execute although members are missing: this has been reported.
    pub(crate) forced: bool,
}

/// A place where diverged lanes reconverge.
#[derive(Debug)]
pub(crate) struct Region {
    /// Frame of the function that contains the block.
    frame: usize,
    block: BlockId,
    /// Lanes that will arrive.
    expected: u64,
    arrived: u64,
    /// Continuation of the lanes: stack (at the block) and outer regions.
    stack: Vec<Activation>,
    regions: Vec<usize>,
}

/// A copy into shared memory that has been issued and not waited for.
#[derive(Clone, Debug)]
pub(crate) struct PendingCopy {
    pub(crate) lane: u8,
    /// Number of its group in the lane.
    pub(crate) group: u32,
    pub(crate) shared: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) site: SiteId,
}

/// The lanes of a warp and their positions.
pub(crate) struct Warp<const W: usize> {
    pub(crate) index: usize,
    /// Lanes that have not left the kernel.
    pub(crate) alive: u64,
    pub(crate) frames: Vec<Frame<W>>,
    free_frames: Vec<usize>,
    pub(crate) paths: Vec<Path>,
    regions: Vec<Option<Region>>,
    /// Private memory, `local_stride` bytes per lane.
    pub(crate) local: Vec<u8>,
    pub(crate) local_written: Vec<bool>,
    pub(crate) local_stride: u64,
    pub(crate) copies: Vec<PendingCopy>,
    pub(crate) copy_group: [u32; W],
    /// The phase of the cluster's barrier in which it has arrived.
    pub(crate) cluster_phase: u64,
    /// Products of its warp group, and the registers that they read.
    pub(crate) products: BulkGroups,
    pub(crate) product_registers: ProductRegisters,
    /// Registers of each thread; 0 until their first use.
    pub(crate) registers: u32,
    /// The results of the products.
    pub(crate) in_flight: InFlight,
    /// Bulk copies out of shared memory of each lane.
    pub(crate) bulk: Vec<BulkGroups>,
    pub(crate) executed: u64,
}

impl<const W: usize> Warp<W> {
    pub(crate) fn new(index: usize, lanes: u64) -> Self {
        Self {
            index,
            alive: lanes,
            frames: Vec::new(),
            free_frames: Vec::new(),
            paths: Vec::new(),
            regions: Vec::new(),
            local: Vec::new(),
            local_written: Vec::new(),
            local_stride: 0,
            copies: Vec::new(),
            copy_group: [0; W],
            cluster_phase: 0,
            products: BulkGroups::default(),
            product_registers: ProductRegisters::default(),
            in_flight: InFlight::default(),
            registers: 0,
            bulk: vec![BulkGroups::default(); W],
            executed: 0,
        }
    }

    /// A frame of `slots` rows with constants in place.
    pub(crate) fn enter_frame(
        &mut self,
        slots: u32,
        constants: &[(u32, u64)],
        local_base: u64,
    ) -> usize {
        let index = self.free_frames.pop().unwrap_or_else(|| {
            self.frames.push(Frame {
                rows: Vec::new(),
                local_base: 0,
            });
            self.frames.len() - 1
        });
        let frame = &mut self.frames[index];
        frame.local_base = local_base;
        frame.rows.clear();
        frame.rows.resize(slots as usize, [0; W]);
        for &(slot, value) in constants {
            frame.rows[slot as usize] = [value; W];
        }
        index
    }

    pub(crate) fn leave_frame(&mut self, index: usize) {
        self.free_frames.push(index);
    }

    /// Extends private memory to `bytes` per lane.
    pub(crate) fn grow_local(&mut self, bytes: u64) {
        if bytes <= self.local_stride {
            return;
        }
        let (old, new) = (self.local_stride as usize, bytes as usize);
        let mut local = vec![0; new * W];
        let mut written = vec![false; new * W];
        for lane in 0..W {
            local[lane * new..lane * new + old]
                .copy_from_slice(&self.local[lane * old..(lane + 1) * old]);
            written[lane * new..lane * new + old]
                .copy_from_slice(&self.local_written[lane * old..(lane + 1) * old]);
        }
        self.local = local;
        self.local_written = written;
        self.local_stride = bytes;
    }

    /// Opens a region in which the lanes of `path` meet at `block` of the function it is in, unless it is already in
    /// that region.
    pub(crate) fn open_region(&mut self, path: &mut Path, block: BlockId) {
        let Some(top) = path.stack.last() else {
            return;
        };
        if let Some(region) = path.regions.last().and_then(|&r| self.regions[r].as_ref())
            && region.frame == top.frame
            && region.block == block
        {
            return;
        }
        let mut stack = path.stack.clone();
        if let Some(last) = stack.last_mut() {
            last.block = block;
            last.next = 0;
        }
        let region = Region {
            frame: top.frame,
            block,
            expected: path.mask,
            arrived: 0,
            stack,
            regions: path.regions.clone(),
        };
        let index = match self.regions.iter().position(Option::is_none) {
            Some(free) => {
                self.regions[free] = Some(region);
                free
            }
            None => {
                self.regions.push(Some(region));
                self.regions.len() - 1
            }
        };
        path.regions.push(index);
    }

    /// Whether the path, at the beginning of a block, waits there for others.
    pub(crate) fn arrives(&self, path: &Path) -> bool {
        let (Some(top), Some(&region)) = (path.stack.last(), path.regions.last()) else {
            return false;
        };
        self.regions[region]
            .as_ref()
            .is_some_and(|r| r.frame == top.frame && r.block == top.block)
    }

    /// Ends a path that has arrived at its innermost region; its lanes continue when the last has arrived.
    pub(crate) fn arrive(&mut self, path: &Path) {
        if let Some(&index) = path.regions.last() {
            if let Some(region) = self.regions[index].as_mut() {
                region.arrived |= path.mask;
            }
            self.complete(index);
        }
    }

    /// Lanes leave the kernel.
    pub(crate) fn exit(&mut self, lanes: u64) {
        self.alive &= !lanes;
        for index in 0..self.regions.len() {
            if let Some(region) = self.regions[index].as_mut() {
                region.expected &= !lanes;
                self.complete(index);
            }
        }
    }

    fn complete(&mut self, index: usize) {
        let done = self.regions[index]
            .as_ref()
            .is_some_and(|r| r.arrived & r.expected == r.expected);
        if !done {
            return;
        }
        if let Some(region) = self.regions[index].take()
            && region.expected != 0
        {
            self.paths.push(Path {
                mask: region.expected,
                stack: region.stack,
                regions: region.regions,
                state: State::Ready,
                forced: false,
            });
        }
    }
}
