//! `#ttg.linear`: a distributed layout written out as its bases.
//!
//! The bases determine the shape they were written for. On a larger tensor registers repeat the layout; on a smaller
//! one it wraps around, and registers that would hold copies are dropped.

use llopt_layout::{Dim, LinearLayout};

use super::field::size_u32;
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
            for bit in 0..layout.in_dim_size_log2(dim) {
                let basis = layout.basis(dim, bit).unwrap_or_default();
                if basis.iter().filter(|&&entry| entry != 0).count() > 1 {
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
        for bit in 0..self.layout.in_dim_size_log2(Dim::REGISTER) {
            let basis = self.layout.basis(Dim::REGISTER, bit).unwrap_or_default();
            if let Some(dim) = basis.iter().position(|&entry| entry != 0)
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
        let order: Vec<Dim> = self.register_order().into_iter().map(Dim::tensor).collect();
        let size = |dim: Dim| dim.tensor_index().map_or(1, |index| shape[index]);
        let layout = self.layout.transpose_outs(&order)?;
        let full = Tile::of(layout, Dim::REGISTER)
            .repeat_to(size)?
            .into_layout();
        let mut wrapped = full.clone();
        for &dim in &order {
            if wrapped.out_dim_size(dim) > size(dim) {
                wrapped = wrapped.resize_out(dim, size_u32(size(dim)))?;
            }
        }
        let standard: Vec<Dim> = (0..shape.len()).map(Dim::tensor).collect();
        drop_wrapped_registers(&full, &wrapped)?
            .transpose_outs(&standard)
            .map_err(Into::into)
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

/// `wrapped` without the registers that moved in `full` and no longer do.
fn drop_wrapped_registers(
    full: &LinearLayout,
    wrapped: &LinearLayout,
) -> Result<LinearLayout, EncodingError> {
    let bases_of = |dim| -> Vec<Vec<u32>> {
        (0..wrapped.in_dim_size_log2(dim))
            .filter(|&bit| {
                let stays = wrapped
                    .basis(dim, bit)
                    .is_some_and(|b| b.iter().any(|&e| e != 0));
                let moved = full
                    .basis(dim, bit)
                    .is_some_and(|b| b.iter().any(|&e| e != 0));
                dim != Dim::REGISTER || stays || !moved
            })
            .filter_map(|bit| wrapped.basis(dim, bit).map(|basis| basis.to_vec()))
            .collect()
    };
    let bases = INS.map(|dim| (dim, bases_of(dim)));
    let bases: Vec<(Dim, &[Vec<u32>])> = bases.iter().map(|(d, b)| (*d, b.as_slice())).collect();
    let outs: Vec<(Dim, u32)> = wrapped
        .out_dims()
        .iter()
        .map(|&dim| (dim, size_u32(wrapped.out_dim_size(dim))))
        .collect();
    Ok(LinearLayout::from_bases(&bases, &outs)?)
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
