//! The two ends of a conversion as bare vectors: the positions of the tensor's bits in a layout.

use crate::f2::{Echelon, Matrix, WORD};
use crate::layout::Rearrange;
use crate::plan::{Machine, PlanError};
use crate::{Dim, InlineList, LayoutError, LinearLayout, Side};

/// A list of vectors of the flattened tensor.
pub(crate) type Vectors = InlineList<u32, WORD>;

/// One end of a conversion, registers without repeats.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// The images of the register bits that are not sums of earlier ones.
    pub registers: Vectors,
    /// For each of these the register index that has this bit alone.
    pub register_masks: Vectors,
    /// From any register index to the one that holds the same element with the repeated bits at
    /// zero, as columns over all register bits.
    pub fold: Matrix,
    pub lanes: Vectors,
    pub warps: Vectors,
    pub blocks: Vectors,
    /// The number of register bits with repeats.
    pub register_bits: u32,
}

impl Endpoint {
    /// Reads a layout whose outputs are arranged as `order` has them.
    pub fn new(layout: &LinearLayout, order: &LinearLayout) -> Endpoint {
        let rearrange = Rearrange::new(&layout.outs, &order.outs);
        let vectors = |dim: Dim| -> Vectors {
            layout
                .flat_bases_of(dim)
                .iter()
                .map(|&v| rearrange.apply(v))
                .collect()
        };
        let all = vectors(Dim::REGISTER);
        let mut echelon = Echelon::new();
        let (mut registers, mut register_masks) = (Vectors::new(), Vectors::new());
        let mut columns = Vectors::new();
        for (bit, &vector) in all.iter().enumerate() {
            match echelon.insert(vector) {
                None => {
                    registers.add(vector);
                    register_masks.add(1 << bit);
                    columns.add(1 << bit);
                }
                // The kernel vector names the bit itself and the ones it is the sum of.
                Some(kernel) => columns.add(kernel ^ 1 << bit),
            }
        }
        Endpoint {
            registers,
            register_masks,
            fold: Matrix::from_columns(&columns),
            lanes: vectors(Dim::LANE),
            warps: vectors(Dim::WARP),
            blocks: vectors(Dim::BLOCK),
            register_bits: all.len() as u32,
        }
    }

    /// The register index of a vector of coordinates over the registers without repeats.
    pub fn register_index(&self, coordinates: u32) -> u32 {
        crate::f2::ones(coordinates).fold(0, |acc, i| {
            acc ^ self.register_masks.get(i as usize).copied().unwrap_or(0)
        })
    }
}

/// Checks that a conversion from `from` to `to` is defined.
pub(crate) fn check(from: &LinearLayout, to: &LinearLayout) -> Result<(), LayoutError> {
    const PLACES: [Dim; 4] = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK];
    for layout in [from, to] {
        if let Some(&dim) = layout.in_dims().iter().find(|dim| !PLACES.contains(dim)) {
            return Err(LayoutError::UnknownDim {
                side: Side::Input,
                dim,
            });
        }
    }
    for (a, b) in [(from, to), (to, from)] {
        for &dim in a.out_dims() {
            if !b.has_out_dim(dim) {
                return Err(LayoutError::MissingDim {
                    side: Side::Output,
                    dim,
                });
            }
        }
    }
    for &dim in from.out_dims() {
        let (expected, found) = (from.out_dim_size(dim), to.out_dim_size(dim));
        if expected != found {
            return Err(LayoutError::SizeMismatch {
                side: Side::Output,
                dim,
                expected,
                found,
            });
        }
    }
    for dim in [Dim::LANE, Dim::WARP, Dim::BLOCK] {
        let (expected, found) = (from.in_dim_size(dim), to.in_dim_size(dim));
        if expected != found {
            return Err(LayoutError::SizeMismatch {
                side: Side::Input,
                dim,
                expected,
                found,
            });
        }
    }
    let rearrange = Rearrange::new(&to.outs, &from.outs);
    let image = Echelon::of(from.flat_bases());
    for (column, &basis) in (0..).zip(to.flat_bases()) {
        if !image.contains(rearrange.apply(basis)) {
            let (dim, bit) = to.ins.locate(column);
            return Err(LayoutError::OutsideImage { dim, bit });
        }
    }
    Ok(())
}

/// Checks the operands and reads both.
pub(super) fn endpoints(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<(Endpoint, Endpoint), PlanError> {
    if !element_bits.is_power_of_two() || !(8..=128).contains(&element_bits) {
        return Err(PlanError::ElementBits { bits: element_bits });
    }
    check(from, to)?;
    let source = Endpoint::new(from, from);
    if source.lanes.len() as u32 > machine.lanes_log2 {
        return Err(PlanError::TooManyLanes {
            lanes_log2: source.lanes.len() as u32,
            machine_log2: machine.lanes_log2,
        });
    }
    Ok((source, Endpoint::new(to, from)))
}
