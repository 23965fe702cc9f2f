//! Descriptors that the launcher makes: parameters that the source of a kernel does not have.

use llopt_dialects::layout::argument_tensor::{ARGUMENT_TENSOR, ArgumentTensor, Sum, Term};
use llopt_dialects::tables::types::TensorDesc;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, ValueExt, attr};
use melior::ir::{OperationRef, Value, ValueLike};

use super::exact::{Exact, Variable};
use super::reading::Reading;
use super::tile::{Dim, Tile};
use crate::layouts::retype_function;

/// The attributes of a function's arguments.
const ATTRIBUTES: &str = "arg_attrs";

/// The tensor of a tile in terms of the kernel's arguments.
///
/// # Errors
/// It depends on something else.
pub(super) fn tensor_of<'c: 'a, 'a>(
    tile: &Tile<'c, 'a>,
    reading: &Reading<'c, 'a>,
) -> Result<ArgumentTensor, String> {
    let dims: Vec<_> = tile.order.iter().map(|&dim| &tile.dims[dim]).collect();
    let sums = |of: fn(&Dim) -> &Exact| {
        let sums = dims.iter().map(|dim| sum(of(dim), reading));
        sums.collect::<Option<Vec<Sum>>>()
    };
    let find = || {
        Some(ArgumentTensor {
            base: position(tile.base)?,
            shape: sums(|dim| &dim.extent)?,
            strides: sums(|dim| &dim.stride)?,
            reach: dims.iter().map(|dim| reach(dim)).collect(),
        })
    };
    find().ok_or_else(|| "its tensor does not follow from the kernel's arguments".to_owned())
}

/// The elements that a program accesses along a dimension; zero if its loop moves along it.
fn reach(dim: &Dim) -> i64 {
    if dim.step == 0 { dim.size } else { 0 }
}

/// The position of an argument of a kernel.
fn position(value: Value<'_, '_>) -> Option<usize> {
    let (block, position) = value.argument_of()?;
    block.is_entry().then_some(position)
}

/// The parameter with the address of the tensor that a parameter describes, if the launcher makes it; otherwise the
/// parameter itself.
pub(super) fn base_of<'c: 'a, 'a>(parameter: Value<'c, 'a>) -> Value<'c, 'a> {
    let find = || {
        let (block, position) = parameter.argument_of()?;
        let function = melior::ir::BlockLike::parent_operation(&block)?;
        let attributes = function.attr(ATTRIBUTES).and_then(AttributeExt::as_array)?;
        let tensor = attributes.get(position)?.get(ARGUMENT_TENSOR)?;
        block.argument_value(ArgumentTensor::from_attribute(tensor)?.base)
    };
    find().unwrap_or(parameter)
}

fn sum(of: &Exact, reading: &Reading<'_, '_>) -> Option<Sum> {
    let terms = of.terms().map(|(coefficient, factors)| {
        let mut divisor = 1i64;
        let mut argument = |variable: &Variable| match *variable {
            Variable::Scalar(number) => {
                let (dividend, by) = reading.quotient_of(number);
                divisor = divisor.checked_mul(by)?;
                position(dividend)
            }
            Variable::Progress | Variable::Index(_) | Variable::Remainder(_) => None,
        };
        let arguments = factors.iter().map(&mut argument);
        let arguments = arguments.collect::<Option<_>>()?;
        Some(Term {
            coefficient,
            arguments,
            divisor,
        })
    });
    terms.collect()
}

/// Adds a parameter with the descriptor of a tensor to a kernel, unless it has one already.
pub(super) fn parameter<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    tensor: &ArgumentTensor,
    tile: &Tile<'c, 'a>,
) -> Value<'c, 'a> {
    let context = function.ctx();
    let entry = function.region_ref(0).and_then(RegionExt::entry);
    let entry = entry.expect("a function with a loop has a body");
    let r#type = TensorDesc::get(tile.block());
    let attribute = tensor.to_attribute(context);
    let attributes = function.attr(ATTRIBUTES).and_then(AttributeExt::as_array);
    let mut attributes = attributes.unwrap_or_default();
    let none = attr::dictionary(context, &[]);
    attributes.resize(entry.argument_values().len(), none);
    for (value, known) in entry.argument_values().zip(&attributes) {
        if value.r#type() == r#type && known.get(ARGUMENT_TENSOR) == Some(attribute) {
            return value;
        }
    }
    attributes.push(attr::dictionary(context, &[(ARGUMENT_TENSOR, attribute)]));
    let argument = entry.append_argument(r#type, function.loc());
    function.set_attr(ATTRIBUTES, attr::array(context, &attributes));
    retype_function(function);
    argument
}
