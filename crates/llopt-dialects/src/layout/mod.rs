//! From encodings to linear layouts, and how layouts pass through operations that move no element.

pub mod encoding;
pub mod product;
pub mod tensor_descriptor;
pub mod transfer;
