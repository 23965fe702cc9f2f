//! What tt operations check beyond their tables.
//!
//! Each function is named after its operation and states its rules in the order in which it
//! checks them. Messages name the offending value; MLIR adds the operation and its place.

use super::{
    AdvanceOp, AtomicRmwOp, BitcastOp, BroadcastOp, CallOp, CatOp, DescriptorGatherOp,
    DescriptorLoadOp, DescriptorReduceKind, DescriptorReduceOp, DescriptorScatterOp,
    DescriptorStoreOp, DotOp, DotScaledOp, ElementwiseInlineAsmOp, FpToFpOp, FuncOp, GatherOp,
    HistogramOp, JoinOp, LoadOp, MakeRangeOp, MakeTensorDescOp, MakeTensorPtrOp, MapElementwiseOp,
    MapElementwiseReturnOp, PrintOp, ReduceOp, ReduceReturnOp, ReshapeOp, ReturnOp, RmwOp,
    ScaleDotElemType, ScanOp, ScanReturnOp, SplatOp, SplitOp, StoreOp, TransOp, UnsplatOp,
};
use crate::{
    access,
    encoding::Encoding,
    infer::{complaint, encoding_of, same_encoding},
    transfer,
    type_set::TypeSet,
    types::{Pointer, RankedTensor, TensorDesc, class_of, element_or_self},
};
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::OpSpec,
    ir::{OperationExt, TypeExt},
};
use melior::ir::{
    BlockLike, OperationRef, RegionLike, RegionRef, Type, TypeLike, Value, ValueLike,
    attribute::TypeAttribute, operation::OperationLike, r#type::FunctionType,
};

type Verified = Result<(), Complaint>;

fn tensor<'c>(value: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    RankedTensor::of(value.r#type()).ok_or_else(|| {
        Complaint::new(format!(
            "expected a ranked tensor, not '{}'",
            value.r#type()
        ))
    })
}

fn elements(shape: &[i64]) -> i64 {
    shape.iter().product()
}

/// Bits of a scalar type; pointers have none.
fn bits(r#type: Type<'_>) -> u32 {
    r#type.bit_width().unwrap_or(0)
}

/// The operands have the number and types of the function's results.
pub fn return_(operation: ReturnOp<'_, '_>) -> Verified {
    let Some(function) = operation
        .operation()
        .parent_operation()
        .and_then(FuncOp::of)
    else {
        return Ok(());
    };
    let Some((_, results)) = signature(function) else {
        return Ok(());
    };
    let operands = operation.srcs();
    if operands.len() != results.len() {
        return Err(Complaint::new(format!(
            "has {} operands, but the enclosing function '{}' returns {}",
            operands.len(),
            function.sym_name(),
            results.len()
        )));
    }
    for (index, (operand, expected)) in operands.iter().zip(&results).enumerate() {
        if operand.r#type() != *expected {
            return Err(Complaint::new(format!(
                "operand #{index} has type '{}', but function '{}' returns '{expected}'",
                operand.r#type(),
                function.sym_name()
            )));
        }
    }
    Ok(())
}

/// Inputs and results of a function.
fn signature<'c>(function: FuncOp<'c, '_>) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)> {
    let r#type = TypeAttribute::try_from(function.function_type())
        .ok()?
        .value();
    let r#type = FunctionType::try_from(r#type).ok()?;
    let inputs = (0..r#type.input_count())
        .filter_map(|index| r#type.input(index).ok())
        .collect();
    let results = (0..r#type.result_count())
        .filter_map(|index| r#type.result(index).ok())
        .collect();
    Some((inputs, results))
}

/// The callee exists in the enclosing module and has the types of the call.
pub fn call(operation: CallOp<'_, '_>) -> Verified {
    let name = operation.callee();
    let symbol = OpSpec::slot(operation.operation(), CallOp::CALLEE);
    let callee = symbol.and_then(|symbol| operation.operation().lookup_symbol(symbol));
    let Some(function) = callee.and_then(FuncOp::of) else {
        return Err(Complaint::new(format!(
            "'{name}' does not reference a function of this module"
        )));
    };
    let Some((inputs, results)) = signature(function) else {
        return Ok(());
    };
    let operands: Vec<_> = operation.operands().iter().map(ValueLike::r#type).collect();
    let returned: Vec<_> = operation.results().iter().map(ValueLike::r#type).collect();
    for (what, given, expected) in [("operand", operands, inputs), ("result", returned, results)] {
        if given.len() != expected.len() {
            return Err(Complaint::new(format!(
                "has {} {what}s, but '{name}' has {}",
                given.len(),
                expected.len()
            )));
        }
        for (index, (given, expected)) in given.iter().zip(&expected).enumerate() {
            if given != expected {
                return Err(Complaint::new(format!(
                    "{what} #{index} has type '{given}', but '{name}' has '{expected}'"
                )));
            }
        }
    }
    Ok(())
}

/// Pointers become pointers of the same address space; other types keep their width.
pub fn bitcast(operation: BitcastOp<'_, '_>) -> Verified {
    let from = element_or_self(operation.src().r#type());
    let to = element_or_self(operation.result().r#type());
    match (Pointer::of(from), Pointer::of(to)) {
        (Some(from), Some(to)) if from.address_space() != to.address_space() => {
            Err(Complaint::new(format!(
                "cannot change the address space of a pointer from {} to {}",
                from.address_space(),
                to.address_space()
            )))
        }
        (Some(_), Some(_)) => Ok(()),
        (None, None) if bits(from) == bits(to) => Ok(()),
        (None, None) => Err(Complaint::new(format!(
            "cannot read {} bits of '{from}' as {} bits of '{to}'",
            bits(from),
            bits(to)
        ))),
        _ => Err(Complaint::new(format!(
            "cannot turn '{from}' into '{to}'; tt.int_to_ptr and tt.ptr_to_int convert pointers"
        ))),
    }
}

/// A conversion to fewer bits says how it rounds.
pub fn fp_to_fp(operation: FpToFpOp<'_, '_>) -> Verified {
    let from = element_or_self(operation.src().r#type());
    let to = element_or_self(operation.result().r#type());
    if bits(to) < bits(from) && operation.rounding().is_none() {
        return Err(Complaint::new(format!(
            "a conversion from '{from}' to '{to}' loses bits and needs `rounding`"
        )));
    }
    Ok(())
}

/// The number of elements is a multiple of `packed_element`, which is positive; results have the
/// shape of the operands.
pub fn elementwise_inline_asm(operation: ElementwiseInlineAsmOp<'_, '_>) -> Verified {
    let packed = operation.packed_element();
    if packed < 1 {
        return Err(Complaint::new(format!(
            "packed_element must be positive, but is {packed}"
        )));
    }
    let Some(first) = operation.args().first().copied() else {
        return Ok(());
    };
    let count = RankedTensor::of(first.r#type()).map_or(0, |tensor| elements(&tensor.shape()));
    if count % packed != 0 {
        return Err(Complaint::new(format!(
            "the {count} elements of the operands are no multiple of packed_element, {packed}"
        )));
    }
    let shape = RankedTensor::of(first.r#type()).map(RankedTensor::shape);
    for (index, value) in operation
        .args()
        .iter()
        .chain(&operation.result())
        .enumerate()
    {
        let other = RankedTensor::of(value.r#type()).map(RankedTensor::shape);
        if other != shape {
            return Err(Complaint::new(format!(
                "value #{index} has shape {:?}, operand #0 has {:?}",
                other.unwrap_or_default(),
                shape.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// At least one operand; `pack` is a power of two.
pub fn map_elementwise(operation: MapElementwiseOp<'_, '_>) -> Verified {
    if operation.srcs().is_empty() {
        return Err(Complaint::new("needs at least one operand"));
    }
    let pack = operation.pack();
    if pack < 1 || pack & (pack - 1) != 0 {
        return Err(Complaint::new(format!(
            "pack must be a power of two, but is {pack}"
        )));
    }
    Ok(())
}

/// Extents of the block: what `boundaryCheck` names are dimensions of it.
fn boundary_check(pointer: Type<'_>, dimensions: &[i32]) -> Verified {
    let block = Pointer::of(pointer).and_then(|pointer| RankedTensor::of(pointer.pointee()));
    let Some(block) = block else {
        return match dimensions.first() {
            Some(_) => Err(Complaint::new(
                "boundaryCheck needs a pointer to a tensor as operand #0",
            )),
            None => Ok(()),
        };
    };
    match dimensions.iter().find(|dimension| {
        usize::try_from(**dimension).map_or(true, |position| position >= block.rank())
    }) {
        Some(dimension) => Err(Complaint::new(format!(
            "boundaryCheck names dimension {dimension} of a block of rank {}",
            block.rank()
        ))),
        None => Ok(()),
    }
}

/// `boundaryCheck` and `padding` belong to a pointer to a tensor, which takes no mask.
pub fn load(operation: LoadOp<'_, '_>) -> Verified {
    let pointer = operation.ptr().r#type();
    boundary_check(pointer, &operation.boundary_check())?;
    let through_block = class_of(pointer) == TypeSet::TENSOR_POINTER;
    if through_block && operation.mask().is_some() {
        return Err(Complaint::new(
            "a load through a pointer to a tensor takes no mask",
        ));
    }
    if operation.other().is_some() && operation.mask().is_none() {
        return Err(Complaint::new("`other` needs a mask beside it"));
    }
    Ok(())
}

/// As for `tt.load`.
pub fn store(operation: StoreOp<'_, '_>) -> Verified {
    boundary_check(operation.ptr().r#type(), &operation.boundary_check())
}

/// The update exists for the element type.
pub fn atomic_rmw(operation: AtomicRmwOp<'_, '_>) -> Verified {
    let element = element_or_self(operation.val().r#type());
    let float = element.is_float();
    let update = operation.atomic_rmw_op();
    let fits = match update {
        RmwOp::Fadd => float,
        RmwOp::Exch => true,
        RmwOp::And
        | RmwOp::Or
        | RmwOp::Xor
        | RmwOp::Add
        | RmwOp::Max
        | RmwOp::Min
        | RmwOp::Umax
        | RmwOp::Umin => !float,
    };
    if !fits {
        return Err(Complaint::new(format!(
            "there is no update `{update}` for elements of type '{element}'"
        )));
    }
    Ok(())
}

/// One extent, stride and offset per dimension of the block; the order is a permutation.
pub fn make_tensor_ptr(operation: MakeTensorPtrOp<'_, '_>) -> Verified {
    let block = Pointer::of(operation.result().r#type())
        .and_then(|pointer| RankedTensor::of(pointer.pointee()));
    let Some(block) = block else {
        return Ok(());
    };
    let rank = block.rank();
    for (what, count) in [
        ("shape", operation.shape().len()),
        ("strides", operation.strides().len()),
        ("offsets", operation.offsets().len()),
        ("order", operation.order().len()),
    ] {
        if count != rank {
            return Err(Complaint::new(format!(
                "`{what}` has {count} entries, the block has rank {rank}"
            )));
        }
    }
    super::infer::permuted_shape(&block.shape(), &operation.order()).map(|_| ())
}

/// One offset per dimension of the block.
pub fn advance(operation: AdvanceOp<'_, '_>) -> Verified {
    let block = Pointer::of(operation.result().r#type())
        .and_then(|pointer| RankedTensor::of(pointer.pointee()));
    let rank = block.map_or(0, RankedTensor::rank);
    let count = operation.offsets().len();
    if count != rank {
        return Err(Complaint::new(format!(
            "has {count} offsets, the block has rank {rank}"
        )));
    }
    Ok(())
}

/// The result is a 1-D tensor of i32 with `end - start` elements.
pub fn make_range(operation: MakeRangeOp<'_, '_>) -> Verified {
    let (start, end) = (operation.start(), operation.end());
    if start >= end {
        return Err(Complaint::new(format!(
            "start, {start}, must be less than end, {end}"
        )));
    }
    let result = tensor(operation.result())?;
    let shape = result.shape();
    let [extent] = shape[..] else {
        return Err(Complaint::new(format!(
            "the result must have one dimension, but has shape {shape:?}"
        )));
    };
    if end - start != extent {
        return Err(Complaint::new(format!(
            "the range from {start} to {end} has {} elements, the result has {extent}",
            end - start
        )));
    }
    if class_of(result.element()) != TypeSet::I32 {
        return Err(Complaint::new(format!(
            "the elements of the result must be i32, not '{}'",
            result.element()
        )));
    }
    Ok(())
}

/// A tensor operand has no place for more elements: the operand is a scalar.
pub fn splat(operation: SplatOp<'_, '_>) -> Verified {
    match RankedTensor::of(operation.src().r#type()) {
        Some(source) if elements(&source.shape()) != 1 => Err(Complaint::new(format!(
            "the operand must be a scalar, not '{}'",
            source.r#type()
        ))),
        _ => Ok(()),
    }
}

/// The operand has one element.
pub fn unsplat(operation: UnsplatOp<'_, '_>) -> Verified {
    let shape = tensor(operation.src())?.shape();
    if elements(&shape) != 1 {
        return Err(Complaint::new(format!(
            "the operand must have exactly one element, but has shape {shape:?}"
        )));
    }
    Ok(())
}

/// Equal number of elements; both sides have a layout or neither; unless elements may be
/// reordered, the layouts hold every element in the same place.
pub fn reshape(operation: ReshapeOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let result = tensor(operation.result())?;
    let (from, to) = (source.shape(), result.shape());
    if elements(&from) != elements(&to) {
        return Err(Complaint::new(format!(
            "the operand has {} elements, the result {}",
            elements(&from),
            elements(&to)
        )));
    }
    if source.encoding().is_some() != result.encoding().is_some() {
        return Err(Complaint::new(
            "operand and result must both have a layout, or neither",
        ));
    }
    if operation.allow_reorder() {
        return Ok(());
    }
    let (Some(before), Some(after)) = (
        encoding_of(source).map_err(complaint)?,
        encoding_of(result).map_err(complaint)?,
    ) else {
        return Ok(());
    };
    let expected = transfer::reshape(&before, &from, &to).map_err(complaint)?;
    expect_layout(&expected, &after, &to, operation.operation())
}

/// Reports the layout that would be right.
fn expect_layout(
    expected: &Encoding,
    found: &Encoding,
    shape: &[i64],
    operation: OperationRef<'_, '_>,
) -> Verified {
    if transfer::are_equal(expected, found, shape) {
        return Ok(());
    }
    let context = access::context(operation);
    Err(Complaint::new(format!(
        "the layout of the result moves elements; expected {}, got {}",
        expected.to_attribute(context),
        found.to_attribute(context)
    )))
}

/// Equal ranks; extents differ only where the operand has 1.
pub fn broadcast(operation: BroadcastOp<'_, '_>) -> Verified {
    let from = tensor(operation.src())?.shape();
    let to = tensor(operation.result())?.shape();
    if from.len() != to.len() {
        return Err(Complaint::new(format!(
            "the operand has rank {}, the result {}",
            from.len(),
            to.len()
        )));
    }
    for (dimension, (before, after)) in from.iter().zip(&to).enumerate() {
        if *before != 1 && before != after {
            return Err(Complaint::new(format!(
                "dimension {dimension} has extent {before} and cannot become {after}; only 1 can be repeated"
            )));
        }
    }
    Ok(())
}

/// The result has the elements of both operands.
pub fn cat(operation: CatOp<'_, '_>) -> Verified {
    let from = elements(&tensor(operation.lhs())?.shape());
    let to = elements(&tensor(operation.result())?.shape());
    if to != 2 * from {
        return Err(Complaint::new(format!(
            "the result has {to} elements, the operands have {from} each"
        )));
    }
    Ok(())
}

/// The result has the operands' shape with a 2 appended; its halves have their layout.
pub fn join(operation: JoinOp<'_, '_>) -> Verified {
    let source = tensor(operation.lhs())?;
    let result = tensor(operation.result())?;
    let shape = source.shape();
    let mut expected = shape.clone();
    expected.push(2);
    if result.shape() != expected {
        return Err(Complaint::new(format!(
            "the result must have shape {expected:?}, but has {:?}",
            result.shape()
        )));
    }
    if result.element() != source.element() {
        return Err(Complaint::new(format!(
            "the result must have elements of type '{}', but has '{}'",
            source.element(),
            result.element()
        )));
    }
    match (
        encoding_of(source).map_err(complaint)?,
        encoding_of(result).map_err(complaint)?,
    ) {
        (None, None) => Ok(()),
        (Some(before), Some(after)) => {
            let half = transfer::split(&after, &expected).map_err(complaint)?;
            if transfer::are_equal(&half, &before, &shape) {
                Ok(())
            } else {
                let context = access::context(operation.operation());
                Err(Complaint::new(format!(
                    "the halves of the result have the layout {}, the operands have {}",
                    half.to_attribute(context),
                    before.to_attribute(context)
                )))
            }
        }
        _ => Err(Complaint::new(
            "operands and result must all have a layout, or none",
        )),
    }
}

/// The last dimension has extent 2.
pub fn split(operation: SplitOp<'_, '_>) -> Verified {
    let shape = tensor(operation.src())?.shape();
    match shape.last() {
        Some(2) => Ok(()),
        _ => Err(Complaint::new(format!(
            "the last dimension must have extent 2, but the shape is {shape:?}"
        ))),
    }
}

/// The order is a permutation and gives the shape of the result.
pub fn trans(operation: TransOp<'_, '_>) -> Verified {
    let from = tensor(operation.src())?.shape();
    let to = tensor(operation.result())?.shape();
    let permuted = super::infer::permuted_shape(&from, &operation.order())?;
    if permuted != to {
        return Err(Complaint::new(format!(
            "the result must have shape {permuted:?}, but has {to:?}"
        )));
    }
    Ok(())
}

/// Ranks agree; extents of the indices equal those of the source except along the axis; the
/// result has the shape and layout of the indices and the elements of the source.
pub fn gather(operation: GatherOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let indices = tensor(operation.indices())?;
    let result = tensor(operation.result())?;
    let (from, picked) = (source.shape(), indices.shape());
    if picked != result.shape() {
        return Err(Complaint::new(format!(
            "the indices have shape {picked:?}, the result {:?}",
            result.shape()
        )));
    }
    if !same_encoding(indices.encoding(), result.encoding(), &picked) {
        return Err(Complaint::new(
            "the result must have the layout of the indices",
        ));
    }
    if source.element() != result.element() {
        return Err(Complaint::new(format!(
            "the result must have elements of type '{}', but has '{}'",
            source.element(),
            result.element()
        )));
    }
    if from.len() != picked.len() {
        return Err(Complaint::new(format!(
            "the source has rank {}, the indices {}",
            from.len(),
            picked.len()
        )));
    }
    let axis = operation.axis();
    if axis < 0 || axis as usize >= from.len() {
        return Err(Complaint::new(format!(
            "axis {axis} is out of range for rank {}",
            from.len()
        )));
    }
    for (dimension, (source, picked)) in from.iter().zip(&picked).enumerate() {
        if dimension as i64 != axis && source != picked {
            return Err(Complaint::new(format!(
                "dimension {dimension} has extent {source} in the source and {picked} in the indices"
            )));
        }
    }
    Ok(())
}

fn reduction(operands: &[Value<'_, '_>], results: &[Value<'_, '_>], axis: i64) -> Verified {
    let Some(first) = operands.first() else {
        return Err(Complaint::new("needs at least one operand"));
    };
    if operands.len() != results.len() {
        return Err(Complaint::new(format!(
            "has {} operands and {} results",
            operands.len(),
            results.len()
        )));
    }
    let rank = tensor(*first)?.rank();
    if axis < 0 || axis as usize >= rank {
        return Err(Complaint::new(format!(
            "axis {axis} is out of range for rank {rank}"
        )));
    }
    for (index, (operand, result)) in operands.iter().zip(results).enumerate() {
        let (from, to) = (
            element_or_self(operand.r#type()),
            element_or_self(result.r#type()),
        );
        if from != to {
            return Err(Complaint::new(format!(
                "operand #{index} has elements of type '{from}', result #{index} of '{to}'"
            )));
        }
    }
    Ok(())
}

/// As many results as operands, of the same elements; an axis within the rank.
pub fn reduce(operation: ReduceOp<'_, '_>) -> Verified {
    reduction(&operation.srcs(), &operation.result(), operation.axis())
}

/// As many results as operands, of the same elements; an axis within the rank.
pub fn scan(operation: ScanOp<'_, '_>) -> Verified {
    reduction(&operation.srcs(), &operation.result(), operation.axis())
}

/// The region combines two elements of every operand into one.
fn combination(
    region: RegionRef<'_, '_>,
    operands: &[Value<'_, '_>],
    terminator: &str,
) -> Verified {
    let elements: Vec<_> = operands
        .iter()
        .map(|operand| element_or_self(operand.r#type()))
        .collect();
    let Some(block) = region.first_block() else {
        return Err(Complaint::new("the region is empty"));
    };
    if block.argument_count() != 2 * elements.len() {
        return Err(Complaint::new(format!(
            "the region must take {} arguments, but takes {}",
            2 * elements.len(),
            block.argument_count()
        )));
    }
    for index in 0..block.argument_count() {
        let expected = elements[index % elements.len()];
        if let Ok(argument) = block.argument(index)
            && argument.r#type() != expected
        {
            return Err(Complaint::new(format!(
                "argument #{index} of the region must have type '{expected}', but has '{}'",
                argument.r#type()
            )));
        }
    }
    let last = block.terminator();
    let found = last.map(|last| {
        last.name()
            .as_string_ref()
            .as_str()
            .unwrap_or_default()
            .to_owned()
    });
    let Some(last) = last.filter(|_| found.as_deref() == Some(terminator)) else {
        return Err(Complaint::new(format!(
            "the region must end with '{terminator}', not '{}'",
            found.unwrap_or_default()
        )));
    };
    if last.operand_count() != elements.len() {
        return Err(Complaint::new(format!(
            "the region must yield {} values, but yields {}",
            elements.len(),
            last.operand_count()
        )));
    }
    for (index, (value, expected)) in last.operands().zip(&elements).enumerate() {
        if value.r#type() != *expected {
            return Err(Complaint::new(format!(
                "value #{index} that the region yields must have type '{expected}', but has '{}'",
                value.r#type()
            )));
        }
    }
    Ok(())
}

/// The rules for regions of tt operations.
pub mod regions {
    use super::{
        MapElementwiseOp, MapElementwiseReturnOp, ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp,
        Verified, combination,
    };
    use crate::types::element_or_self;
    use llopt_mlir::{diagnostic::Complaint, dialect::EffectKind, ir::OperationExt};
    use melior::ir::{BlockLike, RegionLike, Type, Value, ValueLike, operation::OperationLike};

    /// The region combines two elements of every operand into one.
    pub fn reduce(operation: ReduceOp<'_, '_>) -> Verified {
        combination(
            operation.combine_op(),
            &operation.srcs(),
            ReduceReturnOp::NAME,
        )
    }

    /// The region combines two elements of every operand into one.
    pub fn scan(operation: ScanOp<'_, '_>) -> Verified {
        combination(
            operation.combine_op(),
            &operation.srcs(),
            ScanReturnOp::NAME,
        )
    }

    /// The region takes `pack` elements of each operand, yields `pack` of each result, and does
    /// not write memory.
    pub fn map_elementwise(operation: MapElementwiseOp<'_, '_>) -> Verified {
        let pack = usize::try_from(operation.pack()).unwrap_or(1);
        let repeated = |values: Vec<Value<'_, '_>>| -> Vec<String> {
            values
                .iter()
                .flat_map(|value| {
                    let element: Type<'_> = element_or_self(value.r#type());
                    std::iter::repeat_n(element.to_string(), pack)
                })
                .collect()
        };
        let expected = repeated(operation.srcs());
        let Some(block) = operation.scalar_op().first_block() else {
            return Err(Complaint::new("the region is empty"));
        };
        let arguments: Vec<String> = (0..block.argument_count())
            .filter_map(|index| block.argument(index).ok())
            .map(|argument| argument.r#type().to_string())
            .collect();
        if arguments != expected {
            return Err(Complaint::new(format!(
                "the region must take ({}), but takes ({})",
                expected.join(", "),
                arguments.join(", ")
            )));
        }
        let yielded = repeated(operation.result());
        let mut block = Some(block);
        while let Some(current) = block {
            let mut next = current.first_operation();
            while let Some(inner) = next {
                if let Some(last) = MapElementwiseReturnOp::of(inner) {
                    let types: Vec<String> = last
                        .result()
                        .iter()
                        .map(|value| value.r#type().to_string())
                        .collect();
                    if types != yielded {
                        return Err(Complaint::new(format!(
                            "the region must yield ({}), but yields ({})",
                            yielded.join(", "),
                            types.join(", ")
                        )));
                    }
                } else if inner
                    .effects()
                    .unwrap_or_default()
                    .iter()
                    .any(|effect| effect.kind == EffectKind::Write)
                {
                    return Err(Complaint::new(format!(
                        "the region must not write memory, but '{}' does",
                        inner.name().as_string_ref().as_str().unwrap_or_default()
                    )));
                }
                next = inner.next_in_block();
            }
            block = current.next_in_region();
        }
        Ok(())
    }
}

/// One bin at least, and one dimension on both sides.
pub fn histogram(operation: HistogramOp<'_, '_>) -> Verified {
    for (what, value) in [("operand", operation.src()), ("result", operation.result())] {
        let shape = tensor(value)?.shape();
        if shape.len() != 1 {
            return Err(Complaint::new(format!(
                "the {what} must have one dimension, but has shape {shape:?}"
            )));
        }
    }
    Ok(())
}

/// Shapes of a matrix product, with a factor on K and on M or N for packed operands.
pub(crate) fn product_shapes(a: &[i64], b: &[i64], c: &[i64], packing: [i64; 4]) -> Verified {
    let rank = c.len();
    if rank != 2 && rank != 3 {
        return Err(Complaint::new(format!(
            "a matrix product has two dimensions, or three with a batch; the result has shape {c:?}"
        )));
    }
    if a.len() != rank || b.len() != rank {
        return Err(Complaint::new(format!(
            "operands and result must have one rank, but have shapes {a:?}, {b:?} and {c:?}"
        )));
    }
    let [a_m, a_k, b_k, b_n] = packing;
    let (k_left, k_right) = (a[rank - 1] * a_k, b[rank - 2] * b_k);
    if k_left != k_right {
        return Err(Complaint::new(format!(
            "K is {k_left} in the left operand {a:?} and {k_right} in the right one {b:?}"
        )));
    }
    if rank == 3 && (a[0] != c[0] || b[0] != c[0]) {
        return Err(Complaint::new(format!(
            "the batch extents differ: {}, {} and {}",
            a[0], b[0], c[0]
        )));
    }
    let (m, n) = (a[rank - 2] * a_m, b[rank - 1] * b_n);
    if m != c[rank - 2] || n != c[rank - 1] {
        return Err(Complaint::new(format!(
            "the operands give a product of {m}x{n}, the result has shape {c:?}"
        )));
    }
    Ok(())
}

/// Shapes fit; operands are equally wide; with layouts, the operands' are those of operands of
/// the result's layout.
pub fn dot(operation: DotOp<'_, '_>) -> Verified {
    let a = tensor(operation.a())?;
    let b = tensor(operation.b())?;
    let c = tensor(operation.c())?;
    product_shapes(&a.shape(), &b.shape(), &c.shape(), [1; 4])?;
    if bits(a.element()) != bits(b.element()) {
        return Err(Complaint::new(format!(
            "the operands must have elements of one width, but have '{}' and '{}'",
            a.element(),
            b.element()
        )));
    }
    let encodings = [a, b, c].map(encoding_of);
    let [a, b, c] = encodings;
    match (
        a.map_err(complaint)?,
        b.map_err(complaint)?,
        c.map_err(complaint)?,
    ) {
        (None, None, _) => Ok(()),
        (Some(a), Some(b), Some(c)) => operand_layouts(&a, &b, &c),
        (a, b, c) => Err(Complaint::new(format!(
            "operands and accumulator must all have a layout; missing: {}",
            [("a", a), ("b", b), ("c", c)]
                .into_iter()
                .filter(|(_, encoding)| encoding.is_none())
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

fn operand_layouts(a: &Encoding, b: &Encoding, c: &Encoding) -> Verified {
    let mut widths = Vec::new();
    for (index, (name, encoding)) in [("a", a), ("b", b)].into_iter().enumerate() {
        let Encoding::DotOperand(operand) = encoding else {
            continue;
        };
        if operand.op_idx as usize != index {
            return Err(Complaint::new(format!(
                "operand `{name}` has a layout with opIdx = {}; it must be {index}",
                operand.op_idx
            )));
        }
        if *operand.parent != *c {
            return Err(Complaint::new(format!(
                "operand `{name}` is laid out for a product of another layout ({}) than the result ({})",
                operand.parent.name(),
                c.name()
            )));
        }
        widths.push(operand.k_width);
    }
    match widths[..] {
        [left, right] if left != right => Err(Complaint::new(format!(
            "the operands' layouts have kWidth {left} and {right}; they must agree"
        ))),
        [_] => Err(Complaint::new(
            "one operand has a layout of operands, the other has not",
        )),
        _ => Ok(()),
    }
}

/// Shapes fit, packing included; scales have one entry per M or N and per group along K.
pub fn dot_scaled(operation: DotScaledOp<'_, '_>) -> Verified {
    let a = tensor(operation.a())?.shape();
    let b = tensor(operation.b())?.shape();
    let c = tensor(operation.c())?.shape();
    let packed = |kind: ScaleDotElemType, along_k: bool| match (kind, along_k) {
        (ScaleDotElemType::E2m1, true) => (2, 1),
        (ScaleDotElemType::E2m1, false) => (1, 2),
        _ => (1, 1),
    };
    let (a_k, a_m) = packed(operation.a_elem_type(), operation.lhs_k_pack());
    let (b_k, b_n) = packed(operation.b_elem_type(), operation.rhs_k_pack());
    product_shapes(&a, &b, &c, [a_m, a_k, b_k, b_n])?;
    let rank = c.len();
    let k = a[rank - 1] * a_k;
    for (name, scale, extent, what) in [
        ("a_scale", operation.a_scale(), c[rank - 2], "M"),
        ("b_scale", operation.b_scale(), c[rank - 1], "N"),
    ] {
        let Some(scale) = scale else { continue };
        let scale = tensor(scale)?;
        let shape = scale.shape();
        if shape.len() != rank {
            return Err(Complaint::new(format!(
                "`{name}` has rank {}, the operands {rank}",
                shape.len()
            )));
        }
        if shape[rank - 2] != extent {
            return Err(Complaint::new(format!(
                "`{name}` has {} rows, {what} is {extent}",
                shape[rank - 2]
            )));
        }
        let group = if class_of(scale.element()) == TypeSet::F8E4M3FN {
            16
        } else {
            32
        };
        if shape[rank - 1] != k / group {
            return Err(Complaint::new(format!(
                "`{name}` has {} scales along K; K of {k} in groups of {group} needs {}",
                shape[rank - 1],
                k / group
            )));
        }
    }
    Ok(())
}

/// One stride and one extent per dimension of the block.
pub fn make_tensor_descriptor(operation: MakeTensorDescOp<'_, '_>) -> Verified {
    let Some(block) = TensorDesc::of(operation.result().r#type()).and_then(TensorDesc::block)
    else {
        return Err(Complaint::new("the block must be a ranked tensor"));
    };
    let (rank, count) = (block.rank(), operation.shape().len());
    if count != rank {
        return Err(Complaint::new(format!(
            "has {count} extents and strides, the block has rank {rank}"
        )));
    }
    Ok(())
}

fn block_of<'c>(descriptor: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    TensorDesc::of(descriptor.r#type())
        .and_then(TensorDesc::signless_block)
        .ok_or_else(|| Complaint::new("the block of the descriptor must be a ranked tensor"))
}

/// The tensor is the block, except for leading extents of 1 that it may lack.
fn block_access(descriptor: Value<'_, '_>, value: Value<'_, '_>, indices: usize) -> Verified {
    let block = block_of(descriptor)?;
    let moved = tensor(value)?;
    let (from, to) = (block.shape(), moved.shape());
    if indices != from.len() {
        return Err(Complaint::new(format!(
            "has {indices} indices, the block has rank {}",
            from.len()
        )));
    }
    let dropped = from.len().saturating_sub(to.len());
    if from[..dropped].iter().any(|extent| *extent != 1) || from[dropped..] != to {
        return Err(Complaint::new(format!(
            "the block has shape {from:?}, the tensor {to:?}; only leading extents of 1 may be dropped"
        )));
    }
    if block.element() != moved.element() {
        return Err(Complaint::new(format!(
            "the block has elements of type '{}', the tensor of '{}'",
            block.element(),
            moved.element()
        )));
    }
    Ok(())
}

/// The result is the block.
pub fn descriptor_load(operation: DescriptorLoadOp<'_, '_>) -> Verified {
    block_access(
        operation.desc(),
        operation.result(),
        operation.indices().len(),
    )
}

/// The operand is the block.
pub fn descriptor_store(operation: DescriptorStoreOp<'_, '_>) -> Verified {
    block_access(operation.desc(), operation.src(), operation.indices().len())
}

/// The operand is the block; the update exists for its elements.
pub fn descriptor_reduce(operation: DescriptorReduceOp<'_, '_>) -> Verified {
    block_access(operation.desc(), operation.src(), operation.indices().len())?;
    let element = tensor(operation.src())?.element();
    let kind = operation.kind();
    let only_integers = match kind {
        DescriptorReduceKind::Add | DescriptorReduceKind::Min | DescriptorReduceKind::Max => false,
        DescriptorReduceKind::Inc
        | DescriptorReduceKind::Dec
        | DescriptorReduceKind::And
        | DescriptorReduceKind::Or
        | DescriptorReduceKind::Xor => true,
    };
    if only_integers && element.is_float() {
        return Err(Complaint::new(format!(
            "there is no update `{kind}` for elements of type '{element}'"
        )));
    }
    Ok(())
}

/// The rules that rows picked by index follow: the rows are a matrix of at least 8 rows and 32
/// bytes, one row for each index.
pub(crate) fn picked_rows(rows: &[i64], element: Type<'_>, offsets: RankedTensor<'_>) -> Verified {
    let picked = offsets.shape();
    let [count] = picked[..] else {
        return Err(Complaint::new(format!(
            "the row numbers must have one dimension, but have shape {picked:?}"
        )));
    };
    let [height, width] = rows[..] else {
        return Err(Complaint::new(format!(
            "the rows must form a matrix, but have shape {rows:?}"
        )));
    };
    if height < 8 {
        return Err(Complaint::new(format!(
            "at least 8 rows are moved at once, not {height}"
        )));
    }
    let element_bits = bits(element);
    if element_bits == 0 || element_bits > 32 {
        return Err(Complaint::new(format!(
            "elements have at most 32 bits; '{element}' has {element_bits}"
        )));
    }
    let least = i64::from(32 / element_bits * 8);
    if width < least {
        return Err(Complaint::new(format!(
            "rows of '{element}' have at least {least} columns, not {width}"
        )));
    }
    if height != count {
        return Err(Complaint::new(format!(
            "there are {count} row numbers for {height} rows"
        )));
    }
    Ok(())
}

fn picked_block(
    descriptor: Value<'_, '_>,
    rows: Value<'_, '_>,
    offsets: Value<'_, '_>,
) -> Verified {
    let block = block_of(descriptor)?;
    let shape = block.shape();
    let [1, columns] = shape[..] else {
        return Err(Complaint::new(format!(
            "the block must be one row, but has shape {shape:?}"
        )));
    };
    let rows = tensor(rows)?;
    picked_rows(&rows.shape(), rows.element(), tensor(offsets)?)?;
    if rows.shape()[1] != columns {
        return Err(Complaint::new(format!(
            "the block has {columns} columns, the rows {}",
            rows.shape()[1]
        )));
    }
    if rows.element() != block.element() {
        return Err(Complaint::new(format!(
            "the block has elements of type '{}', the rows of '{}'",
            block.element(),
            rows.element()
        )));
    }
    Ok(())
}

/// The block is one row; the result has one row per index.
pub fn descriptor_gather(operation: DescriptorGatherOp<'_, '_>) -> Verified {
    picked_block(operation.desc(), operation.result(), operation.x_offsets())
}

/// The block is one row; the operand has one row per index.
pub fn descriptor_scatter(operation: DescriptorScatterOp<'_, '_>) -> Verified {
    picked_block(operation.desc(), operation.src(), operation.x_offsets())
}

/// One sign flag per value.
pub fn print(operation: PrintOp<'_, '_>) -> Verified {
    let (values, flags) = (operation.args().len(), operation.is_signed().len());
    if values != flags {
        return Err(Complaint::new(format!(
            "has {values} values and {flags} entries in isSigned"
        )));
    }
    Ok(())
}
