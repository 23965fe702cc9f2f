//! Which blocks of a cluster a block writes to: those at certain *distances*, which are masks of the block's number,
//! given by generators.

/// The sums of generators, each once if the generators are independent; the first is zero.
pub fn distances(generators: &[u32]) -> impl Iterator<Item = u32> {
    (0..1u32 << generators.len()).map(|chosen| {
        let all = generators.iter().enumerate();
        all.filter(|(i, _)| chosen >> i & 1 == 1)
            .fold(0, |sum, (_, distance)| sum ^ distance)
    })
}
