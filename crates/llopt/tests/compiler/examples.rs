//! The examples of this crate work.

#[path = "../../examples/softmax.rs"]
mod softmax;

#[test]
fn softmax_equals_plain_rust_on_both_vendors() {
    softmax::main().unwrap();
}
