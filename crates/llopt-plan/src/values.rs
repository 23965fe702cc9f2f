//! The values that plans are about: element types, tensors with the layout of their registers, what is known of their
//! elements, and elements that travel in words.

pub mod element;
pub mod facts;
pub mod tensor;
pub mod types;
pub mod words;
