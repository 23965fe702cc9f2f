//! A load or a store through pointers as a tile of a tensor in memory.
//!
//! The offset of an element is `start + Σ stride[d]·index[d] + step·progress`. In the tensor the element has the
//! coordinate `x[d] = start[d] + index[d] + step[d]·progress` along dimension `d`, where
//! `offset = Σ stride[d]·x[d]`: start and step of the offset are divided among the dimensions by the strides, and what
//! is left belongs to the dimension with stride one. A bound of a mask, `index[d] + step[d]·progress < bound`, is a
//! bound of the coordinate, the extent of the tensor along the dimension.
//!
//! Where an index is a remainder, `x[d]` is the number of which the remainder is taken, and the modulus is the extent:
//! elements with `x[d] < extent` are those that the load reads, but for the others it begins again at the first row,
//! and a copy fills zeros in. So there must be no others, or nobody may see them ([`super::observed`]). A store has no
//! such elements: it must not wrap around.

use llopt_dialects::arith::{AndIOp, CmpIOp, CmpIPredicate, ConstantOp};
use llopt_dialects::layout::tensor_descriptor::DescriptorFields;
use llopt_dialects::tables::types::{Pointer, RankedTensor, TensorDesc};
use llopt_dialects::tt;
use llopt_mlir::ir::{AttributeExt, ValueExt};
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::conditions::{MOST, TOO_LARGE, is_short};
use super::exact::{Exact, Variable};
use super::reading::Reading;
use crate::axis::AxisAnalysis;

/// Addresses and strides of a tensor are multiples of so many bytes (CUDA driver API, `cuTensorMapEncodeTiled`).
const ALIGNMENT: u64 = 16;

/// A dimension of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dim {
    /// The coordinate of the first element in the first iteration.
    pub(super) start: Exact,
    /// By how much the coordinates grow when the induction variable grows by one.
    pub(super) step: i64,
    /// Elements from one coordinate to the next.
    pub(super) stride: Exact,
    /// The coordinates in the tensor are below it.
    pub(super) extent: Exact,
    /// Elements of the tile.
    pub(super) size: i64,
    /// Whether the load begins again at the first coordinate after the last one.
    pub(super) wraps: bool,
}

/// A load or a store whose elements are a tile of a tensor.
#[derive(Clone)]
pub(super) struct Tile<'c, 'a> {
    pub(super) access: OperationRef<'c, 'a>,
    /// The type of what is loaded or stored.
    pub(super) tensor: RankedTensor<'c>,
    /// The address of the tensor.
    pub(super) base: Value<'c, 'a>,
    /// The dimensions of the loaded tensor.
    pub(super) dims: Vec<Dim>,
    /// The dimensions from the outermost one to the contiguous one.
    pub(super) order: Vec<usize>,
}

/// An access: the op, what is loaded or stored, the addresses and the mask.
type Access<'c, 'a> = (
    OperationRef<'c, 'a>,
    RankedTensor<'c>,
    Value<'c, 'a>,
    Option<Value<'c, 'a>>,
);

/// A tile of the offsets alone, while it is being found.
struct Partial {
    /// The variable that is the index along each dimension.
    places: Vec<Variable>,
    strides: Vec<Exact>,
    starts: Vec<Exact>,
    steps: Vec<i64>,
    extents: Vec<Option<Exact>>,
    order: Vec<usize>,
}

fn or_too_large<T>(found: Option<T>) -> Result<T, String> {
    found.ok_or_else(|| TOO_LARGE.to_owned())
}

impl<'c: 'a, 'a> Tile<'c, 'a> {
    /// Finds the tile that a load reads, and adds the conditions under which it does.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn of(
        load: tt::LoadOp<'c, 'a>,
        reading: &mut Reading<'c, 'a>,
        facts: &AxisAnalysis,
    ) -> Result<Self, String> {
        let is_zero = |value: Value<'c, 'a>| {
            let constant = ConstantOp::defining(value).and_then(ConstantOp::value);
            constant.and_then(AttributeExt::splat_bits) == Some(0)
        };
        if load.mask().is_some() && !load.other().is_none_or(is_zero) {
            return Err("what it reads out of bounds is not zero".to_owned());
        }
        let tensor = RankedTensor::of(load.result().r#type()).ok_or("it loads a number")?;
        let access = (load.operation(), tensor, load.ptr(), load.mask());
        Self::of_access(access, reading, facts)
    }

    /// The same for a store, whose tile must have its dimensions in the order of the tensor.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn of_store(
        store: tt::StoreOp<'c, 'a>,
        reading: &mut Reading<'c, 'a>,
        facts: &AxisAnalysis,
    ) -> Result<Self, String> {
        let tensor = RankedTensor::of(store.value().r#type()).ok_or("it stores a number")?;
        let access = (store.operation(), tensor, store.ptr(), store.mask());
        let tile = Self::of_access(access, reading, facts)?;
        if tile.dims.iter().any(|dim| dim.wraps || dim.step != 0) {
            return Err("it does not store one tile".to_owned());
        }
        if !tile.order.iter().copied().eq(0..tile.order.len()) {
            return Err("its rows are not contiguous".to_owned());
        }
        Ok(tile)
    }

    fn of_access(
        (access, tensor, pointers, mask): Access<'c, 'a>,
        reading: &mut Reading<'c, 'a>,
        facts: &AxisAnalysis,
    ) -> Result<Self, String> {
        let addresses = reading.addresses(pointers)?;
        let mut partial = Partial::of(&addresses.offset, tensor.rank(), reading)?;
        if let Some(mask) = mask {
            for positive in positive_where(mask, reading)? {
                partial.bound(&positive, reading)?;
            }
        }
        let tile = Self {
            access,
            tensor,
            base: addresses.base,
            dims: partial.dims(&tensor.shape(), reading),
            order: partial.order,
        };
        tile.check(reading, facts)?;
        Ok(tile)
    }

    /// The first of so many equal parts of a store's tile along the contiguous dimension. Its access remains that of the tile.
    pub(super) fn part(&self, parts: i64) -> Self {
        let mut part = self.clone();
        let mut shape = self.tensor.shape();
        if let (Some(dim), Some(extent)) = (part.dims.last_mut(), shape.last_mut()) {
            dim.size /= parts;
            *extent /= parts;
        }
        part.tensor = RankedTensor::of(RankedTensor::get(&shape, self.tensor.element(), None))
            .expect("the type of a tensor");
        part
    }

    /// The type of the block that a copy moves.
    pub(super) fn block(&self) -> Type<'c> {
        let shape = self.tensor.shape();
        let shape: Vec<i64> = self.order.iter().map(|&dim| shape[dim]).collect();
        RankedTensor::get(&shape, self.tensor.element(), None)
    }

    /// What the copy unit requires of the tensor.
    fn check(&self, reading: &mut Reading<'c, 'a>, facts: &AxisAnalysis) -> Result<(), String> {
        let descriptor = TensorDesc::of(TensorDesc::get(self.block()));
        let descriptor = descriptor.ok_or("there are no descriptors of its type")?;
        let fields = DescriptorFields::of(descriptor)?;
        let bytes = u64::from(fields.element_bytes);
        let of_base = facts.facts(self.base).divisor().get();
        if !of_base.is_multiple_of(ALIGNMENT) {
            return Err(format!(
                "its base address is not known to be a multiple of {ALIGNMENT} bytes"
            ));
        }
        let pointee = Pointer::of(self.base.r#type()).map(Pointer::pointee);
        if pointee != Some(self.tensor.element()) {
            return Err("its pointers are to elements of another type".to_owned());
        }
        for &dim in &self.order[..self.order.len() - 1] {
            let stride = &self.dims[dim].stride;
            let terms = stride.terms().map(|(by, factors)| {
                let of_scalar = |variable: &Variable| match *variable {
                    Variable::Scalar(number) => {
                        facts.facts(reading.scalar_of(number)).divisor().get()
                    }
                    _ => 1,
                };
                let factors = factors.iter().map(of_scalar);
                factors.fold(1u64 << by.trailing_zeros().min(32), u64::saturating_mul)
            });
            // All are powers of two.
            let divisor = terms.min().unwrap_or(1).saturating_mul(bytes);
            if divisor < ALIGNMENT {
                return Err(format!(
                    "its stride is not known to be a multiple of {ALIGNMENT} bytes"
                ));
            }
        }
        let last = reading.last()?;
        let conditions = &mut reading.conditions;
        for dim in &self.dims {
            conditions.at_least(&dim.start, 0)?;
            let far = last.times(&Exact::constant(dim.step));
            let far = far.and_then(|far| far.plus(&dim.start));
            let far = far.and_then(|far| far.plus(&Exact::constant(dim.size - 1)));
            conditions.at_most(&or_too_large(far)?, MOST)?;
            conditions.at_least(&dim.extent, 1)?;
            conditions.at_most(&dim.extent, MOST)?;
            conditions.at_least(&dim.stride, 1)?;
            conditions.at_most(&dim.stride, MOST)?;
        }
        Ok(())
    }
}

impl Partial {
    fn of(offset: &Exact, rank: usize, reading: &Reading<'_, '_>) -> Result<Self, String> {
        let mut places = vec![None; rank];
        let mut strides = vec![Exact::default(); rank];
        let (mut start, mut step) = (Exact::default(), Exact::default());
        for (of, by) in offset.by_places() {
            let dim = match of[..] {
                [] => {
                    start = by;
                    continue;
                }
                [Variable::Progress] => {
                    step = by;
                    continue;
                }
                [Variable::Index(dim)] => dim,
                [Variable::Remainder(number)] => reading.remainder_of(number).dim,
                _ => return Err("its addresses are no sums of multiples of indices".to_owned()),
            };
            let place = places
                .get_mut(dim)
                .ok_or("its tile has no such dimension")?;
            if place.replace(of[0]).is_some() {
                return Err("two indices along one dimension determine its addresses".to_owned());
            }
            strides[dim] = by;
        }
        let places: Option<Vec<Variable>> = places.into_iter().collect();
        let places = places.ok_or("its addresses do not differ along one dimension")?;
        let one = Exact::constant(1);
        let contiguous = strides.iter().position(|stride| *stride == one);
        let contiguous = contiguous.ok_or("no dimension is known to have stride one")?;
        let mut outer: Vec<usize> = (0..rank).filter(|&dim| dim != contiguous).collect();
        if outer.iter().any(|&dim| strides[dim] == one) || outer.is_empty() {
            return Err("it has no rows".to_owned());
        }
        // Multiples of a large stride are multiples of a small one, too.
        outer.sort_by_key(|&dim| {
            std::cmp::Reverse(strides[dim].as_constant().map_or(i64::MAX, i64::abs))
        });
        let mut order = outer;
        order.push(contiguous);
        let mut starts = vec![Exact::default(); rank];
        let mut steps = vec![0; rank];
        for &dim in &order {
            let (own, rest) = or_too_large(step.divided(&strides[dim]))?;
            step = rest;
            steps[dim] = own
                .as_constant()
                .filter(|&own| own >= 0)
                .ok_or("its addresses do not move by whole rows or columns")?;
            starts[dim] = match places[dim] {
                Variable::Remainder(number) => reading.remainder_of(number).start.clone(),
                _ => {
                    let (own, rest) = or_too_large(start.divided(&strides[dim]))?;
                    start = rest;
                    own
                }
            };
            if steps[dim] != 0 && matches!(places[dim], Variable::Remainder(_)) {
                return Err("its addresses leave the rows of a remainder".to_owned());
            }
        }
        if [start, step].iter().any(|rest| *rest != Exact::default()) {
            return Err("its addresses have an offset that is no coordinate".to_owned());
        }
        let starts_are_short = starts.iter().all(is_short);
        starts_are_short
            .then_some(Self {
                places,
                strides,
                starts,
                steps,
                extents: vec![None; rank],
                order,
            })
            .ok_or_else(|| TOO_LARGE.to_owned())
    }

    /// Takes over the bound of an index: a polynomial that is positive where an element is read.
    fn bound(&mut self, positive: &Exact, reading: &Reading<'_, '_>) -> Result<(), String> {
        const NO_BOUND: &str = "its mask is no bound of an index";
        let mut groups = positive.by_places();
        let constant = groups.remove(&Vec::new()).unwrap_or_default();
        let progress = groups.remove(&vec![Variable::Progress]);
        let (place, by) = groups.pop_first().ok_or(NO_BOUND)?;
        let (&[place], true) = (&place[..], groups.is_empty()) else {
            return Err(NO_BOUND.to_owned());
        };
        let dim = match place {
            Variable::Index(dim) => dim,
            Variable::Remainder(number) => reading.remainder_of(number).dim,
            Variable::Progress | Variable::Scalar(_) => return Err(NO_BOUND.to_owned()),
        };
        if dim >= self.places.len() {
            return Err(NO_BOUND.to_owned());
        }
        let progress = progress.unwrap_or_default().as_constant().ok_or(NO_BOUND)?;
        let start = &self.starts[dim];
        let of_remainder = matches!(place, Variable::Remainder(_));
        if of_remainder && place != self.places[dim] {
            return Err(NO_BOUND.to_owned());
        }
        match by.as_constant() {
            // Coordinates from zero on: the conditions on starts and steps imply it.
            Some(1) => {
                let coordinate = start.plus(&Exact::constant(1));
                let is_implied = !of_remainder && coordinate.as_ref() == Some(&constant);
                let is_implied = is_implied && progress == self.steps[dim];
                is_implied.then_some(()).ok_or_else(|| NO_BOUND.to_owned())
            }
            Some(-1) if progress == -self.steps[dim] => {
                let extent = match of_remainder {
                    true => constant,
                    false => or_too_large(start.plus(&constant))?,
                };
                let is_other = |known: &Exact| *known != extent;
                if self.extents[dim].as_ref().is_some_and(is_other) {
                    return Err("its mask has two bounds along one dimension".to_owned());
                }
                if let Variable::Remainder(number) = self.places[dim]
                    && reading.remainder_of(number).modulus != extent
                {
                    return Err("its mask has another bound than its remainder".to_owned());
                }
                // Of remainders, all are in bounds: they still wrap.
                if !of_remainder {
                    self.extents[dim] = Some(extent);
                }
                Ok(())
            }
            _ => Err(NO_BOUND.to_owned()),
        }
    }

    fn dims(&self, shape: &[i64], reading: &Reading<'_, '_>) -> Vec<Dim> {
        let dim = |dim: usize| {
            let modulus = match self.places[dim] {
                Variable::Remainder(number) => Some(reading.remainder_of(number).modulus.clone()),
                _ => None,
            };
            let wraps = modulus.is_some() && self.extents[dim].is_none();
            let extent = self.extents[dim].clone().or(modulus);
            Dim {
                start: self.starts[dim].clone(),
                step: self.steps[dim],
                stride: self.strides[dim].clone(),
                // A tensor without bounds extends as far as coordinates do.
                extent: extent.unwrap_or_else(|| Exact::constant(MOST)),
                size: shape[dim],
                wraps,
            }
        };
        (0..shape.len()).map(dim).collect()
    }
}

/// Polynomials that are positive exactly where a mask is true.
pub(super) fn positive_where<'c: 'a, 'a>(
    mask: Value<'c, 'a>,
    reading: &mut Reading<'c, 'a>,
) -> Result<Vec<Exact>, String> {
    const NO_COMPARISON: &str = "its mask is no comparison of indices";
    let made = mask.defining_op().ok_or(NO_COMPARISON)?;
    if let Some(constant) = ConstantOp::of(made) {
        let bits = constant.value().and_then(AttributeExt::splat_bits);
        let is_true = bits.is_some_and(|bits| bits & 1 == 1);
        return is_true
            .then(Vec::new)
            .ok_or_else(|| NO_COMPARISON.to_owned());
    }
    if let Some(both) = AndIOp::of(made) {
        let mut all = positive_where(both.lhs(), reading)?;
        all.extend(positive_where(both.rhs(), reading)?);
        return Ok(all);
    }
    if let Some(source) = reading.moved(mask) {
        let (source, dims) = source?;
        let all = positive_where(source, reading)?;
        return Ok(all
            .iter()
            .map(|positive| reading.with_dims(positive, &dims))
            .collect());
    }
    let compare = CmpIOp::of(made).ok_or(NO_COMPARISON)?;
    let sides = [compare.lhs(), compare.rhs()].map(|side| reading.tensor(side));
    let [low, high] = match (compare.predicate(), sides) {
        (Some(CmpIPredicate::Slt | CmpIPredicate::Sle), [x, y]) => [x?, y?],
        (Some(CmpIPredicate::Sgt | CmpIPredicate::Sge), [x, y]) => [y?, x?],
        _ => return Err(NO_COMPARISON.to_owned()),
    };
    // Numbers of 64 bits were read modulo 2^64.
    if ![&low, &high].into_iter().all(is_short) {
        return Err(TOO_LARGE.to_owned());
    }
    let or_equal = matches!(
        compare.predicate(),
        Some(CmpIPredicate::Sle | CmpIPredicate::Sge)
    );
    let difference = high.minus(&low);
    let positive =
        difference.and_then(|difference| difference.plus(&Exact::constant(i64::from(or_equal))));
    Ok(vec![or_too_large(positive)?])
}
