//! Arguments of `llopt run` that are tensors with a descriptor object: `desc:FILE.npy`, then any of `:nan` (outside
//! of the tensor is NaN), `:box=64x64`, `:swizzle=128` (bytes), `:type=6` (the element type's number). Missing values
//! follow from the kernel.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use llopt::sim::{Argument, TensorArgument};
use llopt::{ArgumentDescriptor, TensorDescriptor};

use crate::npy::{self, Array};

/// The prefix of such an argument.
pub const PREFIX: &str = "desc:";

/// A tensor argument as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Spec {
    path: PathBuf,
    nan: bool,
    box_shape: Option<Vec<u32>>,
    swizzle_bytes: Option<u32>,
    element_type: Option<u32>,
}

fn parse(text: &str) -> Result<Spec> {
    let mut parts = text.strip_prefix(PREFIX).unwrap_or(text).split(':');
    let path = parts.next().unwrap_or_default();
    ensure!(
        path.ends_with(".npy"),
        "the argument '{text}' names no .npy file"
    );
    let mut spec = Spec {
        path: path.into(),
        ..Spec::default()
    };
    for part in parts {
        let malformed = || format!("the argument '{text}' has '{part}', which means nothing");
        match part.split_once('=') {
            None if part == "nan" => spec.nan = true,
            Some(("box", extents)) => {
                let extents: Result<Vec<u32>, _> = extents.split('x').map(str::parse).collect();
                spec.box_shape = Some(extents.with_context(malformed)?);
            }
            Some(("swizzle", bytes)) => {
                let bytes: u32 = bytes.parse().with_context(malformed)?;
                ensure!(matches!(bytes, 0 | 32 | 64 | 128), malformed());
                spec.swizzle_bytes = Some(bytes);
            }
            Some(("type", number)) => {
                spec.element_type = Some(number.parse().with_context(malformed)?);
            }
            _ => bail!(malformed()),
        }
    }
    Ok(spec)
}

/// The argument that a launcher adds: the descriptor of a tensor that others describe.
pub fn of_arguments(tensor: &ArgumentDescriptor, arguments: &[Argument]) -> Argument {
    let number = |argument: usize| match arguments.get(argument)? {
        Argument::Int(number) => Some(*number),
        _ => None,
    };
    let encoding = &tensor.encoding;
    let ones = || {
        let rank = encoding.block_size.len();
        (vec![1; rank], vec![1; rank])
    };
    // The kernel does not use the descriptor of what is no tensor.
    let (shape, strides) = tensor.extents(number).unwrap_or_else(ones);
    let tensor_argument = TensorArgument {
        contents: Vec::new(),
        shape,
        strides,
        element_bytes: encoding.elem_size,
        element_type: encoding.elem_type,
        swizzle_mode: encoding.swizzle,
        box_shape: encoding.block_size.clone(),
        fill_nan: false,
    };
    Argument::DescriptorOf(tensor.base, tensor_argument)
}

/// The tensor of an argument, with its array. [`complete`] adds boxes and types that the user did not give.
///
/// # Errors
/// The argument is malformed, or the file cannot be read or is not a row-major array.
pub fn read(text: &str) -> Result<(PathBuf, Array, TensorArgument)> {
    let spec = parse(text)?;
    let array = npy::read(&spec.path)?;
    let name = spec.path.display();
    let shape = array
        .shape()
        .filter(|shape| (1..=5).contains(&shape.len()))
        .with_context(|| format!("'{name}' is no row-major array of 1 to 5 dimensions"))?;
    let elements: u64 = shape.iter().map(|&extent| u64::from(extent)).product();
    ensure!(elements > 0, "'{name}' is empty");
    let mut strides = vec![1u64; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * u64::from(shape[dim]);
    }
    let tensor = TensorArgument {
        contents: array.data.clone(),
        element_bytes: (array.data.len() as u64 / elements) as u32,
        element_type: spec.element_type.unwrap_or(u32::MAX),
        swizzle_mode: spec.swizzle_bytes.map_or(u32::MAX, |bytes| {
            bytes.checked_ilog2().map_or(0, |log2| log2 - 4)
        }),
        box_shape: spec.box_shape.unwrap_or_default(),
        fill_nan: spec.nan,
        shape,
        strides,
    };
    Ok((spec.path, array, tensor))
}

/// Adds the values that the kernel specifies for its parameter.
///
/// # Errors
/// A value is given neither by the user nor by the kernel, or the two contradict each other.
pub fn complete(tensor: &mut TensorArgument, kernel: Option<&TensorDescriptor>) -> Result<()> {
    if let Some(kernel) = kernel {
        ensure!(
            kernel.elem_size == tensor.element_bytes,
            "a tensor of {} bytes for each element is given where the kernel takes one of {}",
            tensor.element_bytes,
            kernel.elem_size
        );
        if tensor.box_shape.is_empty() {
            tensor.box_shape.clone_from(&kernel.block_size);
        }
        if tensor.element_type == u32::MAX {
            tensor.element_type = kernel.elem_type;
        }
        if tensor.swizzle_mode == u32::MAX {
            tensor.swizzle_mode = kernel.swizzle;
        }
    }
    let unknown = tensor.element_type == u32::MAX || tensor.swizzle_mode == u32::MAX;
    ensure!(
        !unknown && !tensor.box_shape.is_empty(),
        "LLVM IR does not say how its tensors are described: give :box=, :swizzle= and :type="
    );
    ensure!(
        tensor.box_shape.len() == tensor.shape.len(),
        "a tensor of rank {} is given where the kernel takes one of rank {}",
        tensor.shape.len(),
        tensor.box_shape.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_read() {
        let spec = parse("desc:d/x.npy:nan:box=8x64:swizzle=128:type=6").unwrap();
        assert_eq!(spec.path, PathBuf::from("d/x.npy"));
        assert!(spec.nan);
        assert_eq!(spec.box_shape, Some(vec![8, 64]));
        assert_eq!(
            (spec.swizzle_bytes, spec.element_type),
            (Some(128), Some(6))
        );
        for text in [
            "desc:x.npz",
            "desc:x.npy:box=8xy",
            "desc:x.npy:swizzle=48",
            "desc:x.npy:y",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
