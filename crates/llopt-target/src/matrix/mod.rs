//! Matrix instructions: how each one distributes its matrices over the registers and lanes of a warp.
//!
//! # Fragments
//!
//! A warp holds a matrix jointly; the part of one lane is its *fragment*. For every instruction of both vendors the
//! map from (register, lane) to the matrix's indices is linear over F2, and simple enough to be written as a *deal*:
//! assign the lowest bits of some index to some holder, then the next bits, until all bits are assigned. The
//! accumulator of NVIDIA's 16x8 instruction, for example, is dealt as
//!
//! | step | holder | index | bits |
//! |---|---|---|---|
//! | 2 registers | register 0 | n | 0 |
//! | 4 lanes | lane 0-1 | n | 1-2 |
//! | 8 lanes | lane 2-4 | m | 0-2 |
//! | 2 registers | register 1 | m | 3 |
//!
//! so that lane 5 holds in its register 2 the element m = 1 + 8, n = 2.
//!
//! Operands of one instruction family differ in a single number, the *width*: the number of consecutive elements
//! along k in one lane before the next lane. It is a register's width divided by the element's width if a compiler
//! follows the manual exactly, and more if it permutes k (the same way in both operands, which does not change the
//! product) to load wider.
//!
//! ```
//! use llopt_target::matrix::{Axis, nvptx};
//! use llopt_layout::Dim;
//!
//! let (m, n) = (Dim::tensor(0), Dim::tensor(1));
//! let layout = nvptx::MMA_ACCUMULATOR.layout(1, |axis| if axis == Axis::M { m } else { n })?;
//! let element = layout.apply(&[(Dim::REGISTER, 2), (Dim::LANE, 5)])?;
//! assert!(element.contains(&(m, 9)) && element.contains(&(n, 2)));
//! # Ok::<(), llopt_layout::LayoutError>(())
//! ```
//!
//! # Instructions
//!
//! A [`MatrixInstruction`] combines the fragments of its operands with extents, elements and cycles; [`instructions`]
//! lists those of a target.
//!
//! # Alternatives rejected
//!
//! Tables of basis vectors contain the same information with less structure: a reader cannot tell a transposition
//! from a typing error, and each operand width needs a table of its own.

mod accumulation;
pub mod amdgpu;
mod available;
mod instruction;
pub mod nvptx;

pub use accumulation::{Accumulation, AccumulatorOrder, SumRounding, accumulation};
pub use available::{instructions, instructions_for};
pub use instruction::{BlockScale, MatrixElement, MatrixInstruction, Operand, OperandPlace};

use llopt_layout::{Dim, LayoutError, LinearLayout};

/// An index of a matrix product `c[m][n] += a[m][k] * b[k][n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The row of the accumulator and of the first operand.
    M,
    /// The column of the accumulator and of the second operand.
    N,
    /// The index that is summed over.
    K,
}

/// Which coordinate of the hardware takes the bits of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The registers of one lane, counted in elements.
    Register,
    /// The lanes of the warp.
    Lane,
}

impl Holder {
    /// The input dimension of a layout.
    #[must_use]
    pub const fn dim(self) -> Dim {
        match self {
            Self::Register => Dim::REGISTER,
            Self::Lane => Dim::LANE,
        }
    }
}

/// The number of holders to which a step assigns bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// This many; a power of two.
    Fixed(u32),
    /// As many as the operand's width.
    Width,
}

/// One step of a deal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The holder.
    pub holder: Holder,
    /// The index whose bits are assigned; `None` if the holders get copies of what others have.
    pub axis: Option<Axis>,
    /// The number of holders.
    pub count: Count,
}

/// The deal of one operand or result of a family of matrix instructions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The family and the matrix, for messages and tables.
    pub name: &'static str,
    /// The manual and the section that define it.
    pub manual: &'static str,
    /// The steps, lowest bits first.
    pub steps: &'static [Step],
}

impl Fragment {
    /// The steps with their counts for an operand of the given width (in elements; results and
    /// fragments without a variable step ignore it).
    pub fn deal(&self, width: u32) -> impl Iterator<Item = (Holder, Option<Axis>, u32)> + '_ {
        self.steps.iter().map(move |step| {
            let count = match step.count {
                Count::Fixed(count) => count,
                Count::Width => width,
            };
            (step.holder, step.axis, count)
        })
    }

    /// The size of the fragment's matrix along `axis`, in elements; `u32::MAX` where it would be
    /// larger.
    #[must_use]
    pub fn extent(&self, axis: Axis, width: u32) -> u32 {
        self.deal(width)
            .filter(|&(_, dealt, _)| dealt == Some(axis))
            .fold(1, |size: u32, (_, _, count)| size.saturating_mul(count))
    }

    /// The fragment as a map from (register, lane) to the dimensions that `dim_of` names.
    ///
    /// # Errors
    /// When `width` is not a power of two, or `dim_of` gives one name to two indices in a way that
    /// does not fit.
    pub fn layout(
        &self,
        width: u32,
        dim_of: impl Fn(Axis) -> Dim,
    ) -> Result<LinearLayout, LayoutError> {
        let mut layout =
            LinearLayout::identity_1d(1, Dim::REGISTER, dim_of(self.first_axis()))?.product(
                &LinearLayout::identity_1d(1, Dim::LANE, dim_of(self.first_axis()))?,
            )?;
        for (holder, axis, count) in self.deal(width) {
            let dim = dim_of(axis.unwrap_or(self.first_axis()));
            let step = match axis {
                Some(_) => LinearLayout::identity_1d(count, holder.dim(), dim)?,
                None => LinearLayout::zeros_1d(count, holder.dim(), dim, 1)?,
            };
            layout = layout.product(&step)?;
        }
        Ok(layout)
    }

    fn first_axis(&self) -> Axis {
        self.steps
            .iter()
            .find_map(|step| step.axis)
            .unwrap_or(Axis::M)
    }
}

/// A step over registers, for the tables.
const fn registers(count: u32, axis: Axis) -> Step {
    Step {
        holder: Holder::Register,
        axis: Some(axis),
        count: Count::Fixed(count),
    }
}

/// A step over lanes, for the tables.
const fn lanes(count: u32, axis: Axis) -> Step {
    Step {
        holder: Holder::Lane,
        axis: Some(axis),
        count: Count::Fixed(count),
    }
}

/// The elements along k that one lane holds together.
const WIDTH: Step = Step {
    holder: Holder::Register,
    axis: Some(Axis::K),
    count: Count::Width,
};

/// Lanes that hold copies of what the lanes before them hold.
const fn copies(count: u32) -> Step {
    Step {
        holder: Holder::Lane,
        axis: None,
        count: Count::Fixed(count),
    }
}

#[cfg(test)]
pub(crate) mod formula {
    //! Compares a deal with a manual's closed formula, element by element.

    use super::{Axis, Fragment};
    use llopt_layout::Dim;

    /// `formula(lane, register)` must give (first index, second index), where the first index is m
    /// for the accumulator and the first operand, and k for the second.
    pub(crate) fn check(
        fragment: &Fragment,
        width: u32,
        axes: [Axis; 2],
        formula: impl Fn(u32, u32) -> (u32, u32),
    ) {
        let dim_of = |axis| Dim::tensor(usize::from(axis != axes[0]));
        let layout = fragment.layout(width, dim_of).expect(fragment.name);
        for lane in 0..layout.in_dim_size(Dim::LANE) as u32 {
            for register in 0..layout.in_dim_size(Dim::REGISTER) as u32 {
                let place = [(Dim::REGISTER, register), (Dim::LANE, lane)];
                let element = layout.apply(&place).expect(fragment.name);
                let at = |dim| element.iter().find(|&&(d, _)| d == dim).map(|&(_, i)| i);
                let found = (
                    at(Dim::tensor(0)).unwrap_or(0),
                    at(Dim::tensor(1)).unwrap_or(0),
                );
                assert_eq!(
                    found,
                    formula(lane, register),
                    "{}: lane {lane}, register {register}",
                    fragment.name
                );
            }
        }
    }
}
