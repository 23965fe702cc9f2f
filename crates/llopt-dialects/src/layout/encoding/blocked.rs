//! `#ttg.blocked`: each lane has a small block, the blocks of the lanes of a warp are adjacent, and so are those of
//! the warps. The layout of coalesced global memory accesses.

use llopt_layout::{Dim, InlineList, LinearLayout, MAX_BITS, from_flat_bases};

use super::field::{check_order, verify_counts, verify_order, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::threads::Threads;
use super::tile::Tile;
use super::{CgaLayout, EncodingError};

/// What the bits of a dimension of places add to a flattened element.
type Bases = InlineList<u32, MAX_BITS>;

/// The fields of `#ttg.blocked`; lists have one entry per dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blocked {
    /// Elements of one lane.
    pub size_per_thread: Vec<u32>,
    /// Lanes of a warp.
    pub threads_per_warp: Vec<u32>,
    /// Warps of a block.
    pub warps_per_cta: Vec<u32>,
    /// Dimensions from the fastest-varying to the slowest.
    pub order: Vec<u32>,
    /// The blocks of the cluster.
    pub cga_layout: CgaLayout,
}

impl Blocked {
    /// The encoding that spreads `num_warps` warps over a shape: along each dimension of `order`, lanes first and
    /// then warps, as many as the shape needs; the last dimension takes the rest.
    ///
    /// `num_warps` and `threads_per_warp` are powers of two. The blocks are those of `cga_layout`.
    ///
    /// # Errors
    /// When a list has not the shape's rank, or a number is not a power of two.
    pub fn spread(
        shape: &[u64],
        size_per_thread: &[u32],
        order: &[u32],
        num_warps: u32,
        threads_per_warp: u32,
        cga_layout: CgaLayout,
    ) -> Result<Self, EncodingError> {
        let rank = shape.len();
        verify_rank("ttg.blocked", rank, 1..=usize::MAX, "at least 1")?;
        verify_counts("sizePerThread", size_per_thread, rank)?;
        super::field::verify_power_of_two("num-warps", num_warps)?;
        super::field::verify_power_of_two("threads-per-warp", threads_per_warp)?;
        cga_layout.verify(rank)?;
        let order_indices = verify_order(order, rank)?;
        let share = cga_layout.share(shape)?;

        let mut lanes = vec![1; rank];
        let mut warps = vec![1; rank];
        let mut lanes_left = threads_per_warp;
        let mut warps_left = num_warps;
        let mut threads_left = u64::from(num_warps) * u64::from(threads_per_warp);
        let (&slowest, others) = order_indices.split_last().unwrap_or((&0, &[]));
        for &dim in others {
            let useful = (share[dim] / u64::from(size_per_thread[dim])).max(1);
            let threads = threads_left.clamp(1, useful);
            lanes[dim] = threads.clamp(1, u64::from(lanes_left)) as u32;
            warps[dim] = (threads / u64::from(lanes[dim])).clamp(1, u64::from(warps_left)) as u32;
            lanes_left /= lanes[dim];
            warps_left /= warps[dim];
            threads_left /= threads;
        }
        lanes[slowest] = lanes_left;
        warps[slowest] = warps_left;
        let result = Self {
            size_per_thread: size_per_thread.to_vec(),
            threads_per_warp: lanes,
            warps_per_cta: warps,
            order: order.to_vec(),
            cga_layout,
        };
        result.verify()?;
        Ok(result)
    }

    /// As [`Blocked::spread`], with the blocks of a cluster spread as well: from the slowest dimension on, as many as
    /// the shape needs; the rest hold copies.
    ///
    /// # Errors
    /// As `spread`, and when `num_ctas` is not a power of two.
    pub fn spread_over_cluster(
        shape: &[u64],
        size_per_thread: &[u32],
        order: &[u32],
        num_warps: u32,
        threads_per_warp: u32,
        num_ctas: u32,
    ) -> Result<Self, EncodingError> {
        let rank = shape.len();
        verify_rank("ttg.blocked", rank, 1..=usize::MAX, "at least 1")?;
        verify_counts("sizePerThread", size_per_thread, rank)?;
        super::field::verify_power_of_two("num-ctas", num_ctas)?;
        let mut split = vec![1; rank];
        let mut left = num_ctas;
        for &dim in verify_order(order, rank)?.iter().rev() {
            let useful = (shape[dim] / u64::from(size_per_thread[dim])).max(1);
            split[dim] = useful.min(u64::from(left)) as u32;
            left /= split[dim];
        }
        let mut per_dim = split.clone();
        per_dim[rank - 1] *= left;
        let cga_layout = CgaLayout::from_split(&per_dim, &split, order)?;
        Self::spread(
            shape,
            size_per_thread,
            order,
            num_warps,
            threads_per_warp,
            cga_layout,
        )
    }

    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.order.len()
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        self.cga_layout.clone()
    }

    /// Invariants: rank at least 1; every list has one entry per dimension, counts are powers of two,
    /// the order is a permutation.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn verify(&self) -> Result<(), EncodingError> {
        let rank = self.rank();
        verify_rank("ttg.blocked", rank, 1..=usize::MAX, "at least 1")?;
        verify_counts("sizePerThread", &self.size_per_thread, rank)?;
        verify_counts("threadsPerWarp", &self.threads_per_warp, rank)?;
        verify_counts("warpsPerCTA", &self.warps_per_cta, rank)?;
        check_order(&self.order, rank)?;
        self.cga_layout.verify(rank)
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let order = verify_order(&self.order, self.rank())?;
        let of_one_block = match self.cga_layout.is_single() {
            true => self.of_one_block(shape, &order),
            false => None,
        };
        match of_one_block {
            Some(layout) => Ok(layout),
            None => self.by_tiles(shape, &order),
        }
    }

    /// The layout for a block that has everything, in one step, as most programs ask for it most often; `None` for sizes that no
    /// such layout has.
    ///
    /// Each bit of a place is the next bit along a dimension, or nothing where the dimension ends. What is left of the
    /// shape then are more registers.
    fn of_one_block(&self, shape: &[u64], order: &[usize]) -> Option<LinearLayout> {
        if shape.len() != self.rank() || !shape.iter().all(|extent| extent.is_power_of_two()) {
            return None;
        }
        let outs = (0..).zip(shape);
        let outs: Vec<(Dim, u32)> = outs
            .map(|(dim, extent)| (Dim::tensor(dim), extent.trailing_zeros()))
            .collect();
        let mut first = 0;
        // For each dimension its next bit in a flattened element, and the bit behind its last one.
        let mut bits: Vec<(u32, u32)> = Vec::with_capacity(outs.len());
        for (_, log2) in &outs {
            bits.push((first, first + log2));
            first += log2;
        }
        if first as usize > MAX_BITS {
            return None;
        }
        let mut take = |bases: &mut Bases, dim: usize| {
            let (next, end) = &mut bits[dim];
            let is_there = *next < *end;
            let base = if is_there { 1 << *next } else { 0 };
            *next += u32::from(is_there);
            bases.push(base).ok()?;
            Some(is_there)
        };
        let mut held = [(); 3].map(|()| Bases::new());
        let counts = [
            &self.size_per_thread,
            &self.threads_per_warp,
            &self.warps_per_cta,
        ];
        for (held, counts) in held.iter_mut().zip(counts) {
            for &dim in order {
                if !counts[dim].is_power_of_two() {
                    return None;
                }
                for _ in 0..counts[dim].trailing_zeros() {
                    take(held, dim)?;
                }
            }
        }
        let [registers, lanes, warps] = &mut held;
        for &dim in order {
            while take(registers, dim)? {}
            registers.truncate(registers.len() - 1);
        }
        let log2 = |bases: &Bases| u32::try_from(bases.len()).unwrap_or(u32::MAX);
        let ins = [
            (Dim::REGISTER, log2(registers)),
            (Dim::LANE, log2(lanes)),
            (Dim::WARP, log2(warps)),
            (Dim::BLOCK, 0),
        ];
        for base in lanes.iter().chain(warps.iter()) {
            registers.push(*base).ok()?;
        }
        from_flat_bases(&ins, &outs, registers).ok()
    }

    /// The layout for any number of blocks.
    fn by_tiles(&self, shape: &[u64], order: &[usize]) -> Result<LinearLayout, EncodingError> {
        Tile::distributed(order)?
            .along_all(Dim::REGISTER, &self.size_per_thread, order)?
            .along_all(Dim::LANE, &self.threads_per_warp, order)?
            .along_all(Dim::WARP, &self.warps_per_cta, order)?
            .on(shape, &self.cga_layout)
    }
}

impl Kind for Blocked {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        let order = fields.list("order");
        Ok(Self {
            size_per_thread: fields.list("sizePerThread"),
            threads_per_warp: fields.list("threadsPerWarp"),
            warps_per_cta: fields.list("warpsPerCTA"),
            cga_layout: fields.cga_layout(order.len())?,
            order,
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("sizePerThread", write.list(&self.size_per_thread)),
            ("threadsPerWarp", write.list(&self.threads_per_warp)),
            ("warpsPerCTA", write.list(&self.warps_per_cta)),
            ("order", write.list(&self.order)),
            write.cga(&self.cga_layout),
        ]
    }

    fn threads(&self) -> Option<Threads> {
        let lanes = self.threads_per_warp.iter().product();
        Some(Threads::of_grid(
            lanes,
            &self.warps_per_cta,
            &self.cga_layout,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodings that Triton 3.6 gives to layout-free tensors (`sizePerThread` all 1, fastest
    /// dimension last).
    #[test]
    fn spreading_fills_the_fastest_dimension_first() {
        let spread = |shape: &[u64], order: &[u32], warps, threads| {
            let ones = vec![1; shape.len()];
            let single = CgaLayout::single(shape.len());
            Blocked::spread(shape, &ones, order, warps, threads, single).unwrap()
        };
        let blocked = spread(&[64, 64], &[1, 0], 4, 32);
        assert_eq!(blocked.threads_per_warp, [1, 32]);
        assert_eq!(blocked.warps_per_cta, [2, 2]);
        let blocked = spread(&[16, 4], &[1, 0], 4, 64);
        assert_eq!(blocked.threads_per_warp, [16, 4]);
        assert_eq!(blocked.warps_per_cta, [4, 1]);
    }

    #[test]
    fn one_block_has_the_layout_of_its_tiles() {
        let mut number = 1u64;
        let mut random = |below: u64| {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1);
            (number >> 33) % below
        };
        for _ in 0..500 {
            let rank = 1 + random(4) as usize;
            let mut sizes =
                |most: u64| -> Vec<u32> { (0..rank).map(|_| 1 << random(most)).collect() };
            let (size_per_thread, threads_per_warp, warps_per_cta) = (sizes(4), sizes(3), sizes(3));
            let shape: Vec<u64> = sizes(7).into_iter().map(u64::from).collect();
            let mut order: Vec<u32> = (0..rank as u32).collect();
            for last in (1..rank).rev() {
                order.swap(last, random(last as u64 + 1) as usize);
            }
            let blocked = Blocked {
                size_per_thread,
                threads_per_warp,
                warps_per_cta,
                order,
                cga_layout: CgaLayout::single(rank),
            };
            let order = verify_order(&blocked.order, rank).unwrap();
            let tiles = blocked.by_tiles(&shape, &order).unwrap();
            assert_eq!(
                blocked.of_one_block(&shape, &order),
                Some(tiles),
                "{blocked:?} {shape:?}"
            );
        }
    }

    #[test]
    fn clusters_split_the_slowest_dimension_and_copy_the_rest() {
        let blocked = Blocked::spread_over_cluster(&[2, 64], &[1, 1], &[1, 0], 4, 32, 4).unwrap();
        assert_eq!(blocked.cga_layout.split(), Ok(vec![2, 2]));
        let blocked = Blocked::spread_over_cluster(&[1, 1], &[1, 1], &[1, 0], 4, 32, 2).unwrap();
        assert_eq!(blocked.cga_layout.bases(), [[0, 0]]);
    }

    #[test]
    fn errors_name_field_dimension_and_value() {
        let mut blocked = Blocked {
            size_per_thread: vec![1, 4],
            threads_per_warp: vec![4, 8],
            warps_per_cta: vec![4, 1],
            order: vec![1, 0],
            cga_layout: CgaLayout::single(2),
        };
        blocked.threads_per_warp[1] = 6;
        assert_eq!(
            blocked.verify().unwrap_err().to_string(),
            "`threadsPerWarp` of dim1 is 6, which is not a power of two"
        );
        blocked.threads_per_warp = vec![32];
        assert_eq!(
            blocked.verify().unwrap_err().to_string(),
            "`threadsPerWarp` has 1 entries; the encoding has rank 2"
        );
        blocked.threads_per_warp = vec![4, 8];
        blocked.order = vec![1, 1];
        assert_eq!(
            blocked.verify().unwrap_err().to_string(),
            "`order` is [1, 1], which does not name each of 0 to 1 once"
        );
    }
}
