//! `#ttg.linear`: a distributed layout written out as its bases.
//!
//! The bases determine the shape they were written for. On a larger tensor registers repeat the layout; on a smaller
//! one it wraps around, and registers that would hold copies are dropped.

use llopt_layout::{Dim, LinearLayout, out_bit, retain_bits};

use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::threads::Threads;
use super::tile::Tile;
use super::{CgaLayout, EncodingError};

const INS: [Dim; 4] = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK];

/// The bases of `#ttg.linear`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Linear {
    layout: LinearLayout,
}

impl Linear {
    /// From a layout with the inputs `register`, `lane`, `warp`, `block` and the outputs `dim0`, …
    ///
    /// # Errors
    /// When a dimension is missing or out of place, the layout is not surjective, or a basis vector
    /// moves along two dimensions.
    pub fn new(layout: LinearLayout) -> Result<Self, EncodingError> {
        verify_explicit(&layout, &INS)?;
        for &dim in layout.in_dims() {
            for (bit, basis) in (0..).zip(layout.flat_bases_of(dim)) {
                let ends = [basis.trailing_zeros(), 31 - basis.leading_zeros().min(31)];
                let [first, last] = ends.map(|end| out_bit(&layout, end).map(|(dim, _)| dim));
                if *basis != 0 && first != last {
                    return Err(EncodingError::Basis {
                        dim,
                        bit,
                        problem: "moves along more than one dimension",
                    });
                }
            }
        }
        Ok(Self { layout })
    }

    /// From basis vectors with `rank` entries each, as the IR writes them.
    ///
    /// # Errors
    /// As [`Linear::new`], and when a vector has another number of entries.
    pub fn from_bases(
        rank: usize,
        register: &[Vec<u32>],
        lane: &[Vec<u32>],
        warp: &[Vec<u32>],
        block: &[Vec<u32>],
    ) -> Result<Self, EncodingError> {
        let outs: Vec<Dim> = (0..rank).map(Dim::tensor).collect();
        let ins = [
            (Dim::REGISTER, register),
            (Dim::LANE, lane),
            (Dim::WARP, warp),
            (Dim::BLOCK, block),
        ];
        Self::new(LinearLayout::from_bases_surjective(&ins, &outs)?)
    }

    /// The layout as written.
    #[must_use]
    pub fn layout(&self) -> &LinearLayout {
        &self.layout
    }

    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.layout.out_dims().len()
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        cga_layout_of(&self.layout)
    }

    /// Invariants: those of [`Linear::new`], which hold for every value.
    ///
    /// # Errors
    /// None.
    pub fn verify(&self) -> Result<(), EncodingError> {
        Ok(())
    }

    /// Dimensions in the order of the first registers that move along them, then the others from the last to the
    /// first.
    fn register_order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        for basis in self.layout.flat_bases_of(Dim::REGISTER) {
            if let Some((dim, _)) = out_bit(&self.layout, basis.trailing_zeros())
                && !order.contains(&dim)
            {
                order.push(dim);
            }
        }
        for dim in (0..self.rank()).rev() {
            if !order.contains(&dim) {
                order.push(dim);
            }
        }
        order
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let size = |dim: Dim| dim.tensor_index().map_or(1, |index| shape[index]);
        let standard = self.layout.out_dims();
        let is_larger = |dim: &Dim| size(*dim) > self.layout.out_dim_size(*dim);
        let full = match standard.iter().any(is_larger) {
            true => {
                let order = self.register_order().into_iter().map(Dim::tensor);
                let tile = Tile::of(self.layout.clone(), Dim::REGISTER);
                tile.repeat_along(order, size)?.into_layout()
            }
            false => self.layout.clone(),
        };
        let wrapped = full.wrap_outs(standard, size)?;
        // Registers that moved along what is left out would hold copies.
        let [before, after] = [&full, &wrapped].map(|layout| layout.flat_bases_of(Dim::REGISTER));
        Ok(retain_bits(&wrapped, Dim::REGISTER, |bit| {
            before[bit] == 0 || after[bit] != 0
        }))
    }
}

impl Kind for Linear {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Self::from_bases(
            fields.rank_of_bases(&["register", "lane", "warp", "block"]),
            &fields.bases("register"),
            &fields.bases("lane"),
            &fields.bases("warp"),
            &fields.bases("block"),
        )
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        let names = ["register", "lane", "warp", "block"];
        names
            .map(|name| (name, write.bases_of(self.layout(), name)))
            .to_vec()
    }

    fn threads(&self) -> Option<Threads> {
        let size = |dim| u32::try_from(self.layout().in_dim_size(dim)).unwrap_or(u32::MAX);
        Some(Threads {
            lanes: size(Dim::LANE),
            warps: size(Dim::WARP),
            blocks: size(Dim::BLOCK),
        })
    }

    fn spelled_layout(&self) -> Option<&LinearLayout> {
        Some(self.layout())
    }
}

/// Whether a layout has exactly the given inputs and the tensor dimensions in order, and reaches
/// every element.
pub(super) fn verify_explicit(layout: &LinearLayout, ins: &[Dim]) -> Result<(), EncodingError> {
    use llopt_layout::{LayoutError, Side};
    for (position, &dim) in ins.iter().enumerate() {
        if layout.in_dims().get(position) != Some(&dim) {
            let side = Side::Input;
            return Err(LayoutError::MissingDim { side, dim }.into());
        }
    }
    if let Some(&dim) = layout.in_dims().get(ins.len()) {
        let side = Side::Input;
        return Err(LayoutError::UnknownDim { side, dim }.into());
    }
    for (position, &dim) in layout.out_dims().iter().enumerate() {
        if dim != Dim::tensor(position) {
            return Err(LayoutError::NotTensorDims { dim, position }.into());
        }
    }
    layout.clone().require_surjective()?;
    Ok(())
}

/// How the blocks of an explicit layout share the tensor: their bases over the size of one share.
pub(super) fn cga_layout_of(layout: &LinearLayout) -> CgaLayout {
    let rank = layout.out_dims().len();
    let mut bases: Vec<Vec<u32>> = (0..layout.in_dim_size_log2(Dim::BLOCK))
        .filter_map(|bit| layout.basis(Dim::BLOCK, bit).map(|basis| basis.to_vec()))
        .collect();
    for dim in 0..rank {
        let splits = bases.iter().filter(|basis| basis[dim] != 0).count();
        let share = layout.out_dim_size(Dim::tensor(dim)) >> splits;
        for basis in &mut bases {
            basis[dim] = (u64::from(basis[dim]) / share.max(1)) as u32;
        }
    }
    CgaLayout::from_bases(rank, bases).unwrap_or_else(|_| CgaLayout::single(rank))
}
