//! Gathering bytes: the permutes, applied to tagged bytes, give what was wanted, and are not too many.

use llopt_layout::words::{BYTES, Byte, Gather, Permute, Wanted, gather, of_elements};
use proptest::prelude::*;

/// The bytes of all words after the permutes.
fn follow(sources: u32, plan: &Gather) -> Vec<[Byte; BYTES]> {
    let mut words: Vec<[Byte; BYTES]> = (0..sources)
        .map(|word| [0, 1, 2, 3].map(|at| Byte { word, at }))
        .collect();
    for Permute {
        words: [a, b],
        selector,
    } in &plan.permutes
    {
        let both = [words[*a as usize], words[*b as usize]].concat();
        words.push(selector.map(|byte| both[usize::from(byte)]));
    }
    plan.words
        .iter()
        .map(|word| words[*word as usize])
        .collect()
}

fn check(sources: u32, wanted: &[Wanted]) -> usize {
    let plan = gather(sources, wanted);
    for (word, wanted) in follow(sources, &plan).iter().zip(wanted) {
        for (byte, wanted) in word.iter().zip(wanted) {
            assert!(wanted.is_none_or(|wanted| wanted == *byte), "{plan:?}");
        }
    }
    assert_eq!(plan.words.len(), wanted.len());
    plan.permutes.len()
}

/// What a word takes by itself.
fn alone(word: &Wanted) -> usize {
    let mut words: Vec<u32> = word.iter().flatten().map(|byte| byte.word).collect();
    words.sort_unstable();
    words.dedup();
    let in_place = (0u8..)
        .zip(word)
        .all(|(at, byte)| byte.is_none_or(|byte| byte.at == at));
    match words.len() {
        0 => 0,
        1 => usize::from(!in_place),
        several => several - 1,
    }
}

fn byte(sources: u32) -> impl Strategy<Value = Option<Byte>> {
    prop::option::weighted(
        0.9,
        (0..sources, 0..4u8).prop_map(|(word, at)| Byte { word, at }),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_gathered(
        (sources, wanted) in (1..6u32).prop_flat_map(|sources| {
            let words = prop::collection::vec([byte(sources), byte(sources), byte(sources), byte(sources)], 0..9);
            (Just(sources), words)
        }),
    ) {
        let permutes = check(sources, &wanted);
        prop_assert!(permutes <= wanted.iter().map(alone).sum());
    }

    /// The elements of a layout: place `r` has element `f(r)` for a linear bijection `f`.
    #[test]
    fn linear_rearrangements_take_two_permutes_for_a_word_at_most(
        half in any::<bool>(),
        operations in prop::collection::vec((0..6u32, 0..6u32), 0..24),
    ) {
        let mut columns: Vec<u32> = (0..6).map(|bit| 1 << bit).collect();
        for (i, j) in operations {
            if i != j {
                columns[i as usize] ^= columns[j as usize];
            }
        }
        let image = |r: u32| (0..6).filter(|bit| r >> bit & 1 == 1).fold(0, |all, bit| all ^ columns[bit as usize]);
        let places: Vec<Option<u32>> = (0..64).map(|r| Some(image(r))).collect();
        let (bits, full) = if half { (16, 2) } else { (8, 4) };
        let wanted = of_elements(bits, full, &places);
        let words = 64 / full as u32;
        let most = if half { words } else { 2 * words };
        prop_assert!(check(words, &wanted) <= most as usize);
    }
}

/// Elements at `stride` in turn make a word.
fn strided(stride: u32, count: u32) -> Vec<Option<u32>> {
    (0..count)
        .map(|i| Some(i / 4 % stride + i % 4 * stride + i / (4 * stride) * 4 * stride))
        .collect()
}

#[test]
fn a_transposition_takes_two_permutes_for_a_word() {
    assert_eq!(check(4, &of_elements(8, 4, &strided(4, 16))), 8);
    assert_eq!(check(16, &of_elements(8, 4, &strided(16, 64))), 32);
}

#[test]
fn two_words_make_a_word_with_one_permute() {
    assert_eq!(check(2, &of_elements(8, 4, &strided(2, 8))), 2);
    let halves: Vec<Option<u32>> = [0, 2, 1, 3].map(Some).into();
    assert_eq!(check(2, &of_elements(16, 2, &halves)), 2);
}

#[test]
fn words_that_exist_take_nothing() {
    let places: Vec<Option<u32>> = [4, 5, 6, 7, 0, 1, 2, 3].map(Some).into();
    assert_eq!(check(2, &of_elements(8, 4, &places)), 0);
    // What is above a lone element is not asked for: the first of each word is in place.
    let singles: Vec<Option<u32>> = (0..8).map(Some).collect();
    assert_eq!(check(2, &of_elements(8, 1, &singles)), 6);
    assert_eq!(check(4, &of_elements(16, 1, &singles)), 4);
    assert_eq!(check(8, &of_elements(32, 1, &singles)), 0);
}

/// Pieces of a transposition share permutes of pairs, too, and words that are made one at a time take some of the
/// same permutes of pairs.
#[test]
fn parts_of_a_transposition_share() {
    let wanted = of_elements(8, 4, &strided(4, 16));
    assert_eq!(check(4, &wanted[..1]), 3);
    assert_eq!(check(4, &wanted[..2]), 4);
    assert_eq!(check(4, &[wanted[0], wanted[2]]), 4);
    let pairs = |word: Wanted| gather(4, &[word]).permutes[..2].to_vec();
    assert_eq!(pairs(wanted[0]), pairs(wanted[1]));
    assert_ne!(pairs(wanted[1]), pairs(wanted[2]));
}
