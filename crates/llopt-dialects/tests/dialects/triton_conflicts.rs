//! Bank conflicts against Triton 3.6.0, row by row of the table that `tools/oracle` wrote.
//!
//! Triton counts, for the widest vectors that an access allows, the wavefronts of one phase less one,
//! and knows memories of 32 banks only. Its count is exact where a vector covers a bank; below, it
//! misses lanes that want different words of a bank and differ inside the word, so the exact count
//! can be higher.

use crate::table;
use llopt_dialects::layout::encoding::Encoding;
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Attribute;

/// The layout of an encoding in IR syntax.
fn layout(context: &Context, text: &str, shape: &[u64]) -> LinearLayout {
    let attribute = Attribute::parse(context, text).expect(text);
    let encoding = Encoding::from_attribute(attribute).expect(text);
    encoding.linear_layout(shape).expect(text)
}

/// The elements, as log2, that every lane can move with one vector: offsets that are registers by
/// themselves, while everything else keeps them aligned.
fn vector_log2(places: &LinearLayout, bits: u32) -> u32 {
    let registers = places.flat_bases_of(Dim::REGISTER);
    let mut vector = 0;
    while bits << (vector + 1) <= 128
        && registers.contains(&(1 << vector))
        && places
            .flat_bases()
            .iter()
            .all(|&offset| offset == 1 << vector || offset >> vector & 1 == 0)
    {
        vector += 1;
    }
    vector
}

#[test]
fn wavefronts_agree_with_triton_where_vectors_cover_a_bank() {
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).expect("the dialects register");
    let context = Context::new();
    context.append_dialect_registry(&registry);
    let banks = Target::parse("cuda:90").expect("a target").banks();

    let rows = table::rows("triton_conflicts.tsv.gz");
    assert!(rows.len() >= 2000, "{} rows", rows.len());
    let (mut exact, mut narrow) = (0, 0);
    for row in &rows {
        let [registers, memory, shape, bits, expected] = &row[..] else {
            panic!("malformed row {row:?}");
        };
        let shape = table::shape(shape);
        let bits: u32 = bits.parse().expect("bits");
        let expected: u32 = expected.parse().expect("a count");
        let registers = layout(&context, registers, &shape).remove_zero_bases(Dim::REGISTER);
        let memory = layout(&context, memory, &shape);
        let offsets = [Dim::OFFSET, Dim::BLOCK];
        let places = registers
            .invert_and_compose(&memory)
            .and_then(|places| places.transpose_outs(&offsets))
            .expect("an access");
        let vector = vector_log2(&places, bits);
        let bytes = bits / 8;
        let covers = bits << vector >= 32;
        // One phase of the access: a vector of 2 or 4 words halves or quarters the lanes.
        let dropped = (bits << vector).max(32).trailing_zeros() - 5;
        let lanes = places.flat_bases_of(Dim::LANE);
        let lanes = &lanes[..lanes.len().saturating_sub(dropped as usize)];
        let addresses: Vec<u32> = lanes.iter().map(|&offset| offset * bytes).collect();
        let found = banks.wavefronts(vector + bytes.trailing_zeros(), &addresses) - 1;
        if covers {
            assert_eq!(found, expected, "{row:?}");
            exact += 1;
        } else {
            assert!(found >= expected, "{found} {row:?}");
            narrow += 1;
        }
    }
    assert!(exact >= 1000, "{exact} exact and {narrow} narrow rows");
}
