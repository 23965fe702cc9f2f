//! Atomics on global memory as data: what one instruction updates.

use crate::{Feature, Target, Vendor};

/// A float that atomics add to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummedFloat {
    /// IEEE half.
    Half,
    /// bfloat16.
    Bfloat,
    /// IEEE single.
    Single,
}

impl Target {
    /// How many neighbouring floats one atomic addition updates, for naturally aligned groups: vectors where NVIDIA
    /// has them, pairs of IEEE halves on all of its GPUs, pairs of either half on AMD's. Where AMD has no such
    /// instruction, LLVM emits a loop that compares and swaps the word of the pair.
    #[must_use]
    pub fn atomic_sum_width(self, element: SummedFloat) -> u32 {
        use SummedFloat::{Bfloat, Half, Single};
        match (self.vendor(), element) {
            (Vendor::Nvptx, Half | Bfloat) if self.has(Feature::VectorAtomic) => 8,
            (Vendor::Nvptx, Single) if self.has(Feature::VectorAtomic) => 4,
            (Vendor::Nvptx, Half) | (Vendor::Amdgpu, Half | Bfloat) => 2,
            (Vendor::Nvptx, Bfloat) | (_, Single) => 1,
        }
    }

    /// Whether an update of some elements of a group is executed on the whole group and leaves the others unchanged:
    /// then the elements of a group may have different masks.
    #[must_use]
    pub fn atomics_take_whole_groups(self) -> bool {
        self.vendor() == Vendor::Amdgpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_floats_are_added_since_sm_90() {
        let width = |name: &str, element| Target::parse(name).unwrap().atomic_sum_width(element);
        assert_eq!(width("cuda:80", SummedFloat::Half), 2);
        assert_eq!(width("cuda:80", SummedFloat::Bfloat), 1);
        assert_eq!(width("cuda:90", SummedFloat::Bfloat), 8);
        assert_eq!(width("cuda:90", SummedFloat::Single), 4);
        assert_eq!(width("hip:gfx942", SummedFloat::Bfloat), 2);
        assert_eq!(width("hip:gfx942", SummedFloat::Single), 1);
    }
}
