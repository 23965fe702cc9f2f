//! The layout in which a warp touches the fewest sectors of global memory.
//!
//! Along the dimension in which addresses are contiguous, each lane takes a vector, the lanes of a
//! warp take neighbouring vectors, and what is left goes to the other dimensions. The vector is as
//! wide as contiguity, alignment, the tensor and the hardware allow, but no wider than leaves every
//! thread something to do.
//!
//! A kernel's accesses share their layout through the arithmetic between them, so accesses of the
//! same shape and order should agree: loads take the widest vector among them (a narrower type then
//! reads the same elements per thread with fewer bytes each), while a store never takes more than one
//! instruction's worth, because a warp that stores in two halves leaves gaps in each.

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, EncodingError};

use crate::axis::AxisFacts;

/// Bytes that one thread moves with one instruction at most.
const WIDEST: u64 = 16;

/// A load from, or store to, global memory through a tensor of addresses.
#[derive(Clone, Debug)]
pub struct GlobalAccess<'f> {
    /// The part of the tensor that one block holds.
    pub shape: &'f [u64],
    /// Bits of one element.
    pub element_bits: u32,
    /// What is known of the addresses.
    pub pointer: &'f AxisFacts,
    /// Whether it may write.
    pub writes: bool,
}

impl GlobalAccess<'_> {
    /// Dimensions from the one with the longest contiguous runs to the one with the shortest; among
    /// equals the later dimension comes first, as in row-major arrays.
    pub fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.shape.len() as u32).rev().collect();
        order.sort_by_key(|&dim| {
            let facts = self.pointer.dims.get(dim as usize);
            std::cmp::Reverse(facts.map(|facts| facts.contiguity))
        });
        order
    }

    /// Elements that one instruction may move: a power of two.
    pub fn vector(&self) -> u64 {
        let Some(&fastest) = self.order().first() else {
            return 1;
        };
        let (dim, bytes) = (fastest as usize, u64::from(self.element_bits / 8).max(1));
        let known = self.pointer.dims.get(dim).map_or(1, |facts| {
            let aligned = facts.aligned_contiguity(self.pointer.step).get();
            aligned.min(self.shape[dim].max(1))
        });
        known.min((WIDEST / bytes).max(1))
    }

    /// The layout for this access among `others` that its values are connected with.
    ///
    /// # Errors
    /// When a number of warps, threads or a size is no power of two.
    pub fn encoding(
        &self,
        others: &[GlobalAccess<'_>],
        num_warps: u32,
        threads_per_warp: u32,
        cga_layout: CgaLayout,
    ) -> Result<Blocked, EncodingError> {
        let order = self.order();
        let alike = others
            .iter()
            .filter(|other| other.shape == self.shape && other.order() == order);
        let widest = alike
            .map(GlobalAccess::vector)
            .fold(self.vector(), u64::max);
        let elements: u64 = self.shape.iter().product();
        let threads = u64::from(num_warps) * u64::from(threads_per_warp);
        let mut vector = widest.min((elements / threads).max(1));
        if self.writes {
            vector = vector.min(self.vector());
        }
        let mut size_per_thread = vec![1; self.shape.len()];
        if let Some(&fastest) = order.first() {
            size_per_thread[fastest as usize] = vector as u32;
        }
        Blocked::spread(
            self.shape,
            &size_per_thread,
            &order,
            num_warps,
            threads_per_warp,
            cga_layout,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::address;

    /// Addresses of elements of `bytes` with this contiguity and divisibility for each dimension.
    fn pointer(bytes: u64, contiguity: &[u64], divisibility: &[u64]) -> AxisFacts {
        address::unknown_address(contiguity.len(), bytes).with_promises(
            contiguity,
            divisibility,
            &[],
        )
    }

    fn access<'f>(shape: &'f [u64], bits: u32, pointer: &'f AxisFacts) -> GlobalAccess<'f> {
        GlobalAccess {
            shape,
            element_bits: bits,
            pointer,
            writes: false,
        }
    }

    #[test]
    fn rows_are_read_in_vectors_of_sixteen_bytes() -> Result<(), EncodingError> {
        let pointer = pointer(2, &[1, 64], &[2, 128]);
        let layout = access(&[128, 64], 16, &pointer).encoding(&[], 4, 32, CgaLayout::single(2))?;
        assert_eq!(layout.size_per_thread, [1, 8]);
        assert_eq!(layout.threads_per_warp, [4, 8]);
        assert_eq!(layout.warps_per_cta, [4, 1]);
        assert_eq!(layout.order, [1, 0]);
        Ok(())
    }

    #[test]
    fn columns_turn_the_order() {
        let pointer = pointer(4, &[64, 1], &[16, 4]);
        let access = access(&[64, 64], 32, &pointer);
        assert_eq!((access.order(), access.vector()), (vec![0, 1], 4));
    }

    #[test]
    fn every_thread_has_something_to_do() -> Result<(), EncodingError> {
        let pointer = pointer(1, &[256], &[16]);
        let layout = access(&[256], 8, &pointer).encoding(&[], 4, 32, CgaLayout::single(1))?;
        assert_eq!(layout.size_per_thread, [2]);
        Ok(())
    }

    #[test]
    fn a_load_follows_the_widest_and_a_store_its_own() -> Result<(), EncodingError> {
        let (narrow, wide) = (pointer(2, &[4096], &[16]), pointer(4, &[4096], &[16]));
        let half = access(&[4096], 16, &narrow);
        let single = access(&[4096], 32, &wide);
        let with_half =
            single.encoding(std::slice::from_ref(&half), 4, 32, CgaLayout::single(1))?;
        assert_eq!(with_half.size_per_thread, [8]);
        let store = GlobalAccess {
            writes: true,
            ..single
        };
        let stored = store.encoding(&[half], 4, 32, CgaLayout::single(1))?;
        assert_eq!(stored.size_per_thread, [4]);
        Ok(())
    }

    #[test]
    fn without_alignment_there_are_no_vectors() {
        let pointer = pointer(4, &[64], &[4]);
        assert_eq!(access(&[64], 32, &pointer).vector(), 1);
    }
}
