//! Types of tensors and buffers in the kernels in which an op is proven.

use llopt_dialects::layout::encoding::{self, Encoding, Linear};
use llopt_dialects::tables::types::{MemDesc, Pointer, RankedTensor};
use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use llopt_mlir::ir::TypeExt;
use llopt_target::Target;
use melior::ir::Type;

/// The parts of a tensor's type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) shape: Vec<u64>,
    pub(super) element: Element,
    pub(super) encoding: String,
}

/// The types of an element, in registers and in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) bits: u32,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Real,
    Pointer,
}

impl Element {
    pub(super) fn of(of: Type<'_>) -> Result<Self, String> {
        let name = of.to_string();
        if Pointer::of(of).is_some() {
            return Ok(Self {
                name,
                bits: 64,
                kind: Kind::Pointer,
            });
        }
        let bits = of
            .bit_width()
            .ok_or_else(|| format!("elements of type {name}"))?;
        let kind = if of.float_kind().is_some() {
            Kind::Real
        } else {
            Kind::Integer
        };
        Ok(Self { name, bits, kind })
    }

    pub(super) fn integer(bits: u32) -> Self {
        Self {
            name: format!("i{bits}"),
            bits,
            kind: Kind::Integer,
        }
    }

    /// The integer type that represents it in memory.
    pub(super) fn in_memory(&self) -> String {
        format!("i{}", self.memory_bits())
    }

    pub(super) fn memory_bits(&self) -> u32 {
        self.bits.max(8)
    }
}

impl Tensor {
    pub(super) fn of(of: Type<'_>) -> Result<Self, String> {
        let tensor = RankedTensor::of(of).ok_or_else(|| format!("a value of type {of}"))?;
        let encoding = tensor
            .encoding()
            .ok_or_else(|| "a tensor without a layout".to_owned())?;
        Ok(Self {
            shape: extents(&tensor.shape()),
            element: Element::of(tensor.element())?,
            encoding: encoding.to_string(),
        })
    }

    pub(super) fn text(&self) -> String {
        self.with(&self.element.name)
    }

    pub(super) fn with(&self, element: &str) -> String {
        let extents: String = self.shape.iter().map(|e| format!("{e}x")).collect();
        format!("tensor<{extents}{element}, {}>", self.encoding)
    }

    pub(super) fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The elements of a buffer in row-major order, first over lanes, then warps, then registers. Each block of a
    /// cluster has the elements that the buffer's layout assigns to it: threads do not access another block's memory.
    pub(super) fn plain(
        buffer: Type<'_>,
        target: Target,
        warps: u32,
        blocks: u32,
    ) -> Result<Self, String> {
        let (shape, element) = memory(buffer)?;
        let rank = shape.len();
        let layout = encoding::layout_of(buffer).map_err(|error| error.to_string())?;
        let blocks: Vec<Vec<u32>> = (0..blocks.max(1).ilog2())
            .map(|bit| {
                let basis = layout.basis(Dim::BLOCK, bit);
                basis.map_or_else(|| vec![0; rank], |basis| basis.to_vec())
            })
            .collect();
        let outside = |basis: &Vec<u32>| {
            basis
                .iter()
                .zip(&shape)
                .any(|(at, end)| u64::from(*at) >= *end)
        };
        if blocks
            .iter()
            .any(|basis| basis.len() != rank || outside(basis))
        {
            return Err(
                "blocks of the cluster hold parts of the buffer outside of the view".to_owned(),
            );
        }
        let mut bits = Vec::new();
        for dim in (0..rank).rev() {
            // Threads need not distinguish what blocks distinguish.
            let mut held = Echelon::of(&blocks.iter().map(|basis| basis[dim]).collect::<Vec<_>>());
            for bit in 0..shape[dim].trailing_zeros() {
                if held.insert(1 << bit).is_none() {
                    let mut basis = vec![0; rank];
                    basis[dim] = 1 << bit;
                    bits.push(basis);
                }
            }
        }
        let mut rest = bits.into_iter();
        let mut take = |count: u32| -> Vec<Vec<u32>> {
            let mut taken: Vec<Vec<u32>> = rest.by_ref().take(count as usize).collect();
            taken.resize(count as usize, vec![0; rank]);
            taken
        };
        let (lanes, warps) = (take(target.warp_size().ilog2()), take(warps.max(1).ilog2()));
        let registers: Vec<Vec<u32>> = rest.collect();
        let linear = Linear::from_bases(rank, &registers, &lanes, &warps, &blocks)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            shape,
            element,
            encoding: Encoding::Linear(linear)
                .to_attribute(buffer.ctx())
                .to_string(),
        })
    }
}

pub(super) fn extents(shape: &[i64]) -> Vec<u64> {
    shape.iter().map(|&extent| extent.unsigned_abs()).collect()
}

/// Shape and element of a buffer.
fn memory(of: Type<'_>) -> Result<(Vec<u64>, Element), String> {
    let memory = MemDesc::of(of)
        .filter(|memory| memory.is_shared())
        .ok_or_else(|| format!("a value of type {of}"))?;
    Ok((extents(&memory.shape()), Element::of(memory.element())?))
}
