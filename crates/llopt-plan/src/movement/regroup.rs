//! Ops that renumber elements or place them next to those of another tensor: `tt.reshape`, `tt.expand_dims`,
//! `tt.trans`, `tt.join`, `tt.split` and `tt.cat`.
//!
//! Each of them is a renaming and a layout conversion. The operand's registers, lanes, warps and blocks hold elements
//! of the result too; that is a layout of the result's shape, and from there the elements move to the result's own
//! layout. Usually the two layouts are equal, as passes infer the one from the other; then nothing is emitted.
//! Otherwise the elements move by the plan of a conversion.
//!
//! | op | the operand's element `x` in the result | extra register |
//! |---|---|---|
//! | `reshape`, `expand_dims` | `x` | |
//! | `trans` | `x` with its fields in another order | |
//! | `join` | `2 x + side` | which side |
//! | `split` | the same, backwards: the result's element `x` is `2 x + side` of the operand | which side |
//! | `cat` | `x + side * size` | which side |
//!
//! Where the order of the result's elements is free (`cat`, and `reshape` with `allow_reorder`, which is how the
//! reduction of a whole tensor begins) and the two layouts have the same numbers of distinct elements per thread, the
//! result takes the registers in their order, and nothing moves.

use llopt_dialects::meaning::facts::{OpFacts, ScratchUse};
use llopt_dialects::tt;
use llopt_layout::f2::Echelon;
use llopt_layout::{Dim, LayoutError};
use melior::ir::OperationRef;

use crate::tensor::TensorType;

/// The two ends of the conversion that an op is.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Where elements are.
    pub from: TensorType,
    /// Where they are wanted.
    pub to: TensorType,
}

impl Passage {
    /// Whether an op is one of those in this file.
    pub fn is_taken_by(op: OperationRef<'_, '_>) -> bool {
        OpFacts::of(op).scratch == ScratchUse::Regrouping
    }

    /// The passage of an op of this file with these types; `None` for another op, and for one that takes the
    /// registers in their order.
    pub fn of(
        op: OperationRef<'_, '_>,
        from: &TensorType,
        to: &TensorType,
    ) -> Result<Option<Self>, LayoutError> {
        let keep = |element: u32| element;
        let renamed = |map: &dyn Fn(u32) -> u32| -> Result<Option<Self>, LayoutError> {
            Ok(Some(Self {
                from: renumbered(from, &to.shape, map, None)?,
                to: to.clone(),
            }))
        };
        if tt::ReshapeOp::of(op).is_some_and(|reshape| reshape.allow_reorder())
            && spread_alike(from, to, 1)
        {
            Ok(None)
        } else if tt::ReshapeOp::of(op).is_some() || tt::ExpandDimsOp::of(op).is_some() {
            renamed(&keep)
        } else if let Some(trans) = tt::TransOp::of(op) {
            let fields = trans
                .order()
                .iter()
                .enumerate()
                .filter_map(|(dim, order)| {
                    let (low, bits) = from.bits_of_dim(usize::try_from(*order).ok()?);
                    Some((low, to.bits_of_dim(dim).0, (1u32 << bits) - 1))
                })
                .collect();
            renamed(&move_fields(fields))
        } else if tt::JoinOp::of(op).is_some() {
            Ok(Some(Self {
                from: beside(from, &to.shape)?,
                to: to.clone(),
            }))
        } else if tt::SplitOp::of(op).is_some() {
            Ok(Some(Self {
                from: from.clone(),
                to: beside(to, &from.shape)?,
            }))
        } else if tt::CatOp::of(op).is_some() && !spread_alike(from, to, 2) {
            let second: u32 = from.shape.iter().product();
            Ok(Some(Self {
                from: renumbered(from, &to.shape, &keep, Some(second))?,
                to: to.clone(),
            }))
        } else {
            Ok(None)
        }
    }
}

/// The type whose places hold `map` of the elements that those of `of` hold, with one more register bit, the highest,
/// that adds `side`.
fn renumbered(
    of: &TensorType,
    shape: &[u32],
    map: &dyn Fn(u32) -> u32,
    side: Option<u32>,
) -> Result<TensorType, LayoutError> {
    let numbers: Vec<(Dim, Vec<u32>)> = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK]
        .into_iter()
        .map(|dim| {
            let bases = of.layout().flat_bases_of(dim).iter();
            let mut numbers: Vec<u32> = bases.map(|basis| map(*basis)).collect();
            numbers.extend(side.filter(|_| dim == Dim::REGISTER));
            (dim, numbers)
        })
        .collect();
    TensorType::from_numbers(of.element, shape.to_vec(), &numbers)
}

/// Two tensors of type `of` next to each other along a new last dimension.
fn beside(of: &TensorType, shape: &[u32]) -> Result<TensorType, LayoutError> {
    renumbered(of, shape, &|element| element << 1, Some(1))
}

/// The number of distinct elements that a thread holds.
fn distinct(tensor: &TensorType) -> usize {
    (0..tensor.registers())
        .filter(|register| tensor.is_canonical(*register))
        .count()
}

/// Whether the registers of `count` tensors `from`, one after the other, are those of a tensor `to`, in some order of
/// its elements: the numbers of distinct elements agree, and the same threads hold copies.
pub fn spread_alike(from: &TensorType, to: &TensorType, count: usize) -> bool {
    distinct(to) == count * distinct(from)
        && from.free_threads() == to.free_threads()
        && from.free_blocks() == to.free_blocks()
        && places_are_independent(from)
        && places_are_independent(to)
}

/// Whether two places hold the same element only if they differ in bits that add nothing.
fn places_are_independent(tensor: &TensorType) -> bool {
    let mut seen = Echelon::new();
    [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK]
        .into_iter()
        .flat_map(|dim| tensor.layout().flat_bases_of(dim))
        .filter(|basis| **basis != 0)
        .all(|basis| seen.insert(*basis).is_none())
}

/// The map that moves bit fields: each triple is the first bit of a field, its new first bit, and the mask of its
/// width.
pub fn move_fields(fields: Vec<(u32, u32, u32)>) -> Box<dyn Fn(u32) -> u32> {
    Box::new(move |element| {
        fields.iter().fold(0, |moved, (from, to, mask)| {
            moved | ((element >> from & mask) << to)
        })
    })
}
