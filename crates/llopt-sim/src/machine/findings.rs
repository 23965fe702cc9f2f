//! Collects the sanitizer's findings, one entry per kind and instruction.

use std::collections::HashMap;

use crate::machine::bytecode::{Program, SiteId};
use crate::machine::report::{Finding, FindingKind};

/// Findings of one block, or of several merged in order.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    block: [u32; 3],
    /// Warps of a block; the blocks of a cluster are executed as one.
    warps: usize,
    list: Vec<(SiteId, Finding)>,
    known: HashMap<(FindingKind, SiteId), usize>,
}

impl Findings {
    pub(crate) fn new(block: [u32; 3], warps: usize) -> Self {
        Self {
            block,
            warps,
            ..Self::default()
        }
    }

    /// Records a finding, or one more occurrence of a known one.
    #[expect(
        clippy::too_many_arguments,
        reason = "the facts that make up a finding"
    )]
    pub(crate) fn add(
        &mut self,
        program: &Program,
        kind: FindingKind,
        warp: usize,
        lane: usize,
        address: Option<u64>,
        site: SiteId,
        message: &str,
    ) {
        if let Some(&index) = self.known.get(&(kind, site)) {
            self.list[index].1.occurrences += 1;
            return;
        }
        self.known.insert((kind, site), self.list.len());
        let place = &program.sites[site as usize];
        self.list.push((
            site,
            Finding {
                kind,
                block: {
                    let [x, y, z] = self.block;
                    [x + (warp / self.warps.max(1)) as u32, y, z]
                },
                warp: (warp % self.warps.max(1)) as u32,
                lane: lane as u32,
                address,
                function: place.function.clone(),
                instruction: place.text.clone(),
                source: source(program, site),
                message: message.to_owned(),
                occurrences: 1,
            },
        ));
    }

    /// Whether this kind is known at this site, so that its message need not be written again.
    pub(crate) fn again(&mut self, kind: FindingKind, site: SiteId) -> bool {
        match self.known.get(&(kind, site)) {
            Some(&index) => {
                self.list[index].1.occurrences += 1;
                true
            }
            None => false,
        }
    }

    /// Appends those of a later block.
    pub(crate) fn merge(&mut self, later: Self) {
        for (site, finding) in later.list {
            match self.known.get(&(finding.kind, site)) {
                Some(&index) => self.list[index].1.occurrences += finding.occurrences,
                None => {
                    self.known.insert((finding.kind, site), self.list.len());
                    self.list.push((site, finding));
                }
            }
        }
    }

    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.list.into_iter().map(|(_, finding)| finding).collect()
    }
}

/// `file:line:column` of a site.
pub(crate) fn source(program: &Program, site: SiteId) -> Option<String> {
    let line = &program.lines[program.sites[site as usize].line as usize];
    (line.line != 0).then(|| format!("{}:{}:{}", line.file, line.line, line.column))
}
