//! Contents of buffers for tests: small whole numbers, so that every sum of products of them is exact.

use llopt::TensorDescriptor;
use llopt::sim::{Argument, TensorArgument};

/// A matrix with these contents, so many elements from one row to the next, with the descriptor that a kernel expects.
pub fn described(
    contents: Vec<u8>,
    shape: [u32; 2],
    of_row: u64,
    object: &TensorDescriptor,
) -> TensorArgument {
    TensorArgument {
        contents,
        shape: shape.to_vec(),
        strides: vec![of_row, 1],
        element_bytes: object.elem_size,
        element_type: object.elem_type,
        swizzle_mode: object.swizzle,
        box_shape: object.block_size.clone(),
        fill_nan: false,
    }
}

/// Numbers from -3 to 3 as f16.
pub fn halves(count: usize, seed: usize) -> Argument {
    let bytes = (0..count).flat_map(|at| {
        let number = (at * 31 + at / 7 + seed) % 7;
        u16::to_le_bytes([0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200][number])
    });
    Argument::Buffer(bytes.collect())
}

/// Numbers of 32 bits below a bound, in no order.
pub fn numbers(count: usize, bound: usize, seed: usize) -> Argument {
    let number = |at: usize| u32::try_from((at * 5 + at * at + seed) % bound);
    let words = (0..count).flat_map(|at| number(at).expect("it is small").to_le_bytes());
    Argument::Buffer(words.collect())
}
