//! Checks written layouts: each thread must hold the elements that it computes with.
//!
//! # What is checked
//!
//! The layout of a value `v` says which element is where: `H(v)` maps places (register, lane, warp, block) to
//! elements, and is linear over F2. The semantics of an op determine which elements of its operands a result needs:
//! the element `x` of the result needs the element `f(x)` of the operand, for a map `f` that follows from the op
//! alone. Only conversions and ops that are declared to do so move elements between threads; therefore in every
//! thread `t`
//!
//! ```text
//! { f(H(result)(r, t)) : all registers r }  is part of  { H(operand)(r, t) : all registers r }
//! ```
//!
//! `f` and `H` are linear, so it is enough to check bases. Let `R` be the span of what the registers of the operand
//! add. Then each register of the result must add, after `f`, something in `R`; and each lane, warp and block must
//! add the same on both sides, up to something in `R`.
//!
//! *Worked example.* `tt.trans` of 2x4 to 4x2 has `f(i, j) = (j, i)`. If lane bit 0 adds (0, 1) to the operand, the
//! same bit has to add (1, 0) to the result. Were it (0, 1), lane 1 would need an element with another row than it has.
//!
//! For a reduction the condition is reversed: the element of the result must be where the elements that it combines
//! are, in at least one register, so the operand's side is compared without the axis. For some ops a constant is
//! added to `f`: the second half of a split is one step along the last axis, which therefore must be in `R`.
//!
//! Where an op computes register by register, there is a stronger condition: all its tensors of one shape have one
//! layout, registers included. Where control flow passes a tensor on, its type does not change. And every layout has
//! as many lanes, warps and blocks as run the op.
//!
//! # Independence
//!
//! The engine derives layouts by transferring encodings through ops ([`llopt_dialects::layout::transfer`]). Here no
//! encoding is derived from another: maps of coordinates are compared with the layouts that are written.

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{OpFacts, ScratchUse, Transfer};
use llopt_dialects::tables::module as launch;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::ReshapeOp;
use llopt_layout::f2::Echelon;
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt, Walk};
use llopt_mlir::pass::{PassOption, PassSpec};
use melior::ir::{OperationRef, Value, ValueLike};

use crate::flow::{self, Carry, Symbols};

/// Checks that layouts fit the semantics of ops.
pub static VERIFY: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    options: &[PassOption::flag(
        REGROUPING,
        "let ops regroup elements across threads, as code can: those who wrote the layouts may want it",
    )],
    ..PassSpec::new(
        "verify-layouts",
        "check that each thread holds the elements that it computes with",
        |module, run| {
            verify(module, run.flag(REGROUPING)).map_err(|found| {
                Complaint::from(Complaint::new(found.problem).report_on(found.operation))
            })
        },
    )
};

/// The option that lets ops regroup elements across threads.
const REGROUPING: &str = "regrouping";

/// What is wrong with the layouts of an op.
#[derive(Clone, Debug)]
pub struct Misplaced<'c, 'a> {
    /// The op.
    pub operation: OperationRef<'c, 'a>,
    /// What is wrong, to be read after its name.
    pub problem: String,
}

/// The hardware dimensions that say which thread it is.
const THREADS: [Dim; 3] = [Dim::LANE, Dim::WARP, Dim::BLOCK];

/// Checks the layouts of a module. `may_regroup` says whether ops whose code can regroup elements may do so across
/// threads: it costs as much as a conversion, so the layout engine inserts a conversion instead.
///
/// # Errors
/// The first op, in the order of the text, whose layouts do not fit what it computes.
pub fn verify<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    may_regroup: bool,
) -> Result<(), Misplaced<'c, 'a>> {
    let symbols = Symbols::of(module);
    let mut operations = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| operations.push(operation));
    for operation in operations {
        verify_op(operation, &symbols, may_regroup)
            .map_err(|problem| Misplaced { operation, problem })?;
    }
    Ok(())
}

/// Checks that the threads with a part of a result hold the operand elements that it needs.
fn verify_op<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    symbols: &Symbols<'c, 'a>,
    may_regroup: bool,
) -> Result<(), String> {
    hands_on_alike(operation, symbols)?;
    let operands = tensors(operation.operand_values(), "operand")?;
    let results = tensors(operation.result_values(), "result")?;
    for held in operands.iter().chain(&results) {
        held.fits(operation)?;
    }
    let facts = OpFacts::of(operation);
    let in_any_order = ReshapeOp::of(operation).is_some_and(ReshapeOp::allow_reorder);
    if in_any_order || may_regroup && facts.scratch == ScratchUse::Regrouping {
        return Ok(());
    }
    let axis = || dimensions::axis(operation).unwrap_or(0);
    match facts.layouts {
        // Nothing is known, or the op takes its operands in any layout.
        Transfer::Unknown | Transfer::Histogram => Ok(()),
        Transfer::Same => {
            let all: Vec<&Held> = operands.iter().chain(&results).collect();
            alike(&all)?;
            needs_all(&results, &operands, |operand, result| {
                // If the operand has one element along an axis, all coordinates refer to it.
                let is_spread = operand.shape.iter().zip(&result.shape);
                let extents: Option<Vec<u32>> = is_spread
                    .map(|(&one, &other)| (one == 1 || one == other).then_some(one))
                    .collect();
                extents.map(|extents| Map::linear(move |at| masked(at, &extents)))
            })
        }
        Transfer::ExpandDims => {
            let axis = axis();
            needs_all(&results, &operands, |_, _| {
                Some(Map::linear(move |at| without(at, axis)))
            })
        }
        Transfer::Transpose => {
            let order = operation.attr("order").and_then(AttributeExt::as_integers);
            let order = order.unwrap_or_default();
            needs_all(&results, &operands, |_, _| {
                let order = order.clone();
                Some(Map::linear(move |at| reordered(at, &order)))
            })
        }
        Transfer::Reshape => needs_all(&results, &operands, |operand, result| {
            let (from, to) = (operand.shape.clone(), result.shape.clone());
            Some(Map::linear(move |at| unpacked(packed(at, &to), &from)))
        }),
        Transfer::Join => {
            alike(&operands.iter().collect::<Vec<_>>())?;
            needs_all(&results, &operands, |_, result| {
                let last = result.shape.len().saturating_sub(1);
                Some(Map::linear(move |at| without(at, last)))
            })
        }
        Transfer::Split => {
            alike(&results.iter().collect::<Vec<_>>())?;
            let mut half = 0;
            needs_all(&results, &operands, |_, _| {
                let this = half;
                half += 1;
                Some(Map {
                    linear: Box::new(|at| at.iter().copied().chain([0]).collect()),
                    constant: this,
                })
            })
        }
        Transfer::Unpack => {
            let axis = axis();
            needs_all(&results, &operands, |_, _| {
                Some(Map::linear(move |at| {
                    let halved = |(i, &at): (usize, &u32)| if i == axis { at >> 1 } else { at };
                    at.iter().enumerate().map(halved).collect()
                }))
            })
        }
        Transfer::Reduce => {
            alike(&operands.iter().collect::<Vec<_>>())?;
            alike(&results.iter().collect::<Vec<_>>())?;
            let (Some(operand), Some(result)) = (operands.first(), results.first()) else {
                return Ok(());
            };
            let axis = axis();
            let held = operand.projected(&result.shape, |at| without(at, axis));
            let needed = result.projected(&result.shape, <[u32]>::to_vec);
            held.has(operand, result, &needed, 0)
        }
        Transfer::Gather => alike(&results.iter().chain(operands.get(1)).collect::<Vec<_>>()),
        // The matrix unit determines the layouts of factors.
        Transfer::Product => alike(&results.iter().chain(operands.get(2)).collect::<Vec<_>>()),
    }
}

/// Values that are passed on keep their type.
fn hands_on_alike<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    symbols: &Symbols<'c, 'a>,
) -> Result<(), String> {
    for edge in flow::step(operation, symbols).edges {
        let (Carry::Value, [source]) = (edge.carry, &edge.sources[..]) else {
            continue;
        };
        if RankedTensor::of(source.r#type()).is_some() && source.r#type() != edge.target.r#type() {
            return Err(format!(
                "hands on operand #{} as a tensor of another type",
                edge.operand
            ));
        }
    }
    Ok(())
}

/// The coordinates in the operand of a transposition: axis `i` of the result is axis `order[i]` of the operand.
fn reordered(at: &[u32], order: &[i64]) -> Vec<u32> {
    let mut from = vec![0; at.len()];
    for (&coordinate, &axis) in at.iter().zip(order) {
        if let Some(place) = usize::try_from(axis).ok().and_then(|a| from.get_mut(a)) {
            *place = coordinate;
        }
    }
    from
}

fn tensors<'c, 'a>(
    values: impl Iterator<Item = Value<'c, 'a>>,
    kind: &str,
) -> Result<Vec<Held>, String> {
    let held = values
        .enumerate()
        .map(|(index, value)| Held::of(value, &format!("{kind} #{index}")));
    held.filter_map(Result::transpose).collect()
}

/// A tensor of an op, with the places of its elements.
#[derive(Clone)]
struct Held {
    /// Its name among the op's operands and results.
    name: String,
    shape: Vec<u32>,
    layout: LinearLayout,
}

impl Held {
    /// `None` for a value that is not a tensor.
    fn of(value: Value<'_, '_>, name: &str) -> Result<Option<Self>, String> {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            return Ok(None);
        };
        let encoding = tensor
            .encoding()
            .ok_or_else(|| format!("has no layout for {name}"))?;
        let encoding = Encoding::from_attribute(encoding)
            .map_err(|error| format!("has a layout for {name} that is none: {error}"))?;
        let extents: Vec<u64> = tensor
            .shape()
            .iter()
            .map(|&extent| u64::try_from(extent).unwrap_or(0))
            .collect();
        let layout = encoding
            .linear_layout(&extents)
            .map_err(|error| format!("has a layout for {name} that is none: {error}"))?;
        Ok(Some(Self {
            name: name.to_owned(),
            shape: extents.iter().map(|&extent| extent as u32).collect(),
            layout,
        }))
    }

    /// Whether the layout has as many lanes, warps and blocks as run the op.
    fn fits(&self, operation: OperationRef<'_, '_>) -> Result<(), String> {
        let numbers = [
            Some(launch::threads_per_warp(operation)),
            launch::num_warps(operation),
            Some(launch::num_ctas(operation)),
        ];
        for (dim, number) in THREADS.into_iter().zip(numbers) {
            let has = self.layout.in_dim_size(dim);
            if let Some(number) = number.filter(|&number| u64::from(number) != has) {
                let name = &self.name;
                return Err(format!(
                    "has a layout of {name} for {has} {dim}s where {number} run it"
                ));
            }
        }
        Ok(())
    }

    /// What a bit of a place adds to the coordinates of the element.
    fn basis(&self, dim: Dim, bit: u32) -> Vec<u32> {
        let axes = 0..self.shape.len();
        if bit >= self.layout.in_dim_size_log2(dim) {
            return vec![0; axes.end];
        }
        axes.map(|axis| self.layout.basis_entry(dim, bit, Dim::tensor(axis)))
            .collect()
    }

    /// What the bits of places add to the element, after a map of coordinates to those of a tensor of this shape, as
    /// numbers of its elements.
    fn projected(&self, shape: &[u32], map: impl Fn(&[u32]) -> Vec<u32>) -> Bits {
        let of = |dim: Dim| -> Vec<u32> {
            let bits = 0..self.layout.in_dim_size_log2(dim);
            bits.map(|bit| packed(&map(&self.basis(dim, bit)), shape))
                .collect()
        };
        Bits {
            registers: of(Dim::REGISTER),
            threads: THREADS.map(of),
        }
    }
}

/// What each bit of a place adds to the number of an element.
struct Bits {
    registers: Vec<u32>,
    threads: [Vec<u32>; 3],
}

impl Bits {
    /// Whether each thread has here the elements that it needs, and those at a constant distance.
    fn has(&self, of: &Held, by: &Held, needed: &Self, constant: u32) -> Result<(), String> {
        let span = Echelon::of(&self.registers);
        let missing = |place: String| {
            Err(format!(
                "needs elements of {} for {} that other threads hold: those of {place}",
                of.name, by.name
            ))
        };
        if !span.contains(constant) {
            return missing("the other half".to_owned());
        }
        for (bit, &element) in needed.registers.iter().enumerate() {
            if !span.contains(element) {
                return missing(format!("register {}", 1u64 << bit));
            }
        }
        for (dim, (held, needed)) in THREADS.iter().zip(self.threads.iter().zip(&needed.threads)) {
            for bit in 0..held.len().max(needed.len()) {
                let at = |bits: &[u32]| bits.get(bit).copied().unwrap_or(0);
                if !span.contains(at(held) ^ at(needed)) {
                    return missing(format!("{dim} {}", 1u64 << bit));
                }
            }
        }
        Ok(())
    }
}

/// A map from coordinates to coordinates.
type Coordinates = dyn Fn(&[u32]) -> Vec<u32>;

/// The map from an element of a result to the element of an operand that it needs.
struct Map {
    /// The linear part.
    linear: Box<Coordinates>,
    /// The constant part, as the number of an element.
    constant: u32,
}

impl Map {
    fn linear(map: impl Fn(&[u32]) -> Vec<u32> + 'static) -> Self {
        Self {
            linear: Box::new(map),
            constant: 0,
        }
    }
}

/// Checks that each operand has the elements that each result needs, by maps; nothing is needed where there is no
/// map.
fn needs_all(
    results: &[Held],
    operands: &[Held],
    mut map: impl FnMut(&Held, &Held) -> Option<Map>,
) -> Result<(), String> {
    for result in results {
        for operand in operands {
            let Some(map) = map(operand, result) else {
                continue;
            };
            let needed = result.projected(&operand.shape, &map.linear);
            let held = operand.projected(&operand.shape, <[u32]>::to_vec);
            held.has(operand, result, &needed, map.constant)?;
        }
    }
    Ok(())
}

/// Tensors of one shape have one layout, registers included.
fn alike(tensors: &[&Held]) -> Result<(), String> {
    for (index, one) in tensors.iter().enumerate() {
        let other = tensors[..index]
            .iter()
            .find(|other| other.shape == one.shape);
        if let Some(other) = other.filter(|other| other.layout != one.layout) {
            return Err(format!(
                "computes register by register on {} and {}, which have different layouts",
                other.name, one.name
            ));
        }
    }
    Ok(())
}

/// The number of an element in row-major order. On powers of two it is linear.
fn packed(at: &[u32], shape: &[u32]) -> u32 {
    let axes = at.iter().zip(shape);
    axes.fold(0, |number, (&at, &extent)| {
        number.wrapping_mul(extent).wrapping_add(at)
    })
}

/// The element with this number in row-major order.
fn unpacked(mut number: u32, shape: &[u32]) -> Vec<u32> {
    let mut at: Vec<u32> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let coordinate = number % extent.max(1);
            number /= extent.max(1);
            coordinate
        })
        .collect();
    at.reverse();
    at
}

fn without(at: &[u32], axis: usize) -> Vec<u32> {
    let kept = at.iter().enumerate().filter(|(i, _)| *i != axis);
    kept.map(|(_, &coordinate)| coordinate).collect()
}

/// Coordinates within extents that are powers of two.
fn masked(at: &[u32], extents: &[u32]) -> Vec<u32> {
    at.iter()
        .zip(extents)
        .map(|(&at, &extent)| at & extent.wrapping_sub(1))
        .collect()
}
