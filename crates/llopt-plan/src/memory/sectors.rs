//! Which elements of a tensor in global memory share a sector, a line, or a run of consecutive addresses.
//!
//! # Elements that share a sector
//!
//! Along the dimension in which addresses are contiguous, elements whose coordinates differ in low bits only share a
//! sector; along any dimension, those in a run of equal addresses do. Along a dimension whose neighbours are a known
//! distance `d` apart, the bit `i` of the coordinate adds `d 2^i` to the address. If the bits of all such dimensions add to
//! different bits of the address, then no carry arises, and elements share a sector of `S` bytes if they differ only in
//! bits that add less than `S`: rows of 16 bytes that follow each other share one although each is a run of its own. So
//! the elements that share a sector are a coset of a subspace of bits, and the sectors of a subspace of elements (those of
//! an instruction, of a warp, of a block) are a quotient space, whose rank gives their number. What nothing is known of has
//! a sector for each element.
//!
//! # Runs that start anywhere
//!
//! Nothing is known of where a run of `R` bytes starts but that `a` divides its address. If all these places are equally
//! likely, it touches `1 + (R - a) / S` sectors in the mean. The quotient space has `max(1, R / S)` of them, so each run
//! touches `(min(R, S) - a) / S` more, and none more if it starts with a sector.

use llopt_layout::f2::Echelon;
use llopt_target::global_memory::GlobalCosts;

use crate::facts::{AxisFacts, Pow2};
use crate::tensor::TensorType;

/// How far apart the addresses of neighbours along a dimension are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// So many bytes, everywhere.
    Bytes(u64),
    /// An unknown number of bytes that this divides.
    MultipleOf(Pow2),
}

/// Addresses of which distances are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strides {
    /// From an element to the next one along each dimension.
    pub distances: Vec<Distance>,
    /// A divisor of the address of the first element.
    pub start: Pow2,
}

impl Strides {
    /// Those of addresses of which nothing is known.
    #[must_use]
    pub fn unknown(rank: usize) -> Self {
        Self {
            distances: vec![Distance::MultipleOf(Pow2::ONE); rank],
            start: Pow2::ONE,
        }
    }
}

/// The bits of an element's number that do not change where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sharing {
    /// Those that do not change its sector.
    in_sector: u32,
    /// Its line of the first-level cache.
    in_line: u32,
    /// Its run of consecutive or equal addresses.
    in_run: u32,
    /// The sectors that each run touches in addition, in the mean.
    more: f32,
}

/// The bits of an element's number along which a value with this constancy does not vary.
pub(crate) fn equal(tensor: &TensorType, constancy: impl Fn(usize) -> Pow2) -> u32 {
    let of_dim = |dim: usize| {
        let (low, bits) = tensor.bits_of_dim(dim);
        ((1u32 << constancy(dim).log2().min(bits)) - 1) << low
    };
    (0..tensor.shape.len()).fold(0, |all, dim| all | of_dim(dim))
}

/// The number of cosets that vectors reach of the subspace of these bits.
pub(crate) fn cosets(bases: &[u32], inside: u32) -> u32 {
    let mut span = Echelon::new();
    for basis in bases {
        let _ = span.insert(basis & !inside);
    }
    1 << span.rank()
}

impl Sharing {
    /// That of the elements of a tensor, by what is known of their addresses. `alignment` divides the address at which a
    /// run along each dimension starts.
    #[must_use]
    pub fn of(
        tensor: &TensorType,
        facts: &AxisFacts,
        alignment: impl Fn(usize) -> u64,
        strides: Option<&Strides>,
        costs: &GlobalCosts,
    ) -> Self {
        let bytes = tensor.element.memory_bits() / 8;
        let dims = 0..tensor.shape.len();
        let contiguity = |dim: usize| facts.along(dim).contiguity.get();
        let Some(fastest) = dims.max_by_key(|dim| contiguity(*dim)) else {
            return Self::default();
        };
        let equal = equal(tensor, |dim| facts.along(dim).constancy);
        // Where no dimension has runs, those of known distances say more than none.
        let is_known = |strides: &&Strides| {
            matches!(strides.distances.get(fastest), Some(Distance::Bytes(_)))
                || contiguity(fastest) == 1
        };
        let steps = strides.filter(is_known);
        let steps = steps.and_then(|strides| Steps::of(tensor, strides));
        let steps = steps.unwrap_or_else(|| {
            let run = facts.along(fastest).contiguity.log2();
            Steps::along(tensor, fastest, bytes, run)
        });
        let run = steps.run(u64::from(bytes));
        let start = match strides {
            Some(strides) if steps.is_all => steps.alignment_beyond(run).min(strides.start.get()),
            _ => alignment(fastest),
        };
        let sector = u64::from(costs.sector_bytes);
        let apart = run.min(sector).saturating_sub(start.max(u64::from(bytes)));
        Self {
            in_sector: equal | steps.below(sector),
            in_line: equal | steps.below(u64::from(costs.line_bytes)),
            in_run: equal | steps.below(run),
            more: apart as f32 / sector as f32,
        }
    }

    /// The sectors of the elements that are sums of these.
    #[must_use]
    pub fn sectors(&self, elements: &[u32]) -> f32 {
        let whole = cosets(elements, self.in_sector) as f32;
        match self.more {
            0.0 => whole,
            more => whole + cosets(elements, self.in_run) as f32 * more,
        }
    }

    /// The lines of the elements that are sums of these.
    #[must_use]
    pub fn lines(&self, elements: &[u32]) -> u32 {
        cosets(elements, self.in_line)
    }
}

/// What bits of an element's number add to its address.
struct Steps {
    /// Each with its step in bytes, in the order of the steps.
    bits: Vec<(u32, u64)>,
    /// Whether these are all bits of the number.
    is_all: bool,
}

impl Steps {
    /// Those of the dimensions with known distances, if none carries into another.
    fn of(tensor: &TensorType, strides: &Strides) -> Option<Self> {
        let mut bits = Vec::new();
        let mut is_all = true;
        for (dim, distance) in strides.distances.iter().enumerate() {
            let (low, count) = tensor.bits_of_dim(dim);
            let of_dim = 0..count;
            match distance {
                // The address is the same for all of them.
                Distance::Bytes(0) => bits.extend(of_dim.map(|bit| (1 << (low + bit), 0))),
                Distance::Bytes(distance) => {
                    let step = distance.checked_next_power_of_two()?;
                    bits.extend(of_dim.map(|bit| (1 << (low + bit), step << bit)));
                }
                Distance::MultipleOf(_) => is_all &= count == 0,
            }
        }
        bits.sort_unstable_by_key(|(_, step)| *step);
        let mut neighbours = bits.windows(2);
        let carries = neighbours.any(|pair| pair[0].1 == pair[1].1 && pair[0].1 != 0);
        (!carries).then_some(Self { bits, is_all })
    }

    /// Those of the low bits of one dimension, along which neighbours are so many bytes apart.
    fn along(tensor: &TensorType, dim: usize, bytes: u32, run: u32) -> Self {
        let (low, count) = tensor.bits_of_dim(dim);
        let bits = (0..run.min(count)).map(|bit| (1 << (low + bit), u64::from(bytes) << bit));
        Self {
            bits: bits.collect(),
            is_all: false,
        }
    }

    /// The bits that add less than so many bytes.
    fn below(&self, bytes: u64) -> u32 {
        let below = self.bits.iter().take_while(|(_, step)| *step < bytes);
        below.fold(0, |all, (bit, _)| all | bit)
    }

    /// The bytes of a run of consecutive addresses of elements of this size.
    fn run(&self, element: u64) -> u64 {
        self.bits
            .iter()
            .fold(element, |run, (_, step)| match *step == run {
                true => 2 * run,
                false => run,
            })
    }

    /// A divisor of what the bits beyond a run add.
    fn alignment_beyond(&self, run: u64) -> u64 {
        let beyond = self.bits.iter().map(|(_, step)| *step);
        beyond.filter(|step| *step >= run).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use llopt_layout::Dim;
    use llopt_target::Target;

    use super::*;
    use crate::element::Element;

    /// The sectors of all bytes of a tensor of this shape, by what is known of its addresses.
    fn sectors(shape: &[u32], contiguity: u64, alignment: u64, strides: Option<&Strides>) -> f32 {
        let bits: u32 = shape.iter().map(|extent| extent.ilog2()).sum();
        let elements: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
        let numbers = [
            (Dim::REGISTER, elements.clone()),
            (Dim::LANE, Vec::new()),
            (Dim::WARP, Vec::new()),
            (Dim::BLOCK, Vec::new()),
        ];
        let tensor = TensorType::from_numbers(Element::Int(8), shape.to_vec(), &numbers).unwrap();
        let mut runs = vec![1; shape.len()];
        *runs.last_mut().unwrap() = contiguity;
        let facts = AxisFacts::unknown(shape.len(), Pow2::ONE).with_promises(&runs, &[], &[]);
        let costs = Target::parse("cuda:90").unwrap().global_costs();
        let sharing = Sharing::of(&tensor, &facts, |_| alignment, strides, &costs);
        sharing.sectors(&elements)
    }

    fn strides(distances: &[u64], start: u64) -> Strides {
        Strides {
            distances: distances
                .iter()
                .map(|bytes| Distance::Bytes(*bytes))
                .collect(),
            start: Pow2::dividing(start),
        }
    }

    #[test]
    fn rows_that_follow_each_other_share_sectors() {
        // 64 rows of two bytes: each by itself, or 128 bytes together.
        assert_eq!(sectors(&[64, 2], 2, 2, None), 64.0);
        let together = strides(&[2, 1], 32);
        assert_eq!(sectors(&[64, 2], 2, 2, Some(&together)), 4.0);
        // Every other sector.
        let apart = strides(&[64, 1], 32);
        assert_eq!(sectors(&[64, 2], 2, 2, Some(&apart)), 64.0);
        // The same row each time.
        let same = strides(&[0, 1], 32);
        assert_eq!(sectors(&[64, 2], 2, 2, Some(&same)), 1.0);
        // Windows that overlap are counted row by row.
        let windows = strides(&[1, 1], 32);
        assert_eq!(sectors(&[64, 32], 32, 32, Some(&windows)), 64.0);
    }

    #[test]
    fn a_run_that_starts_anywhere_touches_more_in_the_mean() {
        // The mean over all starts, counted one by one.
        for (length, alignment) in [(128u32, 16u32), (64, 4), (16, 16), (16, 4), (4, 1)] {
            let starts: Vec<u32> = (0..32).step_by(alignment as usize).collect();
            let touched = starts.iter().map(|start| (start + length).div_ceil(32));
            let mean = touched.sum::<u32>() as f32 / starts.len() as f32;
            let found = sectors(&[length], length.into(), alignment.into(), None);
            assert_eq!(found, mean, "{length} bytes, {alignment}");
        }
    }
}
