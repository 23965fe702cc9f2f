//! The reader of text under libFuzzer, with the mutations of the tests beside libFuzzer's own.

#![no_main]

#[path = "../../tests/damage/mod.rs"]
mod damage;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::cell::RefCell;

thread_local! {
    /// The context and how many files it has read: it keeps all types and attributes of each.
    static CONTEXT: RefCell<(melior::Context, u32)> = RefCell::new((damage::context(), 0));
}

fuzz_target!(|data: &[u8]| {
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
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = damage::Dice::new(u64::from(seed));
    if dice.below(2) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let file = data[..size].to_vec();
    let damaged = damage::damage(damage::Form::Text, &file, &file, &mut dice);
    let length = damaged.len().min(max_size);
    data[..length].copy_from_slice(&damaged[..length]);
    length
});
