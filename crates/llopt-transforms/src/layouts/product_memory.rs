//! Factors of a matrix product in shared memory: the buffers that an instruction can read, and what reading them costs.
//!
//! Some instructions read factors in shared memory: the second always, the first if it is not in registers. Whether a
//! buffer can be read depends only on its layout ([`llopt_plan::group_operand`]), so any encoding of such a layout is
//! accepted; [`Product::in_memory`] says which buffers are proposed: with k or the other dimension contiguous. Where no
//! instruction transposes while it reads, only those with k contiguous are read, and a factor whose other dimension is
//! contiguous in global memory is transposed before ([`Product::transposed_before`]).
//!
//! Each block of a cluster reads the part that it multiplies, in its own memory: a buffer has to be shared among the blocks
//! as the layout of the result wants it.

use llopt_dialects::layout::encoding::{CgaLayout, Encoding};
use llopt_dialects::layout::product;
use llopt_layout::{Dim, LinearLayout};
use llopt_plan::group_operand::{GroupOperand, Wanted};
use llopt_plan::product::UNITS;

use super::products::{Product, operand_of};

/// Whether neighbouring elements in a buffer of a factor have neighbouring k.
fn k_is_contiguous(buffer: &Encoding, operand: usize, shape: &[u64]) -> bool {
    let memory = buffer.linear_layout(shape);
    memory.is_ok_and(|memory| {
        memory.in_dim_size_log2(Dim::OFFSET) > 0
            && memory.basis_entry(Dim::OFFSET, 0, Dim::tensor(1 - operand)) != 0
    })
}

impl Product {
    /// The buffers in shared memory that a factor may be read from: with k or the other dimension contiguous, as the
    /// instruction requires. None if no instruction reads it from shared memory.
    pub(super) fn in_memory(&self, operand: usize) -> Vec<Encoding> {
        let Some(&[rows, columns]) = self.shape.first_chunk() else {
            return Vec::new();
        };
        let shape = [[rows, self.depth], [self.depth, columns]][operand];
        let mut known: Vec<CgaLayout> = Vec::new();
        let mut buffers = Vec::new();
        for (way, row) in &self.by_units {
            let factor = operand_of(row, operand);
            // Blocks with different parts of the result may have the same part of a factor.
            let blocks = way.cga_layout().shared_along(1 - operand);
            if !factor.place.takes_shared() || known.contains(&blocks) {
                continue;
            }
            let part = Self::part(&shape, &blocks);
            let Some(&[rows, columns]) = part.as_deref().and_then(<[u64]>::first_chunk) else {
                continue;
            };
            for k_contiguous in [true, false] {
                buffers.extend(product::in_memory(
                    operand,
                    [rows, columns],
                    factor.element.bits(),
                    k_contiguous,
                    blocks.clone(),
                ));
            }
            known.push(blocks);
        }
        buffers
    }

    /// The buffer with k contiguous that a factor may be read from, if no instruction transposes it while reading:
    /// none reads it where the other dimension is contiguous.
    pub(super) fn transposed_before(&self, operand: usize) -> Option<Encoding> {
        let known = &self.transposed[operand];
        known
            .get_or_init(|| self.find_transposed_before(operand))
            .clone()
    }

    fn find_transposed_before(&self, operand: usize) -> Option<Encoding> {
        let &[rows, columns] = &self.shape[..] else {
            return None;
        };
        let shape = [[rows, self.depth], [self.depth, columns]][operand];
        let is_read = |buffer: &Encoding| {
            let memory = buffer.linear_layout(&shape).ok();
            let read = |(way, _): &(Encoding, _)| {
                let result = way.linear_layout(&self.shape).ok()?;
                self.cost_of_memory(operand, (way, &result), memory.as_ref()?)
            };
            self.by_units.iter().any(|way| read(way).is_some())
        };
        let (along, across): (Vec<_>, Vec<_>) = self
            .in_memory(operand)
            .into_iter()
            .partition(|buffer| k_is_contiguous(buffer, operand, &shape));
        let is_needed = !across.iter().any(is_read);
        along.into_iter().find(is_read).filter(|_| is_needed)
    }

    /// How the blocks of a cluster may share a factor.
    pub(super) fn shares_of_factor(&self, operand: usize) -> Vec<CgaLayout> {
        let mut shares: Vec<CgaLayout> = Vec::new();
        if let Some(other) = self.shape.len().checked_sub(1 + operand) {
            for blocks in self.shares() {
                let blocks = blocks.shared_along(other);
                if !shares.contains(&blocks) {
                    shares.push(blocks);
                }
            }
        }
        shares
    }

    /// The cost for a warp, in addition to [`Product::cost`], of a factor that is in shared memory in this layout;
    /// `None` if the instruction of `encoding` cannot read it there.
    pub(super) fn cost_of_memory(
        &self,
        operand: usize,
        (encoding, result): (&Encoding, &LinearLayout),
        memory: &LinearLayout,
    ) -> Option<f32> {
        let row = self.instruction(encoding)?;
        let factor = operand_of(row, operand);
        let extent = [row.m, row.n][operand];
        if !factor.place.takes_shared() {
            return None;
        }
        let bits = factor.element.bits();
        let (outer, depth) = (Dim::tensor(operand), Dim::tensor(1 - operand));
        let wanted = Wanted {
            outer,
            depth,
            bits,
            extent,
        };
        // Each block has the parts that it multiplies.
        let blocks = 0..memory
            .in_dim_size_log2(Dim::BLOCK)
            .max(result.in_dim_size_log2(Dim::BLOCK));
        let shares = |bit: u32| {
            let at =
                |layout: &LinearLayout, dim: Dim| match bit < layout.in_dim_size_log2(Dim::BLOCK) {
                    true => layout.basis_entry(Dim::BLOCK, bit, dim),
                    false => 0,
                };
            at(memory, outer) == at(result, outer) && at(memory, depth) == 0
        };
        if !blocks.into_iter().all(shares) {
            return None;
        }
        let pieces = encoding.cga_layout().shared_along(1 - operand).num_pieces();
        let part = memory.out_dim_size(outer) / u64::from(pieces);
        let how = GroupOperand::derive(memory, &wanted).ok()?;
        let begins = |extent: u64, step: u32| (0..extent as u32).step_by(step as usize);
        let bytes = part * memory.out_dim_size(depth) * u64::from(bits / 8);
        let fits = begins(part, extent).all(|outer| {
            begins(memory.out_dim_size(depth), row.k)
                .all(|depth| how.may_begin_at(how.place(outer, depth).bytes))
        });
        // All that is stored at one time is counted when layouts are chosen ([`super::stored`]).
        if !fits || bytes > u64::from(self.target.shared_memory_limit()) {
            return None;
        }
        let more = match operand {
            0 => self.busy(row, true) - self.busy(row, false),
            _ => 0.0,
        };
        Some(self.executions(row, result) * more / UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::products::of_halves;

    #[test]
    fn groups_of_warps_read_factors_in_memory() {
        let product = of_halves("cuda:90", [128, 128], 64);
        let (encoding, row) = &product.by_units[0];
        assert_eq!((row.warps, row.n), (4, 128));
        let result = encoding.linear_layout(&[128, 128]).unwrap();
        let read = |operand: usize, shape: [u64; 2], buffer: &Encoding| {
            let memory = buffer.linear_layout(&shape).unwrap();
            product.cost_of_memory(operand, (encoding, &result), &memory)
        };
        for (operand, shape) in [(0, [128, 64]), (1, [64, 128])] {
            let buffers = product.in_memory(operand);
            // Halves are transposed while they are read.
            assert_eq!(buffers.len(), 2);
            for buffer in &buffers {
                assert_eq!(read(operand, shape, buffer), Some(0.0), "{buffer:?}");
            }
        }
        // The second factor is never in registers.
        assert!(product.takes_registers(0, encoding) && !product.takes_registers(1, encoding));
    }

    #[test]
    fn reading_the_first_factor_takes_time_where_there_are_few_columns() {
        let product = of_halves("cuda:90", [64, 16], 64);
        let (encoding, _) = &product.by_units[0];
        let result = encoding.linear_layout(&[64, 16]).unwrap();
        let memory = product.in_memory(0)[0].linear_layout(&[64, 64]).unwrap();
        let more = product.cost_of_memory(0, (encoding, &result), &memory);
        // 16 passes for the first factor and 4 for the second, where the units take 8 cycles, four times.
        assert_eq!(more, Some(4.0 * (20.0 - 8.0) / UNITS));
    }
}
