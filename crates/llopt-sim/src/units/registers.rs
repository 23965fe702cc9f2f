//! Registers that warps release and request (PTX ISA, "setmaxnreg").
//!
//! All threads start with the number of registers that the kernel specifies. Registers that a warp releases go to its
//! block, and a warp that requests more waits until the block has enough. A request that no other warp can ever
//! satisfy is reported, and granted, so that the run continues.

use crate::machine::block::{Block, Executed, SHARE};
use crate::machine::bytecode::SiteId;
use crate::machine::execute::Flow;
use crate::machine::report::FindingKind;
use crate::machine::warp::Warp;

/// The fewest registers of a thread that can be requested.
const LEAST: i64 = 24;

impl<const W: usize> Block<'_, W> {
    /// Releases registers, or takes some if there are enough.
    pub(crate) fn change_registers(
        &mut self,
        warp: &mut Warp<W>,
        count: u32,
        more: bool,
        site: SiteId,
    ) -> Executed<Flow> {
        let Some(start) = self.program.registers else {
            self.report_registers(
                warp,
                site,
                "registers change their owner in a kernel that does not say how many it begins with",
            );
            return Ok(Flow::Next);
        };
        if warp.registers == 0 {
            warp.registers = start;
        }
        let block = warp.index / self.warps_per_block;
        let wanted = (i64::from(count) - i64::from(warp.registers)) * W as i64;
        if more == (wanted < 0) && wanted != 0 {
            self.report_registers(
                warp,
                site,
                "a request for more registers names fewer than the warp has, or the other way round",
            );
            return Ok(Flow::Next);
        }
        if wanted > self.free_registers[block] {
            let others = self.warps_per_block as i64 - 1;
            let most = (i64::from(start) * (others + 1) - LEAST * others) * W as i64;
            if i64::from(count) * W as i64 > most {
                self.report_registers(
                    warp,
                    site,
                    "more registers are asked for than others could give back",
                );
                warp.registers = count;
                return Ok(Flow::Next);
            }
            // Other warps run before it tries again.
            self.spend(warp, SHARE)?;
            return Ok(Flow::Blocked);
        }
        self.free_registers[block] -= wanted;
        warp.registers = count;
        Ok(Flow::Next)
    }

    fn report_registers(&mut self, warp: &Warp<W>, site: SiteId, what: &str) {
        if self.grid.sanitize {
            let kind = FindingKind::RegisterRequest;
            self.findings
                .add(self.program, kind, warp.index, 0, None, site, what);
        }
    }
}
