//! Counting: executions of blocks of bytecode, traffic of memory instructions.

use std::collections::BTreeMap;

use crate::machine::bytecode::{AccessKind, Op, Program, SiteId};
use crate::machine::report::{GlobalTraffic, LineReport, Report, SharedTraffic};

/// Counters of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteCounters {
    pub(crate) shared: SharedTraffic,
    pub(crate) global: GlobalTraffic,
    pub(crate) shuffles: u64,
    pub(crate) barriers: u64,
}

/// Counters of one thread of the simulation; sums over threads do not depend on which thread counted.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    /// Executions and lanes of each block of each function.
    pub(crate) blocks: Vec<Vec<[u64; 2]>>,
    pub(crate) sites: Vec<SiteCounters>,
}

impl Counters {
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            blocks: program
                .functions
                .iter()
                .map(|f| vec![[0; 2]; f.blocks.len()])
                .collect(),
            sites: vec![SiteCounters::default(); program.sites.len()],
        }
    }

    pub(crate) fn site(&mut self, site: SiteId) -> &mut SiteCounters {
        &mut self.sites[site as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self
            .blocks
            .iter_mut()
            .flatten()
            .zip(other.blocks.iter().flatten())
        {
            mine[0] += theirs[0];
            mine[1] += theirs[1];
        }
        for (mine, theirs) in self.sites.iter_mut().zip(&other.sites) {
            mine.add(theirs);
        }
    }

    /// Fills the counters of a report.
    pub(crate) fn summarize(&self, program: &Program, report: &mut Report) {
        let mut lines: BTreeMap<(&str, u32), LineReport> = BTreeMap::new();
        let key = |line: u32| {
            let line = &program.lines[line as usize];
            (line.file.as_str(), line.line)
        };
        for (function, counts) in program.functions.iter().zip(&self.blocks) {
            for (block, &[executions, lanes]) in function.blocks.iter().zip(counts) {
                if executions == 0 {
                    continue;
                }
                let counted = block
                    .ops
                    .iter()
                    .filter(|op| !matches!(op, Op::Guard { .. } | Op::Expect(_) | Op::Life(_)))
                    .count();
                report.instructions += executions * (counted as u64 + 1);
                report.lane_instructions += lanes * (counted as u64 + 1);
                for (op, &line) in block.ops.iter().zip(&block.lines) {
                    if !matches!(op, Op::Guard { .. } | Op::Expect(_) | Op::Life(_)) {
                        lines.entry(key(line)).or_default().instructions += executions;
                    }
                }
                lines
                    .entry(key(block.terminator_line))
                    .or_default()
                    .instructions += executions;
            }
        }
        let mut total = SiteCounters::default();
        for (site, counters) in program.sites.iter().zip(&self.sites) {
            if *counters == SiteCounters::default() {
                continue;
            }
            total.add(counters);
            let line = lines.entry(key(site.line)).or_default();
            line.shared.add(&counters.shared);
            line.global.add(&counters.global);
            line.shuffles += counters.shuffles;
            line.barriers += counters.barriers;
        }
        report.shared = total.shared;
        report.global = total.global;
        report.shuffles = total.shuffles;
        report.barriers = total.barriers;
        report.per_source_line = lines
            .into_iter()
            .filter(|((_, line), _)| *line != 0)
            .map(|((file, line), counters)| LineReport {
                file: file.to_owned(),
                line,
                ..counters
            })
            .collect();
    }
}

impl SiteCounters {
    fn add(&mut self, other: &Self) {
        self.shared.add(&other.shared);
        self.global.add(&other.global);
        self.shuffles += other.shuffles;
        self.barriers += other.barriers;
    }
}

impl SharedTraffic {
    fn add(&mut self, other: &Self) {
        self.load_instructions += other.load_instructions;
        self.load_wavefronts += other.load_wavefronts;
        self.load_bound += other.load_bound;
        self.store_instructions += other.store_instructions;
        self.store_wavefronts += other.store_wavefronts;
        self.store_bound += other.store_bound;
    }

    /// Adds one instruction.
    pub(crate) fn count(&mut self, kind: AccessKind, wavefronts: u64, bound: u64) {
        if kind == AccessKind::Store {
            self.store_instructions += 1;
            self.store_wavefronts += wavefronts;
            self.store_bound += bound;
        } else {
            self.load_instructions += 1;
            self.load_wavefronts += wavefronts;
            self.load_bound += bound;
        }
    }
}

impl GlobalTraffic {
    fn add(&mut self, other: &Self) {
        self.load_instructions += other.load_instructions;
        self.load_sectors += other.load_sectors;
        self.store_instructions += other.store_instructions;
        self.store_sectors += other.store_sectors;
    }

    /// Adds one instruction.
    pub(crate) fn count(&mut self, kind: AccessKind, sectors: u64) {
        if kind == AccessKind::Store {
            self.store_instructions += 1;
            self.store_sectors += sectors;
        } else {
            self.load_instructions += 1;
            self.load_sectors += sectors;
        }
    }
}
