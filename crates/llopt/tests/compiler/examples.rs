//! The examples of this crate do what they say.

#[path = "../../examples/softmax.rs"]
mod softmax;

#[test]
fn softmax_equals_plain_rust_on_both_vendors() {
    softmax::main().unwrap();
}
