//! Pairs of four-bit elements that are packed along another axis: `amdg.local_load_packed_tranposed`.
//!
//! In the buffer a byte has two neighbours along the free axis of a product's operand (M or N), in the result two
//! along K. Counted in four-bit elements this is a load of a transposed matrix, and CDNA4 has an instruction for it:
//! each of 16 lanes reads a row of 16 elements, at one K, and receives a column. Its addresses are those of an
//! ordinary access in which the lanes that share a column take the rows, and each reads eight bytes; so the access is
//! planned as such an access.
//!
//! Where the layout or the target does not allow that, each byte of the result takes one half of each of two bytes.

use llopt_dialects::amdg;
use llopt_dialects::tables::types::MemDesc;
use llopt_layout::Dim;
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_plan::shared_access::{self, Buffer};
use llopt_plan::tensor::{PLACES, TensorType};
use melior::ir::ValueLike;

use crate::llvm::emitter::V;
use crate::ops::memory::local::{self, View};
use crate::ops::memory::shared;
use crate::targets::hooks::MatrixAccess;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::storage;
use crate::walk::function::{FunctionLowering, Lowered};

/// log2 of the elements of a row, and of the rows, that are transposed at once.
const TILE: u32 = 4;

/// The bytes of a buffer from which the bytes of a tensor are taken.
struct Repacked<'t> {
    result: &'t TensorType,
    /// The extents of the buffer.
    shape: Vec<u32>,
    /// The axis along which the buffer is packed, and that along which the tensor is.
    outer: usize,
    k: usize,
}

impl Repacked<'_> {
    /// The coordinates of a byte of the tensor, from its row-major number.
    fn coordinates(&self, number: u32) -> Vec<u32> {
        let mut rest = number;
        let mut found: Vec<u32> = self
            .result
            .shape
            .iter()
            .rev()
            .map(|extent| {
                let coordinate = rest & (extent - 1);
                rest >>= extent.trailing_zeros();
                coordinate
            })
            .collect();
        found.reverse();
        found
    }

    /// The row-major number of a byte of the buffer.
    fn number(&self, place: &[u32]) -> u32 {
        place
            .iter()
            .zip(&self.shape)
            .fold(0, |number, (at, extent)| {
                number << extent.trailing_zeros() | at
            })
    }

    /// The number of the byte that has the first half of the one with this number.
    fn first_half(&self, number: u32) -> u32 {
        let mut place = self.coordinates(number);
        place[self.outer] >>= 1;
        place[self.k] <<= 1;
        self.number(&place)
    }

    /// The number of the byte whose coordinates are zero except along one axis.
    fn along(&self, axis: usize, at: u32) -> u32 {
        let mut place = vec![0; self.shape.len()];
        place[axis] = at;
        self.number(&place)
    }

    fn bases(&self, dim: Dim) -> Vec<u32> {
        self.result.layout().flat_bases_of(dim).to_vec()
    }

    /// The bytes of the buffer that a thread needs: two neighbouring ones for each byte of the result.
    fn halves(&self) -> Option<TensorType> {
        let mapped = |dim| {
            self.bases(dim)
                .into_iter()
                .map(|basis| self.first_half(basis))
        };
        let registers = core::iter::once(self.along(self.k, 1)).chain(mapped(Dim::REGISTER));
        let mut numbers = vec![(Dim::REGISTER, registers.collect())];
        numbers.extend(PLACES.map(|dim| (dim, mapped(dim).collect())));
        TensorType::from_numbers(self.result.element, self.shape.clone(), &numbers).ok()
    }

    /// The bytes that a thread reads for a transposing load: eight neighbours, of the row of its lane. `None` if the
    /// result does not consist of such columns.
    fn rows(&self) -> Option<TensorType> {
        let registers = self.bases(Dim::REGISTER);
        let lanes = self.bases(Dim::LANE);
        // A column is sixteen elements, so eight bytes, along K; its lanes are neighbours.
        let column = 1 << (TILE - 1);
        let is = |basis: u32, axis: usize, at: u32| {
            let place = self.coordinates(basis);
            (0..place.len()).all(|i| place[i] == if i == axis { at } else { 0 })
        };
        let split = |bases: &[u32], at: u32| -> Option<(Vec<u32>, Vec<u32>)> {
            let (low, high) = bases.split_at_checked(at as usize)?;
            Some((low.to_vec(), high.to_vec()))
        };
        let (own, repeats) = split(&registers, TILE - 1)?;
        let (neighbours, others) = split(&lanes, TILE)?;
        let rest: Vec<u32> = [repeats.clone(), others.clone()]
            .into_iter()
            .chain([Dim::WARP, Dim::BLOCK].map(|dim| self.bases(dim)))
            .flatten()
            .collect();
        let fits = (0..).zip(&own).all(|(i, basis)| is(*basis, self.k, 1 << i))
            && (0..)
                .zip(&neighbours)
                .all(|(i, basis)| is(*basis, self.outer, 1 << i))
            && rest.iter().all(|basis| {
                let place = self.coordinates(*basis);
                place[self.outer].is_multiple_of(1 << TILE) && place[self.k].is_multiple_of(column)
            });
        if !fits {
            return None;
        }
        let mapped = |bases: Vec<u32>| bases.into_iter().map(|basis| self.first_half(basis));
        let bytes = (0..TILE - 1).map(|i| self.along(self.outer, 1 << i));
        let rows = (0..TILE).map(|i| self.along(self.k, 1 << i));
        let numbers = [
            (Dim::REGISTER, bytes.chain(mapped(repeats)).collect()),
            (Dim::LANE, rows.chain(mapped(others)).collect()),
            (Dim::WARP, mapped(self.bases(Dim::WARP)).collect()),
            (Dim::BLOCK, mapped(self.bases(Dim::BLOCK)).collect()),
        ];
        TensorType::from_numbers(self.result.element, self.shape.clone(), &numbers).ok()
    }
}

/// `amdg.local_load_packed_tranposed`.
pub(crate) fn load(
    lowering: &mut FunctionLowering<'_, '_>,
    op: amdg::LocalLoadPackedTransposedOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let result = lowering.tensor_of(operation, op.result())?;
    let view = local::view(lowering, operation, op.src())?;
    let extents = MemDesc::of(op.src().r#type()).map(|memory| memory.shape());
    let shape: Vec<u32> = extents
        .into_iter()
        .flatten()
        .filter_map(|extent| u32::try_from(extent).ok())
        .collect();
    let axis = |wanted: &dyn Fn(u32, u32) -> bool| {
        let mut pairs = shape.iter().zip(&result.shape);
        pairs.position(|(buffer, tensor)| wanted(*buffer, *tensor))
    };
    let (Some(outer), Some(k)) = (axis(&|b, t| 2 * b == t), axis(&|b, t| b == 2 * t)) else {
        return Err(lowering.invalid(operation, "the packing must move from one axis to another"));
    };
    let repacked = Repacked {
        result: &result,
        shape,
        outer,
        k,
    };
    let values = match load_columns(lowering, op, &repacked, &view) {
        Some(values) => values,
        None => load_halves(lowering, op, &repacked, &view)?,
    };
    lowering.bind_result(operation, values);
    Ok(())
}

/// By loads that transpose; `None` if that is not possible.
fn load_columns<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: amdg::LocalLoadPackedTransposedOp<'_, '_>,
    repacked: &Repacked<'_>,
    view: &View<'ctx>,
) -> Option<Registers<'ctx>> {
    let e = lowering.e;
    let target = lowering.hooks().target();
    let name = target.transposed_halves()?;
    let rows = repacked.rows()?;
    let buffer = Buffer {
        layout: &view.layout,
        element: view.element,
        max_bits: view.max_bits.min(8 << (TILE - 1)),
    };
    let blocks = lowering.program.num_ctas;
    let kind = Some(InstructionKind::Vector);
    let access = shared_access::access(&rows, &buffer, Access::Load, kind, blocks, target).ok()?;
    let bytes = 1u32 << (TILE - 1);
    let in_order = |repeat| {
        let first = access.register(repeat, 0);
        first.is_multiple_of(bytes) && (0..bytes).all(|i| access.register(repeat, i) == first + i)
    };
    if access.instruction.registers_log2() != TILE - 1 || !(0..access.instructions).all(in_order) {
        return None;
    }
    let matrix = MatrixAccess {
        name,
        transposed: true,
        element_bits: 4,
        registers: 2,
    };
    let byte = e.int(8).into();
    let poison = e.poison(view.element.llvm(lowering.e.context));
    let mut loaded = vec![poison; repacked.result.registers()];
    let addresses = shared::shared_addresses(lowering, &access, view.element, &view.place);
    for (repeat, address) in (0..).zip(addresses) {
        let words = lowering.hooks().load_matrix(e, &matrix, address)?;
        let column = words
            .into_iter()
            .flat_map(|word| e.unpack(e.bitcast(word, e.vector(byte, 4).into())));
        let first = access.register(repeat, 0) as usize;
        for (slot, value) in loaded[first..].iter_mut().zip(column) {
            *slot = storage::to_register(e, view.element, value);
        }
    }
    local::record_shared(lowering, op.operation(), Access::Load, view, &access);
    let of = |register: u32| {
        let first = access.fold.apply(register & !(bytes - 1));
        loaded[(first | register & (bytes - 1)) as usize]
    };
    Some(
        (0..loaded.len() as u32)
            .map(of)
            .collect::<Vec<V<'ctx>>>()
            .into(),
    )
}

/// Byte by byte, from a half of each of two.
fn load_halves<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: amdg::LocalLoadPackedTransposedOp<'_, '_>,
    repacked: &Repacked<'_>,
    view: &View<'ctx>,
) -> Lowered<Registers<'ctx>> {
    let e = lowering.e;
    let operation = op.operation();
    let Some(halves) = repacked.halves() else {
        return Err(lowering.unsupported(operation, None));
    };
    let access = local::access_to(lowering, operation, &halves, view, Access::Load, None)?;
    let poison = e.poison(view.element.llvm(lowering.e.context));
    let mut loaded = vec![poison; halves.registers()];
    shared::load(
        lowering,
        operation,
        &access,
        view.element,
        &view.place,
        |at, value| {
            loaded[at as usize] = value;
        },
    )?;
    // The lowest bit of the coordinate along the axis of packing in the buffer says which half it is.
    let odd = |basis: u32| repacked.coordinates(basis)[repacked.outer] & 1;
    let mask = |dim| {
        let bases = repacked.bases(dim);
        (0..)
            .zip(bases)
            .fold(0, |mask, (i, basis)| mask | odd(basis) << i)
    };
    let [lanes, warps, blocks] = PLACES.map(mask);
    let of_thread = (lanes | warps | blocks != 0).then(|| lowering.parity(lanes, warps, blocks));
    let half = |byte: V<'ctx>, is_second: bool| {
        let low = e.and(byte, e.int_like(byte, 15));
        let high = e.lshr(byte, e.int_like(byte, 4));
        let (this, other) = if is_second { (high, low) } else { (low, high) };
        of_thread.map_or(this, |exchanged| e.select(exchanged, other, this))
    };
    let values: Vec<V<'ctx>> = (0..repacked.result.registers() as u32)
        .map(|register| {
            let is_second = odd(repacked.result.element_in(register as usize)) == 1;
            let [first, second] = [0, 1].map(|i| {
                half(
                    loaded[access.fold.apply(2 * register + i) as usize],
                    is_second,
                )
            });
            e.or(first, e.shl(second, e.int_like(second, 4)))
        })
        .collect();
    Ok(values.into())
}
