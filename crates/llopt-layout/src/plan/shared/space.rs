//! The tensor's bits that one block holds, and the vectors of both ends in them.

use crate::banks::Access;
use crate::f2::{Echelon, Matrix, Subspace, WORD, ones};
use crate::layout::{Dims, LinearLayout};
use crate::plan::Scope;
use crate::plan::endpoint::{Endpoint, Vectors};
use crate::{Dim, InlineList, Side};

/// A vector of the memory, and the blocks, relative to the own one, whose memory it is in.
pub(super) type Located = (u32, u32);

pub(super) type LocatedVectors = InlineList<Located, WORD>;

/// The part of the tensor that one block holds, and where the result's vectors lie in it.
///
/// A vector of that part is known by its components at the pivots of the part's reduced basis: a
/// mask gives its coordinates.
pub(super) struct Space {
    part: Echelon,
    pub scope: Scope,
    target_registers: LocatedVectors,
    target_lanes: LocatedVectors,
    target_warps: LocatedVectors,
    target_blocks: LocatedVectors,
}

impl Space {
    pub fn new(source: &Endpoint, target: &Endpoint) -> Space {
        let mut warp = Echelon::of(&source.registers);
        for &lane in &source.lanes {
            let _ = warp.insert(lane);
        }
        let mut part = warp;
        for &w in &source.warps {
            let _ = part.insert(w);
        }
        let mut with_blocks = Echelon::new();
        for v in part.vectors() {
            let _ = with_blocks.insert(v);
        }
        for &b in &source.blocks {
            let _ = with_blocks.insert(b);
        }
        // In the own block if possible; otherwise in those whose contribution is missing.
        let locate = |vector: u32| -> Located {
            if part.contains(vector) {
                return (vector & part.pivots(), 0);
            }
            let recipe = with_blocks.solve(vector).unwrap_or(0);
            let blocks = recipe.checked_shr(part.rank()).unwrap_or(0);
            let rest = ones(blocks).fold(vector, |acc, i| acc ^ source.blocks[i as usize]);
            (rest & part.pivots(), blocks)
        };
        let all = |vectors: &Vectors| vectors.iter().map(|&v| locate(v)).collect();
        let differences =
            |a: &Vectors, b: &Vectors| -> Vectors { a.iter().zip(b).map(|(x, y)| x ^ y).collect() };
        let target_blocks = all(&differences(&target.blocks, &source.blocks));
        let (target_registers, target_lanes, target_warps): (LocatedVectors, _, LocatedVectors) = (
            all(&target.registers),
            all(&target.lanes),
            all(&target.warps),
        );
        let crosses_blocks = target_registers
            .iter()
            .chain(&target_lanes)
            .chain(&target_warps)
            .chain(&target_blocks)
            .any(|&(_, blocks)| blocks != 0);
        let stays_in_warp = target
            .registers
            .iter()
            .chain(&target.lanes)
            .chain(&differences(&target.warps, &source.warps))
            .chain(&differences(&target.blocks, &source.blocks))
            .all(|&v| warp.contains(v));
        let scope = if crosses_blocks {
            Scope::Cluster
        } else if stays_in_warp {
            Scope::Warp
        } else {
            Scope::Block
        };
        Space {
            part,
            scope,
            target_registers,
            target_lanes,
            target_warps,
            target_blocks,
        }
    }

    pub fn units(&self) -> Vectors {
        ones(self.part.pivots()).map(|pivot| 1 << pivot).collect()
    }

    /// The memory's layout, given the coordinates of each offset bit.
    pub fn memory_layout(
        &self,
        from: &LinearLayout,
        source: &Endpoint,
        offsets: &Vectors,
    ) -> LinearLayout {
        let mut ins = Dims::EMPTY;
        let mut bases = [0; WORD];
        for (image, &coordinates) in bases.iter_mut().zip(offsets) {
            *image = ones(coordinates).fold(0, |acc, pivot| acc ^ self.part.row(pivot));
        }
        for (image, &block) in bases[offsets.len()..].iter_mut().zip(&source.blocks) {
            *image = block;
        }
        // Two names, and no more bits than the tensor has.
        let _ = ins.push(Side::Input, Dim::OFFSET, offsets.len() as u32);
        let _ = ins.push(Side::Input, Dim::BLOCK, source.blocks.len() as u32);
        LinearLayout {
            ins,
            outs: from.outs,
            bases,
        }
    }
}

/// One side of the problem in coordinates.
pub(super) struct End {
    pub access: Access,
    pub registers: LocatedVectors,
    /// The register index of each.
    pub masks: Vectors,
    pub lanes: LocatedVectors,
    pub warps: LocatedVectors,
    /// What each bit of the block adds in addition to the block itself.
    pub blocks: LocatedVectors,
    /// From any register index to the one that is moved in its place.
    pub fold: Matrix,
}

impl End {
    /// A side by itself, whatever the other one is: in coordinates of the tensor.
    pub fn alone(end: &Endpoint, access: Access) -> End {
        let here = |vectors: &Vectors| vectors.iter().map(|&v| (v, 0)).collect();
        End {
            access,
            registers: here(&end.registers),
            masks: end.register_masks,
            fold: end.fold,
            lanes: here(&end.lanes),
            warps: here(&end.warps),
            blocks: end.blocks.iter().map(|_| (0, 0)).collect(),
        }
    }

    pub fn of_source(source: &Endpoint, space: &Space) -> End {
        let pivots = space.part.pivots();
        let own = |vectors: &Vectors| vectors.iter().map(|&v| (v & pivots, 0)).collect();
        End {
            access: Access::Store,
            registers: own(&source.registers),
            masks: source.register_masks,
            fold: source.fold,
            lanes: own(&source.lanes),
            warps: own(&source.warps),
            blocks: source.blocks.iter().map(|_| (0, 0)).collect(),
        }
    }

    pub fn of_target(target: &Endpoint, space: &Space) -> End {
        End {
            access: Access::Load,
            registers: space.target_registers,
            masks: target.register_masks,
            fold: target.fold,
            lanes: space.target_lanes,
            warps: space.target_warps,
            blocks: space.target_blocks,
        }
    }

    /// Everything except registers that contributes to addresses.
    pub fn threads(&self) -> impl Iterator<Item = Located> + '_ {
        self.lanes
            .iter()
            .chain(&self.warps)
            .chain(&self.blocks)
            .copied()
    }

    /// The registers that stay in the own block, which alone may be part of a chunk, with the
    /// recipe of each in terms of all registers.
    pub fn span(&self) -> Echelon {
        let mut echelon = Echelon::new();
        for &(v, blocks) in &self.registers {
            // A register in another block still takes an index, so that recipes count registers.
            let _ = echelon.insert(if blocks == 0 { v } else { 0 });
        }
        echelon
    }

    fn without_register(&mut self, index: usize) {
        let keep = |i: &usize| *i != index;
        let len = self.registers.len();
        self.registers = (0..len).filter(keep).map(|i| self.registers[i]).collect();
        self.masks = (0..len).filter(keep).map(|i| self.masks[i]).collect();
    }
}

/// One bit of the index of a round: what it adds to the register indices of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RoundBit {
    /// The register index added on the side of the stores.
    pub store: u32,
    /// The register index added on the side of the loads.
    pub load: u32,
}

/// Removes one register bit that both sides share from the problem, to be handled by rounds; returns it with the
/// remaining coordinates.
///
/// The bit has to be independent of everything else on both sides, so that all threads are in the
/// same round at the same register.
pub(super) fn split_round(
    store: &mut End,
    load: &mut End,
    coordinates: &Subspace,
) -> Option<(RoundBit, Subspace)> {
    for (i, &(v, _)) in store.registers.iter().enumerate().rev() {
        let Some(j) = load.registers.iter().position(|&other| other == (v, 0)) else {
            continue;
        };
        let mut others = Subspace::ZERO;
        for (end, own) in [(&*store, i), (&*load, j)] {
            for (k, &(w, _)) in end.registers.iter().enumerate() {
                if k != own {
                    others.add(w);
                }
            }
            for (w, _) in end.threads() {
                others.add(w);
            }
        }
        if others.contains(v) {
            continue;
        }
        let mut with_v = others;
        with_v.add(v);
        for w in &coordinates.basis() {
            if with_v.add(*w) {
                others.add(*w);
            }
        }
        let round = RoundBit {
            store: store.masks[i],
            load: load.masks[j],
        };
        store.without_register(i);
        load.without_register(j);
        return Some((round, others));
    }
    None
}
