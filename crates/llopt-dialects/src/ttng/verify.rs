//! Checks of ttng operations beyond their tables.

use super::messages;
use super::{
    ArriveBarrierOp, AsyncCopyMbarrierArriveOp, AsyncTMACopyGlobalToLocalOp,
    AsyncTMACopyLocalToGlobalOp, AsyncTMAGatherOp, AsyncTMAReduceOp, AsyncTMAScatterOp,
    BarrierExpectOp, ClusterSumOp, InitBarrierOp, InvalBarrierOp, TCGen5CommitOp, TCGen5MMAOp,
    TCGen5MMAScaledOp, TMEMAllocOp, TMEMCopyOp, TMEMLoadOp, TMEMStoreOp, TMEMSubSliceOp,
    TensormapCreateOp, WaitBarrierOp, WarpGroupDotOp, WarpGroupDotWaitOp,
};
use crate::{
    check::infer::{complaint, encoding_of},
    layout::encoding::{Encoding, Linear, layout_of},
    layout::transfer,
    tables::access,
    tables::module,
    tables::type_set::TypeSet,
    tables::types::{MemDesc, MemDescParts, RankedTensor, class_of},
    tt::{
        ScaleDotElemType,
        verify::{picked_rows, product_shapes},
    },
    ttg::verify::{allocation, descriptor, encoding, same_contents},
};
use llopt_mlir::{diagnostic::Complaint, ir::TypeExt};
use melior::ir::{OperationRef, Type, Value, ValueLike};

type Verified = Result<(), Complaint>;

/// A barrier is one 64-bit word of mutable shared memory.
pub(crate) fn barrier(value: Value<'_, '_>) -> Verified {
    let parts = descriptor(value)?;
    let elements: i64 = parts.shape.iter().product();
    let is_shared = MemDesc::of(value.r#type()).is_some_and(MemDesc::is_shared);
    if elements != 1 || class_of(parts.element) != TypeSet::I64 || !is_shared {
        return Err(Complaint::new(format!(
            "a barrier must be one i64 in shared memory, not '{}'",
            value.r#type()
        )));
    }
    Ok(())
}

/// The operand is a barrier; the count is positive.
pub fn init_barrier(operation: InitBarrierOp<'_, '_>) -> Verified {
    barrier(operation.alloc())?;
    positive("count", operation.count())
}

fn positive(name: &str, value: i64) -> Verified {
    if value < 1 {
        return Err(Complaint::new(format!(
            "{name} must be at least 1, but is {value}"
        )));
    }
    Ok(())
}

/// The operand is a barrier.
pub fn inval_barrier(operation: InvalBarrierOp<'_, '_>) -> Verified {
    barrier(operation.alloc())
}

/// The operand is a barrier; the number of bytes is not negative.
pub fn barrier_expect(operation: BarrierExpectOp<'_, '_>) -> Verified {
    barrier(operation.alloc())?;
    if operation.size() < 0 {
        return Err(Complaint::new(format!(
            "size must not be negative, but is {}",
            operation.size()
        )));
    }
    Ok(())
}

/// The operand is a barrier.
pub fn wait_barrier(operation: WaitBarrierOp<'_, '_>) -> Verified {
    barrier(operation.alloc())
}

/// The operand is a barrier; the count is positive.
pub fn arrive_barrier(operation: ArriveBarrierOp<'_, '_>) -> Verified {
    barrier(operation.alloc())?;
    positive("count", operation.count())
}

/// The operand is a barrier.
pub fn async_copy_mbarrier_arrive(operation: AsyncCopyMbarrierArriveOp<'_, '_>) -> Verified {
    barrier(operation.barrier())
}

/// The operand is a barrier.
pub fn tc_gen5_commit(operation: TCGen5CommitOp<'_, '_>) -> Verified {
    barrier(operation.barrier())
}

fn coordinates(count: usize) -> Verified {
    if !(1..=5).contains(&count) {
        return Err(Complaint::new(format!(
            "a bulk copy has 1 to 5 coordinates, not {count}"
        )));
    }
    Ok(())
}

/// A barrier; 1 to 5 coordinates; a mutable buffer in the layout of the copy unit.
pub fn async_tma_copy_global_to_local(operation: AsyncTMACopyGlobalToLocalOp<'_, '_>) -> Verified {
    barrier(operation.barrier())?;
    coordinates(operation.coord().len())?;
    let buffer = descriptor(operation.result())?;
    if !buffer.mutable {
        return Err(Complaint::new("cannot copy into an immutable buffer"));
    }
    bulk_layout(&buffer)
}

fn bulk_layout(buffer: &MemDescParts<'_>) -> Verified {
    match encoding(buffer)? {
        Encoding::NvmmaShared(_) => Ok(()),
        other => Err(Complaint::new(format!(
            "the buffer must have the layout #ttg.nvmma_shared, not `{}`",
            other.name()
        ))),
    }
}

/// 1 to 5 coordinates.
pub fn async_tma_copy_local_to_global(operation: AsyncTMACopyLocalToGlobalOp<'_, '_>) -> Verified {
    coordinates(operation.coord().len())
}

/// 1 to 5 coordinates.
pub fn async_tma_reduce(operation: AsyncTMAReduceOp<'_, '_>) -> Verified {
    coordinates(operation.coord().len())
}

fn rows(buffer: Value<'_, '_>, offsets: Value<'_, '_>) -> Verified {
    let parts = descriptor(buffer)?;
    let offsets = RankedTensor::of(offsets.r#type())
        .ok_or_else(|| Complaint::new("the row numbers must be a tensor"))?;
    picked_rows(&parts.shape, parts.element, offsets)
}

/// A barrier; a mutable buffer with one row per number.
pub fn async_tma_gather(operation: AsyncTMAGatherOp<'_, '_>) -> Verified {
    barrier(operation.barrier())?;
    if !descriptor(operation.result())?.mutable {
        return Err(Complaint::new("cannot copy into an immutable buffer"));
    }
    rows(operation.result(), operation.x_offsets())
}

/// A buffer with one row per number.
pub fn async_tma_scatter(operation: AsyncTMAScatterOp<'_, '_>) -> Verified {
    rows(operation.src(), operation.x_offsets())
}

/// Extents and strides fit the rank of the box, which is 1 to 5.
pub fn tensormap_create(operation: TensormapCreateOp<'_, '_>) -> Verified {
    let rank = operation.box_dim().len();
    coordinates(rank)?;
    for (name, count, expected) in [
        ("global_dim", operation.global_dim().len(), rank),
        ("global_stride", operation.global_stride().len(), rank - 1),
        ("element_stride", operation.element_stride().len(), rank),
    ] {
        if count != expected {
            return Err(Complaint::new(format!(
                "`{name}` has {count} entries; a box of rank {rank} needs {expected}"
            )));
        }
    }
    Ok(())
}

/// Shape and element type of a tensor or buffer.
fn contents<'c>(value: Value<'c, '_>) -> Result<(Vec<i64>, Type<'c>), Complaint> {
    match RankedTensor::of(value.r#type()) {
        Some(tensor) => Ok((tensor.shape(), tensor.element())),
        None => {
            let parts = descriptor(value)?;
            Ok((parts.shape, parts.element))
        }
    }
}

/// The 8-bit floats that wgmma multiplies.
const FP8: TypeSet = TypeSet::F8E4M3FN.union(TypeSet::F8E5M2);
/// The elements of the operands of a warp-group product, or of what is converted to such.
const WGMMA_ELEMENTS: TypeSet = FP8
    .union(TypeSet::F8E4M3FNUZ)
    .union(TypeSet::F8E5M2FNUZ)
    .union(TypeSet::F16)
    .union(TypeSet::BF16)
    .union(TypeSet::F32)
    .union(TypeSet::F64)
    .union(TypeSet::I8);

/// Shapes fit and are multiples of the instruction; the elements are those of a product, and 8-bit floats are not
/// accumulated more precisely than the unit does; layouts are those of wgmma; the number of warps is a multiple of
/// four.
pub fn warp_group_dot(operation: WarpGroupDotOp<'_, '_>) -> Verified {
    let (a_shape, a_element) = contents(operation.a())?;
    let (b_shape, b_element) = contents(operation.b())?;
    let (c_shape, c_element) = contents(operation.c())?;
    product_shapes(&a_shape, &b_shape, &c_shape, [1; 4])?;
    for (side, element) in [("left", a_element), ("right", b_element)] {
        if !WGMMA_ELEMENTS.intersects(class_of(element)) {
            return Err(Complaint::new(format!(
                "there is no product of '{element}' ({side} operand)"
            )));
        }
    }
    let imprecise = operation.max_num_imprecise_acc();
    if FP8.intersects(class_of(a_element)) && class_of(c_element) == TypeSet::F32 && imprecise < 32
    {
        return Err(Complaint::new(format!(
            "products of '{a_element}' are summed in f32 only from maxNumImpreciseAcc = 32 on, not {imprecise}"
        )));
    }
    let result = RankedTensor::of(operation.d().r#type())
        .ok_or_else(|| Complaint::new("the result must be a tensor"))?;
    let Some(Encoding::NvidiaMma(product)) = encoding_of(result).map_err(complaint)? else {
        return Err(Complaint::new(
            "the result must have a layout #ttg.nvidia_mma of version 3",
        ));
    };
    if product.version_major != 3 {
        return Err(Complaint::new(format!(
            "the result must have a layout of version 3, not {}",
            product.version_major
        )));
    }
    match RankedTensor::of(operation.a().r#type()) {
        Some(a) => {
            let Some(Encoding::DotOperand(operand)) = encoding_of(a).map_err(complaint)? else {
                return Err(Complaint::new(
                    "a left operand in registers must have a layout #ttg.dot_op",
                ));
            };
            let width = 32 / a_element.bit_width().unwrap_or(32).max(1);
            if operand.k_width != width {
                return Err(Complaint::new(format!(
                    "the left operand must have kWidth = {width}, but has {}",
                    operand.k_width
                )));
            }
        }
        None => matrix_layout("left", operation.a())?,
    }
    matrix_layout("right", operation.b())?;
    if let Some(warps) = module::num_warps(operation.operation())
        && warps % 4 != 0
    {
        return Err(Complaint::new(format!(
            "needs whole groups of four warps, but there are {warps}"
        )));
    }
    let [m, n] = c_shape[..] else {
        return Err(Complaint::new(format!(
            "the result must be a matrix, but has shape {c_shape:?}"
        )));
    };
    let blocks = product.cga_layout.split().map_err(complaint)?;
    let share = |extent: i64, dimension: usize| {
        extent / i64::from(blocks.get(dimension).copied().unwrap_or(1).max(1))
    };
    for (name, extent, step) in [("M", share(m, 0), 64), ("N", share(n, 1), 8)] {
        if extent % step != 0 {
            return Err(Complaint::new(format!(
                "{name} of one block is {extent}, which is no multiple of {step}"
            )));
        }
    }
    Ok(())
}

fn matrix_layout(side: &str, value: Value<'_, '_>) -> Verified {
    match encoding(&descriptor(value)?)? {
        Encoding::NvmmaShared(_) | Encoding::SharedLinear(_) => Ok(()),
        other => Err(Complaint::new(format!(
            "the {side} operand must have a layout #ttg.nvmma_shared or #ttg.shared_linear, not `{}`",
            other.name()
        ))),
    }
}

/// There is at least one product to wait for.
pub fn warp_group_dot_wait(operation: WarpGroupDotWaitOp<'_, '_>) -> Verified {
    if operation.inputs().is_empty() {
        return Err(Complaint::new("needs at least one value to wait for"));
    }
    if operation.pendings() < 0 {
        return Err(Complaint::new(format!(
            "pendings must not be negative, but is {}",
            operation.pendings()
        )));
    }
    Ok(())
}

/// The kinds of tcgen05.mma and the accumulators of each.
fn product_kind(element: Type<'_>) -> Option<(&'static str, TypeSet)> {
    let float_sum = TypeSet::F32.union(TypeSet::F16);
    match class_of(element) {
        TypeSet::F32 => Some(("tf32", TypeSet::F32)),
        TypeSet::F16 => Some(("f16", float_sum)),
        TypeSet::BF16 => Some(("f16", TypeSet::F32)),
        TypeSet::F8E4M3FN | TypeSet::F8E5M2 | TypeSet::I8 => Some(("f8f6f4", float_sum)),
        _ => None,
    }
}

fn product_elements(a: Type<'_>, b: Type<'_>, d: Type<'_>) -> Verified {
    let kind = |side: &str, element: Type<'_>| {
        product_kind(element).ok_or_else(|| {
            Complaint::new(format!(
                "there is no product of '{element}' ({side} operand)"
            ))
        })
    };
    let (left, left_sums) = kind("left", a)?;
    let (right, right_sums) = kind("right", b)?;
    if left != right {
        return Err(Complaint::new(format!(
            "the operands are of kind {left} ('{a}') and {right} ('{b}'); they must be of one kind"
        )));
    }
    let sum = class_of(d);
    if !left_sums.intersects(sum) || !right_sums.intersects(sum) {
        return Err(Complaint::new(format!(
            "a product of '{a}' and '{b}' cannot be summed in '{d}'"
        )));
    }
    Ok(())
}

/// Shapes and elements fit; operands and accumulator are where the unit reads and writes them;
/// barriers come with `is_async`, one predicate each.
pub fn tc_gen5_mma(operation: TCGen5MMAOp<'_, '_>) -> Verified {
    let a = descriptor(operation.a())?;
    let b = descriptor(operation.b())?;
    let d = descriptor(operation.d())?;
    barriers(
        &operation.barriers(),
        operation.barrier_preds().len(),
        operation.is_async(),
    )?;
    product_shapes(&a.shape, &b.shape, &d.shape, [1; 4])?;
    product_elements(a.element, b.element, d.element)?;
    accumulator(&d)?;
    match encoding(&a)? {
        Encoding::NvmmaShared(_) | Encoding::SharedLinear(_) => {}
        Encoding::TensorMemory(tensor_memory) => {
            if tensor_memory.col_stride != 1 {
                return Err(Complaint::new(format!(
                    "the left operand must have colStride = 1, but has {}",
                    tensor_memory.col_stride
                )));
            }
            if operation.two_ctas() && !tensor_memory.two_ctas {
                return Err(Complaint::new(
                    "two_ctas needs a left operand laid out for two blocks",
                ));
            }
        }
        other => {
            return Err(Complaint::new(format!(
                "the left operand cannot have a layout of kind `{}`",
                other.name()
            )));
        }
    }
    matrix_layout("right", operation.b())?;
    if operation.two_ctas() {
        two_blocks(&a, &b, &d)?;
    }
    Ok(())
}

/// The accumulator is mutable tensor memory with one element per 32-bit column.
fn accumulator(d: &MemDescParts<'_>) -> Verified {
    let Encoding::TensorMemory(layout) = encoding(d)? else {
        return Err(Complaint::new(
            "the accumulator must be in tensor memory, with a layout #ttng.tensor_memory_encoding",
        ));
    };
    let stride = 32 / d.element.bit_width().unwrap_or(32).max(1);
    if layout.col_stride != stride {
        return Err(Complaint::new(format!(
            "an accumulator of '{}' must have colStride = {stride}, but has {}",
            d.element, layout.col_stride
        )));
    }
    Ok(())
}

fn barriers(list: &[Value<'_, '_>], predicates: usize, is_async: bool) -> Verified {
    if list.len() != predicates {
        return Err(Complaint::new(format!(
            "has {} barriers and {predicates} predicates for them",
            list.len()
        )));
    }
    if !is_async && !list.is_empty() {
        return Err(Complaint::new("a barrier needs `is_async`"));
    }
    list.iter().try_for_each(|value| barrier(*value))
}

fn two_blocks(a: &MemDescParts<'_>, b: &MemDescParts<'_>, d: &MemDescParts<'_>) -> Verified {
    for (name, parts, expected) in [
        ("left operand", a, [2, 1]),
        ("right operand", b, [1, 2]),
        ("accumulator", d, [2, 1]),
    ] {
        let split = match encoding(parts)? {
            Encoding::TensorMemory(layout) => vec![layout.cta_split_m, layout.cta_split_n],
            other => other.cga_layout().split().map_err(complaint)?,
        };
        if split != expected {
            return Err(Complaint::new(format!(
                "two_ctas needs the {name} split as {expected:?} among the blocks, not as {split:?}"
            )));
        }
    }
    match encoding(d)? {
        Encoding::TensorMemory(layout) if !layout.two_ctas => Err(Complaint::new(
            "two_ctas needs an accumulator laid out for two blocks",
        )),
        _ => Ok(()),
    }
}

/// As `tc_gen5_mma`, packing of 4-bit elements included.
pub fn tc_gen5_mma_scaled(operation: TCGen5MMAScaledOp<'_, '_>) -> Verified {
    let a = descriptor(operation.a())?;
    let b = descriptor(operation.b())?;
    let d = descriptor(operation.d())?;
    barriers(
        &operation.barriers(),
        operation.barrier_preds().len(),
        operation.is_async(),
    )?;
    product_elements(a.element, b.element, d.element)?;
    accumulator(&d)?;
    let transposed = |parts: &MemDescParts<'_>| matches!(encoding(parts), Ok(Encoding::NvmmaShared(layout)) if layout.transposed);
    let factors = |kind: ScaleDotElemType, along_k: bool| match (kind, along_k) {
        (ScaleDotElemType::E2m1, true) => (2, 1),
        (ScaleDotElemType::E2m1, false) => (1, 2),
        _ => (1, 1),
    };
    let right_is_shared = matches!(encoding(&b), Ok(Encoding::NvmmaShared(_)));
    let (a_k, a_m) = factors(operation.a_type(), !transposed(&a));
    let (b_k, b_n) = factors(operation.b_type(), !right_is_shared || transposed(&b));
    product_shapes(&a.shape, &b.shape, &d.shape, [a_m, a_k, b_k, b_n])
}

fn in_tensor_memory(parts: &MemDescParts<'_>) -> Verified {
    match encoding(parts)? {
        Encoding::TensorMemory(_) | Encoding::TensorMemoryScales(_) => Ok(()),
        other => Err(Complaint::new(format!(
            "the buffer must be in tensor memory, not have a layout of kind `{}`",
            other.name()
        ))),
    }
}

fn matrix<'c>(value: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    let tensor = RankedTensor::of(value.r#type())
        .ok_or_else(|| Complaint::new("expected a ranked tensor"))?;
    if tensor.rank() != 2 {
        return Err(Complaint::new(format!(
            "tensor memory is moved as a matrix, not in shape {:?}",
            tensor.shape()
        )));
    }
    Ok(tensor)
}

/// The layout of a value is one that the instructions move to or from the buffer.
pub(crate) fn movable(
    what: &str,
    value: Value<'_, '_>,
    buffer: Value<'_, '_>,
    operation: OperationRef<'_, '_>,
) -> Verified {
    let tensor = matrix(value)?;
    let Some(own) = encoding_of(tensor).map_err(complaint)? else {
        return Ok(());
    };
    let parts = descriptor(buffer)?;
    let registers = layout_of(tensor.r#type()).map_err(complaint)?;
    let memory = layout_of(buffer.r#type()).map_err(complaint)?;
    let bits = parts.element.bit_width().unwrap_or(32);
    let scales = matches!(encoding(&parts)?, Encoding::TensorMemoryScales(_));
    if messages::can_move(&registers, &memory, bits, scales) {
        return Ok(());
    }
    let warps = module::num_warps(operation).unwrap_or(4);
    let blocks = own.cga_layout().layout().map_err(complaint)?;
    let better = messages::suggestion(&memory, bits, warps, &blocks, scales)
        .and_then(|layout| Linear::new(layout).ok())
        .map(|linear| Encoding::Linear(linear).to_attribute(access::context(operation)));
    let given = tensor
        .encoding()
        .map(|attribute| attribute.to_string())
        .unwrap_or_default();
    Err(Complaint::new(match better {
        Some(better) => format!(
            "no instruction moves the {what} in the layout {given} between registers and tensor memory; it could have {better}"
        ),
        None => format!(
            "no instruction moves the {what} in the layout {given} between registers and tensor memory"
        ),
    }))
}

/// A whole buffer of tensor memory; the value has its shape and elements, and a layout that can be
/// moved there.
pub fn tmem_alloc(operation: TMEMAllocOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.result())?;
    in_tensor_memory(&buffer)?;
    if let Some(source) = operation.src() {
        matrix(source)?;
    }
    allocation(operation.src(), &buffer, 1)?;
    match operation.src() {
        Some(source) => movable("value", source, operation.result(), operation.operation()),
        None => Ok(()),
    }
}

/// The result has the shape and elements of the buffer, which does not hold scales, and a layout that can be moved
/// from there.
pub fn tmem_load(operation: TMEMLoadOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.src())?;
    in_tensor_memory(&buffer)?;
    if matches!(encoding(&buffer)?, Encoding::TensorMemoryScales(_)) {
        return Err(Complaint::new(
            "scales cannot be read back; the buffer must have a layout #ttng.tensor_memory_encoding",
        ));
    }
    same_contents("result", matrix(operation.result())?, &buffer)?;
    movable(
        "result",
        operation.result(),
        operation.src(),
        operation.operation(),
    )
}

/// The value has the shape and elements of a mutable buffer, and a layout that can be moved there.
pub fn tmem_store(operation: TMEMStoreOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.dst())?;
    in_tensor_memory(&buffer)?;
    if !buffer.mutable {
        return Err(Complaint::new("cannot store into an immutable buffer"));
    }
    same_contents("value", matrix(operation.src())?, &buffer)?;
    movable(
        "value",
        operation.src(),
        operation.dst(),
        operation.operation(),
    )
}

/// Both sides are accumulators of one block height; the columns are within the source.
pub fn tmem_subslice(operation: TMEMSubSliceOp<'_, '_>) -> Verified {
    let source = descriptor(operation.src())?;
    let result = descriptor(operation.result())?;
    let (Encoding::TensorMemory(from), Encoding::TensorMemory(to)) =
        (encoding(&source)?, encoding(&result)?)
    else {
        return Err(Complaint::new(
            "source and view must have a layout #ttng.tensor_memory_encoding",
        ));
    };
    if from.block_m != to.block_m
        || from.col_stride != to.col_stride
        || from.cta_split_m != to.cta_split_m
        || from.cta_split_n != to.cta_split_n
    {
        return Err(Complaint::new(
            "the view must keep blockM, colStride and the split among blocks",
        ));
    }
    if source.element != result.element {
        return Err(Complaint::new(format!(
            "the source has elements of type '{}', the view of '{}'",
            source.element, result.element
        )));
    }
    let (Some(width), Some(columns)) = (source.shape.last(), result.shape.last()) else {
        return Ok(());
    };
    let first = operation.n();
    if first < 0 || first + columns > *width {
        return Err(Complaint::new(format!(
            "{columns} columns from {first} on are not within {width}"
        )));
    }
    Ok(())
}

/// From shared memory, at least 16-byte aligned, to mutable tensor memory of one block and one
/// shape; scales are not swizzled, an accumulator is, and has 128 rows to a block and 32-bit
/// elements.
pub fn tmem_copy(operation: TMEMCopyOp<'_, '_>) -> Verified {
    let source = descriptor(operation.src())?;
    let target = descriptor(operation.dst())?;
    if !MemDesc::of(operation.src().r#type()).is_some_and(MemDesc::is_shared) {
        return Err(Complaint::new(format!(
            "the source must be in shared memory, not in {}",
            source.memory_space
        )));
    }
    in_tensor_memory(&target)?;
    if source.shape != target.shape {
        return Err(Complaint::new(format!(
            "the source has shape {:?}, the target {:?}",
            source.shape, target.shape
        )));
    }
    if !target.mutable {
        return Err(Complaint::new("cannot copy into an immutable buffer"));
    }
    if let Some(value) = operation.barrier() {
        barrier(value)?;
    }
    let from = encoding(&source)?;
    let alignment = transfer::alignment(&from);
    if alignment < 16 {
        return Err(Complaint::new(format!(
            "the source must be aligned to 16 bytes; its layout `{}` asks for {alignment}",
            from.name()
        )));
    }
    let blocks = module::num_ctas(operation.operation());
    if blocks != 1 {
        return Err(Complaint::new(format!(
            "copies within one block, but the cluster has {blocks}"
        )));
    }
    let swizzle = match &from {
        Encoding::NvmmaShared(layout) if layout.transposed || layout.fp4_padded => {
            return Err(Complaint::new(
                "the source must be neither transposed nor padded",
            ));
        }
        Encoding::NvmmaShared(layout) => Some(layout.swizzling_byte_width),
        _ => None,
    };
    let Encoding::TensorMemory(layout) = encoding(&target)? else {
        return match swizzle {
            Some(bytes) if bytes != 0 => Err(Complaint::new(format!(
                "scales must not be swizzled; the source has swizzlingByteWidth = {bytes}"
            ))),
            _ => Ok(()),
        };
    };
    if layout.block_m != 128 {
        return Err(Complaint::new(format!(
            "the target must have blockM = 128, but has {}",
            layout.block_m
        )));
    }
    if swizzle == Some(0) {
        return Err(Complaint::new(
            "the source of an accumulator must be swizzled, but has swizzlingByteWidth = 0",
        ));
    }
    if source.element.bit_width() != Some(32) {
        return Err(Complaint::new(format!(
            "elements must have 32 bits, not be '{}'",
            source.element
        )));
    }
    Ok(())
}

/// The result has the operand's elements and shape, or one extent is that of one block's part.
pub fn cluster_sum(operation: ClusterSumOp<'_, '_>) -> Verified {
    let tensors =
        [operation.src(), operation.result()].map(|value| RankedTensor::of(value.r#type()));
    let [Some(source), Some(result)] = tensors else {
        return Err(Complaint::new("adds tensors"));
    };
    if source.element() != result.element() {
        return Err(Complaint::new(format!(
            "the sums of '{}' cannot be '{}'",
            source.element(),
            result.element()
        )));
    }
    let blocks = i64::from(module::cluster_split(operation.operation()));
    let (whole, part) = (source.shape(), result.shape());
    let divided = whole
        .iter()
        .zip(&part)
        .filter(|(whole, part)| whole != part);
    let divided: Vec<_> = divided.collect();
    let is_part = divided.len() < 2
        && divided
            .iter()
            .all(|(whole, part)| **part * blocks == **whole);
    match whole.len() == part.len() && is_part {
        true => Ok(()),
        false => Err(Complaint::new(format!(
            "each of {blocks} blocks has all of the sum, or its part along one dimension; '{}' is neither of '{}'",
            result.r#type(),
            source.r#type()
        ))),
    }
}
