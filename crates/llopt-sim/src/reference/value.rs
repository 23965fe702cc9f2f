//! Tensors, and arrays of shared memory with views.

use std::rc::Rc;

use llopt_dialects::tables::types::{MemDesc, Pointer};
use llopt_mlir::ir::{FloatKind, OperationExt, TypeExt};
use melior::ir::{OperationRef, Type};

use crate::machine::row::{Real, mask, sext};
use crate::numbers::float::{E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, Format};

use super::failure::{Interpreted, unknown};

/// Type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// An integer of that many bits.
    Int(u32),
    Real(Real),
    /// A format of eight bits, which has conversions only.
    Small(Format),
    /// An address; the size of its pointee, in bytes.
    Pointer(u32),
}

impl Element {
    /// The element type of a scalar type.
    pub(super) fn of(ty: Type<'_>) -> Option<Self> {
        if let Some(pointer) = Pointer::of(ty) {
            let bits = Self::of(pointer.pointee()).map_or(8, Self::bits);
            return Some(Self::Pointer(bits.div_ceil(8)));
        }
        if let Some(kind) = ty.float_kind() {
            return Some(match kind {
                FloatKind::F16 => Self::Real(Real::F16),
                FloatKind::BF16 => Self::Real(Real::BF16),
                FloatKind::F32 => Self::Real(Real::F32),
                FloatKind::F64 => Self::Real(Real::F64),
                FloatKind::F8E5M2 => Self::Small(E5M2),
                FloatKind::F8E4M3FN => Self::Small(E4M3),
                FloatKind::F8E5M2FNUZ => Self::Small(E5M2_FNUZ),
                FloatKind::F8E4M3FNUZ => Self::Small(E4M3_FNUZ),
                _ => return None,
            });
        }
        ty.bit_width().map(Self::Int)
    }

    /// The element type of a tensor's type, or of a scalar's.
    pub(super) fn of_tensor(ty: Type<'_>) -> Option<Self> {
        match MemDesc::of(ty) {
            Some(memory) => Self::of(memory.element()),
            None => Self::of(ty.element_or_self()),
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Int(bits) => bits,
            Self::Real(real) => real.bits(),
            Self::Small(format) => format.bits(),
            Self::Pointer(_) => 64,
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub(super) fn mask(self) -> u64 {
        mask(self.bits())
    }

    /// The value of a floating-point element.
    pub(super) fn decode(self, bits: u64) -> Option<f64> {
        match self {
            Self::Real(real) => Some(real.decode(bits)),
            Self::Small(format) => Some(format.decode(bits)),
            _ => None,
        }
    }
}

/// The type of the elements that an op makes.
pub(super) fn element_of(op: OperationRef<'_, '_>) -> Interpreted<Element> {
    match op.result_types().next().and_then(Element::of_tensor) {
        Some(element) => Ok(element),
        None => unknown(format!("the type of the result of {}", op.name_str())),
    }
}

/// A tensor; a scalar has no dimensions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) element: Element,
    /// Bits of the elements, row-major.
    pub(super) data: Vec<u64>,
    /// The bounds ([`super::bound`]) of the elements; empty if all are zero.
    pub(super) bound: Vec<f64>,
}

/// One element of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) bits: u64,
    pub(super) bound: f64,
}

impl From<u64> for Entry {
    fn from(bits: u64) -> Self {
        Self { bits, bound: 0.0 }
    }
}

/// An array in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) data: Vec<Entry>,
    /// Whether it has been deallocated.
    pub(super) freed: bool,
}

/// A view of an array: the position of each coordinate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub(super) array: usize,
    pub(super) element: Element,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

/// A tensor in global memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Descriptor {
    pub(super) base: u64,
    /// Extents in elements.
    pub(super) shape: Vec<i64>,
    /// Strides in bytes, one for each dimension.
    pub(super) strides: Vec<i64>,
    /// Whether elements outside read as NaN.
    pub(super) nan: bool,
}

impl Descriptor {
    /// The address of an element; `None` outside of the tensor in a checked dimension.
    pub(super) fn address(&self, at: &[i64], unchecked: &[usize]) -> Option<u64> {
        let inside = at
            .iter()
            .zip(&self.shape)
            .enumerate()
            .all(|(dim, (c, extent))| unchecked.contains(&dim) || (0..*extent).contains(c));
        let offset: i64 = at.iter().zip(&self.strides).map(|(c, s)| c * s).sum();
        inside.then(|| self.base.wrapping_add(offset as u64))
    }

    /// The value that an element outside reads as.
    pub(super) fn outside(&self, element: Element) -> u64 {
        match element {
            Element::Real(real) if self.nan => real.encode(f64::NAN),
            _ => 0,
        }
    }
}

/// The result of an operation.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Tensor(Tensor),
    View(View),
    /// A tensor in global memory.
    Descriptor(Rc<Descriptor>),
    /// A pointer to a tile: a tensor in memory and the start of the tile.
    Tile(Rc<Descriptor>, Vec<i64>),
    /// A token of asynchronous operations, all of which complete at once.
    Token,
}

impl Value {
    /// Its size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Tensor(tensor) => 8 * (tensor.data.len() + tensor.bound.len()) as u64,
            Self::View(_) | Self::Descriptor(_) | Self::Tile(..) | Self::Token => 0,
        }
    }
}

/// Number of elements of a shape.
pub(super) fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Coordinates of the element at a row-major position.
pub(super) fn coordinates(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut result = vec![0; shape.len()];
    for (coordinate, &extent) in result.iter_mut().zip(shape).rev() {
        *coordinate = position % extent;
        position /= extent;
    }
    result
}

/// Row-major position of coordinates.
pub(super) fn position(coordinates: &[usize], shape: &[usize]) -> usize {
    coordinates
        .iter()
        .zip(shape)
        .fold(0, |at, (&c, &extent)| at * extent + c)
}

/// Row-major strides of a shape.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut result = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        result[i - 1] = result[i] * shape[i];
    }
    result
}

impl Tensor {
    /// A tensor that is equal in compiled code bit for bit.
    pub(super) fn new(shape: Vec<usize>, element: Element, data: Vec<u64>) -> Self {
        Self {
            shape,
            element,
            data,
            bound: Vec::new(),
        }
    }

    pub(super) fn scalar(element: Element, bits: u64) -> Self {
        Self::new(Vec::new(), element, vec![bits])
    }

    /// A tensor of entries.
    pub(super) fn from_entries(
        shape: Vec<usize>,
        element: Element,
        entries: impl Iterator<Item = Entry>,
    ) -> Self {
        let (data, mut bound): (Vec<u64>, Vec<f64>) = entries.map(|e| (e.bits, e.bound)).unzip();
        if bound.iter().all(|&b| b == 0.0) {
            bound.clear();
        }
        Self {
            shape,
            element,
            data,
            bound,
        }
    }

    /// A tensor whose element at each coordinate is computed from it.
    pub(super) fn generate<E: Into<Entry>>(
        shape: &[usize],
        element: Element,
        f: impl Fn(&[usize]) -> E,
    ) -> Self {
        let entries = (0..count(shape)).map(|at| f(&coordinates(at, shape)).into());
        Self::from_entries(shape.to_vec(), element, entries)
    }

    /// The element at a row-major position.
    pub(super) fn entry(&self, position: usize) -> Entry {
        Entry {
            bits: self.data[position],
            bound: self.bound_at(position),
        }
    }

    /// The bound of the element at a row-major position.
    pub(super) fn bound_at(&self, position: usize) -> f64 {
        self.bound.get(position).copied().unwrap_or(0.0)
    }

    /// The element at a coordinate.
    pub(super) fn at(&self, coordinates: &[usize]) -> Entry {
        self.entry(position(coordinates, &self.shape))
    }

    /// The only element.
    pub(super) fn only(&self) -> Interpreted<u64> {
        match self.data[..] {
            [bits] => Ok(bits),
            _ => unknown("a tensor where a number is needed"),
        }
    }

    /// The only element as a signed number.
    pub(super) fn signed(&self) -> Interpreted<i64> {
        Ok(sext(self.only()?, self.element.bits().min(64)))
    }

    /// All elements with coordinate `index` along `axis`, without that axis.
    pub(super) fn slice(&self, axis: usize, index: usize) -> Self {
        let mut shape = self.shape.clone();
        shape.remove(axis);
        Self::generate(&shape, self.element, |c| {
            let mut full = c.to_vec();
            full.insert(axis, index);
            self.at(&full)
        })
    }

    /// Replaces such a slice.
    pub(super) fn set_slice(&mut self, axis: usize, index: usize, slice: &Self) {
        if !slice.bound.is_empty() && self.bound.is_empty() {
            self.bound = vec![0.0; self.data.len()];
        }
        for at in 0..slice.data.len() {
            let mut full = coordinates(at, &slice.shape);
            full.insert(axis, index);
            let target = position(&full, &self.shape);
            self.data[target] = slice.data[at];
            if let Some(bound) = self.bound.get_mut(target) {
                *bound = slice.bound_at(at);
            }
        }
    }
}

impl View {
    /// Position in the array of the element at a coordinate.
    pub(super) fn place(&self, coordinates: &[usize]) -> usize {
        self.offset
            + coordinates
                .iter()
                .zip(&self.strides)
                .map(|(c, s)| c * s)
                .sum::<usize>()
    }
}

/// Extents of a tensor or memory descriptor type.
pub(super) fn shape_of(ty: Type<'_>) -> Vec<usize> {
    let extents = match MemDesc::of(ty) {
        Some(memory) => memory.shape(),
        None => {
            llopt_dialects::tables::types::RankedTensor::of(ty).map_or_else(Vec::new, |t| t.shape())
        }
    };
    extents
        .into_iter()
        .map(|e| usize::try_from(e).unwrap_or(0))
        .collect()
}
