//! Bad input: the error names the dimension and the basis vector at fault, word for word.

use llopt_layout::{BitPermutation, Dim, LayoutError, LinearLayout};

const D0: Dim = Dim::tensor(0);
const D1: Dim = Dim::tensor(1);

fn lanes() -> LinearLayout {
    LinearLayout::from_bases(
        &[
            (Dim::LANE, &[[1, 0], [0, 1]][..]),
            (Dim::WARP, &[[2, 0]][..]),
        ],
        &[(D0, 4), (D1, 2)],
    )
    .expect("well formed")
}

fn says(result: Result<LinearLayout, LayoutError>, text: &str) {
    assert_eq!(result.expect_err("must be rejected").to_string(), text);
}

#[test]
fn bad_bases_are_named() {
    says(
        LinearLayout::from_bases(&[(Dim::LANE, &[vec![1, 0], vec![2]])], &[(D0, 4), (D1, 2)]),
        "basis vector 1 of `lane` has 1 of 2 entries, one per output dimension",
    );
    says(
        LinearLayout::from_bases(&[(Dim::LANE, &[[1], [4]])], &[(D0, 4)]),
        "basis vector 1 of `lane` maps to 4 in `dim0`, whose size is 4",
    );
    says(
        LinearLayout::from_bases(&[(Dim::LANE, &[[1]])], &[(D0, 6)]),
        "dimension `dim0` has size 6, which is not a power of two",
    );
    says(
        LinearLayout::from_bases(&[(Dim::LANE, &[[1]])], &[(D0, 0)]),
        "dimension `dim0` has size 0, which is not a power of two",
    );
    says(
        LinearLayout::from_bases(&[(Dim::LANE, &[[1, 0]])], &[(D0, 2), (D0, 2)]),
        "output dimension `dim0` appears twice",
    );
    says(
        LinearLayout::from_bases(&[(Dim::LANE, &[[1]]), (Dim::LANE, &[[1]])], &[(D0, 2)]),
        "input dimension `lane` appears twice",
    );
    says(
        LinearLayout::from_bases(&[(Dim::LANE, &[[1]][..])], &[(D0, 1 << 31), (D1, 4)]),
        "output dimension `dim1` brings the layout to 33 bits; at most 32 fit",
    );
    says(
        LinearLayout::from_bases(&[(Dim::OFFSET, &[[0]; 40])], &[(D0, 2)]),
        "input dimension `offset` brings the layout to 40 bits; at most 32 fit",
    );
    says(
        LinearLayout::from_bases_surjective(&[(Dim::LANE, &[[1], [4]])], &[D0]),
        "not surjective: no input maps to `dim0` = 2",
    );
    says(
        LinearLayout::from_bases_surjective(&[(Dim::LANE, &[[u32::MAX]])], &[D0]),
        "basis vector 0 of `lane` maps to 4294967295 in `dim0`, whose size is 2147483648",
    );
    let many: Vec<(Dim, u32)> = (0..30).map(|i| (Dim::tensor(i), 1)).collect();
    says(
        LinearLayout::from_bases::<[u32; 0]>(&[], &many),
        "30 output dimensions; at most 24 fit",
    );
    says(
        LinearLayout::identity_1d(3, Dim::LANE, D0),
        "dimension `lane` has size 3, which is not a power of two",
    );
    says(
        LinearLayout::strided_1d(1 << 20, 1 << 20, Dim::LANE, D0),
        "output dimension `dim0` brings the layout to 40 bits; at most 32 fit",
    );
}

#[test]
fn bad_coordinates_are_named() {
    let l = lanes();
    let text = |input: &[(Dim, u32)]| l.apply(input).expect_err("must be rejected").to_string();
    assert_eq!(text(&[(Dim::LANE, 1)]), "input dimension `warp` is missing");
    assert_eq!(
        text(&[(Dim::LANE, 4), (Dim::WARP, 0)]),
        "coordinate 4 is outside of `lane`, whose size is 4"
    );
    assert_eq!(text(&[(D0, 0)]), "the layout has no input dimension `dim0`");
    assert_eq!(
        text(&[(Dim::LANE, 0), (Dim::LANE, 0)]),
        "input dimension `lane` appears twice"
    );
}

#[test]
fn operands_that_do_not_fit_are_named() {
    let l = lanes();
    let wide = LinearLayout::from_bases(
        &[
            (Dim::LANE, &[[1, 0], [0, 1]][..]),
            (Dim::WARP, &[[2, 0], [0, 2]][..]),
        ],
        &[(D0, 4), (D1, 4)],
    )
    .expect("well formed");
    says(
        l.compose(&l),
        "the layout has no output dimension `dim0`"
            .replace("output", "input")
            .as_str(),
    );
    says(
        wide.invert_and_compose(&l),
        "output dimension `dim1` has size 4 where 2 is required",
    );
    let zero = LinearLayout::zeros_1d(4, Dim::LANE, D0, 4).expect("well formed");
    let id = LinearLayout::identity_1d(4, Dim::WARP, D0).expect("well formed");
    says(
        id.invert_and_compose(&zero),
        "basis vector 0 of `warp` is not in the image of the layout that is inverted",
    );
    says(zero.invert(), "not surjective: no input maps to `dim0` = 1");
    let twice = LinearLayout::from_bases(&[(Dim::LANE, &[[1], [1]])], &[(D0, 2)]).expect("formed");
    says(
        twice.invert(),
        "not injective: basis vector 1 of `lane` is a sum of the ones before it",
    );
    says(
        l.transpose_outs(&[D1]),
        "output dimension `dim0` is missing",
    );
    says(
        l.transpose_ins(&[D1, Dim::LANE]),
        "the layout has no input dimension `dim1`",
    );
    says(
        l.reshape_outs(&[(D0, 16)]),
        "the output dimensions hold 2^3 points and cannot become 2^4",
    );
    says(
        l.resize_in(Dim::LANE, 8),
        "input dimension `lane` has size 8 where 4 is required",
    );
    says(
        l.rename_in(Dim::LANE, Dim::WARP),
        "input dimension `warp` appears twice",
    );
    says(l.concat_ins(&l), "input dimension `lane` appears twice");
    says(
        l.sublayout(&[Dim::BLOCK], &[]),
        "the layout has no input dimension `block`",
    );
    says(
        l.squeeze_in(Dim::LANE),
        "input dimension `lane` has size 4 where 1 is required",
    );
    let swapped = l
        .transpose_ins(&[Dim::WARP, Dim::LANE])
        .expect("a permutation");
    says(
        l.product(&swapped),
        "input dimensions `lane` and `warp` appear in opposite orders in the operands",
    );
}

#[test]
fn bad_axes_and_extents_are_named() {
    let l = lanes();
    says(
        l.permute_axes(&[0, 0]),
        "axis 0 is repeated or outside of a tensor of rank 2",
    );
    says(l.permute_axes(&[0]), "output dimension `dim1` is missing");
    says(
        l.expand_axis(3),
        "axis 3 is repeated or outside of a tensor of rank 2",
    );
    says(
        l.reduce_axis(2),
        "axis 2 is repeated or outside of a tensor of rank 2",
    );
    says(
        l.broadcast(&[8, 2]),
        "output dimension `dim0` has size 4 where 8 is required",
    );
    says(
        l.split().map(|(half, _)| half),
        "basis vector 1 of `lane` maps to `dim1`, which one register bit alone may do",
    );
    let named = l.rename_out(D0, Dim::OFFSET).expect("a new name");
    says(
        named.reduce_axis(0),
        "output dimension 0 is `offset` where `dim0` is expected",
    );
}

#[test]
fn bad_orders_of_bits_are_named() {
    let text = |order: &[u8]| {
        BitPermutation::new(Dim::REGISTER, 2, order)
            .map(|_| ())
            .unwrap_err()
    };
    assert!(matches!(
        text(&[2]),
        LayoutError::CoordinateOutOfRange { value: 2, .. }
    ));
    assert!(matches!(
        text(&[1, 1]),
        LayoutError::NotInjective { bit: 1, .. }
    ));
}
