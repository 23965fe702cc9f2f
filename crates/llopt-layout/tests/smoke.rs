//! The operations of the algebra on one small example each.
use llopt_layout::{Dim, LinearLayout};

#[test]
fn transpose_through_memory() {
    let (d0, d1) = (Dim::tensor(0), Dim::tensor(1));
    let a = LinearLayout::from_bases(
        &[
            (Dim::REGISTER, &[[1, 0], [2, 0]][..]),
            (Dim::LANE, &[[0, 1], [0, 2], [0, 4]][..]),
        ],
        &[(d0, 4), (d1, 8)],
    )
    .unwrap();
    let inverse = a.invert().unwrap();
    let identity = a.compose(&inverse).unwrap();
    assert!(identity.is_trivial_over(&[Dim::REGISTER, Dim::LANE]));
    let tile = LinearLayout::identity_1d(2, Dim::REGISTER, d0).unwrap();
    let rest = a.divide_left(&tile).unwrap();
    assert_eq!(&tile * &rest, a.clone());
    assert_eq!(a.num_consecutive_in_out(), 4);
    let c = a.invert_and_compose(&a).unwrap();
    assert!(c.is_trivial_over(&[Dim::REGISTER, Dim::LANE]));
}
