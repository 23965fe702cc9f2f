//! The readers under libFuzzer: what both targets do, with the mutations of the tests besides libFuzzer's own.

#[path = "../../../tests/dialects/damage/mod.rs"]
mod damage;

pub use damage::Form;

use libfuzzer_sys::fuzzer_mutate;
use std::cell::RefCell;

thread_local! {
    /// The context and how many files it has read: it keeps all types and attributes of each.
    static CONTEXT: RefCell<(melior::Context, u32)> = RefCell::new((damage::context(), 0));
}

/// Reads a file; panics if the answer is a bad one.
pub fn read(data: &[u8]) {
    CONTEXT.with_borrow_mut(|(context, count)| {
        *count += 1;
        if *count == 250 {
            *context = damage::context();
            *count = 0;
        }
        if let Err(message) = damage::check(context, data) {
            panic!("{message}");
        }
    });
}

/// Damages the file in the first `size` bytes; the new size.
pub fn mutate(form: Form, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = damage::Dice::new(u64::from(seed));
    if dice.below(2) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let file = data[..size].to_vec();
    let damaged = damage::damage(form, &file, &file, &mut dice);
    let length = damaged.len().min(max_size);
    data[..length].copy_from_slice(&damaged[..length]);
    length
}
