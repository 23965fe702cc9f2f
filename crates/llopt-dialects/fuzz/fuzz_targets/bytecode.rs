//! The reader of bytecode under libFuzzer.

#![no_main]

mod reader;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use reader::Form;

fuzz_target!(|data: &[u8]| reader::read(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    reader::mutate(Form::Bytecode, data, size, max_size, seed)
});
