//! Matrices and subspaces over F2 against sets of all their vectors.

use std::collections::BTreeSet;

use llopt_layout::f2::{Echelon, Matrix, Subspace};
use proptest::prelude::*;

const BITS: u32 = 6;

fn vectors() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(0u32..1 << BITS, 0..8)
}

/// All sums, by the definition.
fn sums(vectors: &[u32]) -> BTreeSet<u32> {
    (0u32..1 << vectors.len())
        .map(|choice| {
            let chosen = vectors
                .iter()
                .enumerate()
                .filter(|(i, _)| choice >> i & 1 == 1);
            chosen.fold(0, |acc, (_, v)| acc ^ v)
        })
        .collect()
}

fn members(space: &Subspace) -> BTreeSet<u32> {
    sums(&space.basis())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn elimination_finds_rank_membership_solutions_and_representatives(vs in vectors()) {
        let echelon = Echelon::of(&vs);
        let all = sums(&vs);
        prop_assert_eq!(1 << echelon.rank(), all.len());
        let mut representatives = BTreeSet::new();
        for v in 0..1 << BITS {
            prop_assert_eq!(echelon.contains(v), all.contains(&v));
            match echelon.solve(v) {
                Some(recipe) => {
                    let sum = (0..vs.len()).filter(|i| recipe >> i & 1 == 1).fold(0, |a, i| a ^ vs[i]);
                    prop_assert_eq!(sum, v);
                }
                None => prop_assert!(!all.contains(&v)),
            }
            prop_assert!(all.contains(&(echelon.reduce(v) ^ v)));
            representatives.insert(echelon.reduce(v));
        }
        prop_assert_eq!(representatives.len() * all.len(), 1 << BITS);
        // The unit vectors at the other components span a complement.
        let units: Vec<u32> =
            (0..BITS).filter(|b| echelon.pivots() >> b & 1 == 0).map(|b| 1 << b).collect();
        let kept: Vec<u32> = echelon.vectors().chain(units).collect();
        prop_assert_eq!(sums(&kept).len(), 1 << BITS);
    }

    #[test]
    fn subspaces_intersect_add_and_have_complements(a in vectors(), b in vectors()) {
        let (u, w) = (Subspace::span(&a), Subspace::span(&b));
        let (su, sw) = (sums(&a), sums(&b));
        prop_assert_eq!(&members(&u), &su);
        prop_assert_eq!(u == w, su == sw);
        prop_assert_eq!(u.contains_all(&w), sw.is_subset(&su));
        let both: BTreeSet<_> = su.intersection(&sw).copied().collect();
        prop_assert_eq!(members(&u.intersection(&w)), both);
        let sum: Vec<u32> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(members(&u.sum(&w)), sums(&sum));
        prop_assert_eq!(u.dimension_of_sum(&w), u.sum(&w).dimension());

        let whole = Subspace::all(BITS);
        let c = u.complement_in(&whole);
        prop_assert_eq!(u.intersection(&c).dimension(), 0);
        prop_assert_eq!(u.sum(&c), whole);

        let s = Subspace::common_complement(&u, &w, &whole);
        prop_assert_eq!(s.dimension(), BITS - u.dimension().max(w.dimension()));
        prop_assert_eq!(s.intersection(&u).dimension(), 0);
        prop_assert_eq!(s.intersection(&w).dimension(), 0);

        let o = u.orthogonal();
        prop_assert_eq!(o.dimension() + u.dimension(), 32);
        prop_assert!(su.iter().all(|x| o.basis().iter().all(|y| (x & y).count_ones() % 2 == 0)));
        prop_assert_eq!(o.orthogonal(), u);
    }

    #[test]
    fn matrices_multiply_transpose_and_have_rank_and_kernel(
        a in proptest::collection::vec(0u32..1 << BITS, 6),
        b in proptest::collection::vec(0u32..1 << BITS, 6),
    ) {
        let (m, n) = (Matrix::from_columns(&a), Matrix::from_columns(&b));
        let mn = m.multiply(&n);
        let mut images = BTreeSet::new();
        let mut kernel = 0;
        for x in 0..1 << BITS {
            prop_assert_eq!(mn.apply(x), m.apply(n.apply(x)));
            images.insert(m.apply(x));
            kernel += u32::from(m.apply(x) == 0);
        }
        prop_assert_eq!(images.len(), 1 << m.rank());
        prop_assert_eq!(kernel, 1 << m.kernel().len());
        prop_assert_eq!(m.transpose(BITS).transpose(BITS), m);
        prop_assert_eq!(m.transpose(BITS).rank(), m.rank());
        for (x, y) in [(1, 2), (7, 21), (63, 32)] {
            let parity = |v: u32| v.count_ones() % 2;
            prop_assert_eq!(parity(m.apply(x) & y), parity(x & m.transpose(BITS).apply(y)));
        }
        match m.inverse() {
            Some(inverse) => {
                prop_assert_eq!(m.multiply(&inverse), Matrix::identity(BITS));
                prop_assert_eq!(inverse.multiply(&m), Matrix::identity(BITS));
            }
            None => prop_assert!(m.rank() < BITS),
        }
        match m.solve(&n) {
            Some(x) => prop_assert_eq!(m.multiply(&x), n),
            None => prop_assert!(b.iter().any(|v| !images.contains(v))),
        }
    }
}

#[test]
fn large_subspaces_meet_by_duality() {
    let a = Subspace::all(30);
    let b = Subspace::span(&(2..32).map(|i| 1 << i).collect::<Vec<_>>());
    assert_eq!(a.intersection(&b).dimension(), 28);
}
