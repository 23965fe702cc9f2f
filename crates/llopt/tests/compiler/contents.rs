//! Contents of buffers for tests: small whole numbers, so that every sum of products of them is exact.

use llopt::sim::Argument;

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
