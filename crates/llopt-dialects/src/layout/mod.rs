//! Conversion of encodings to linear layouts, and transfer of layouts through operations that move no element.

pub mod argument_tensor;
pub mod encoding;
pub mod product;
pub mod tensor_descriptor;
pub mod transfer;
