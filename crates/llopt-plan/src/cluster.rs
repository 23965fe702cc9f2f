//! Whom a block of a cluster writes to: the blocks at certain *distances*, masks of the block's number that are
//! given by generators.

/// The sums of generators, each once if these are independent; the first is zero.
pub fn distances(generators: &[u32]) -> impl Iterator<Item = u32> {
    (0..1u32 << generators.len()).map(|chosen| {
        let all = generators.iter().enumerate();
        all.filter(|(i, _)| chosen >> i & 1 == 1)
            .fold(0, |sum, (_, distance)| sum ^ distance)
    })
}
