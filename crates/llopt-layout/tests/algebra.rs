//! Every sentence of the algebra, checked against brute force over all points.

mod points;

use std::collections::{BTreeMap, BTreeSet};

use llopt_layout::{BitPermutation, Dim, LayoutError, LinearLayout, Side};
use points::{image_of, layout, layout_onto, outputs, points, surjective};
use proptest::prelude::*;

type Point = Vec<(Dim, u32)>;

const INS: [Dim; 3] = [Dim::REGISTER, Dim::LANE, Dim::WARP];
const SWAPPED: [Dim; 2] = [Dim::tensor(1), Dim::tensor(0)];

fn outs(sizes: &[u32]) -> Vec<(Dim, u32)> {
    sizes
        .iter()
        .enumerate()
        .map(|(i, &log2)| (Dim::tensor(i), 1 << log2))
        .collect()
}

fn xor(a: &[(Dim, u32)], b: &[(Dim, u32)]) -> Vec<(Dim, u32)> {
    a.iter().zip(b).map(|(x, y)| (x.0, x.1 ^ y.1)).collect()
}

fn lookup(point: &[(Dim, u32)], dim: Dim) -> u32 {
    point.iter().find(|p| p.0 == dim).map_or(0, |p| p.1)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn apply_is_linear_and_agrees_with_its_bases(l in layout(&INS, 3, 2, 3)) {
        let all = points(&l);
        for x in &all {
            let fx = image_of(&l, x);
            // The sum of the bases at the bits of x.
            let mut sum: BTreeMap<Dim, u32> = l.out_dims().iter().map(|&d| (d, 0)).collect();
            for &(dim, value) in x {
                for bit in 0..l.in_dim_size_log2(dim) {
                    if value >> bit & 1 == 1 {
                        for (&out, entry) in l.out_dims().iter().zip(&*l.basis(dim, bit).unwrap()) {
                            prop_assert_eq!(*entry, l.basis_entry(dim, bit, out));
                            *sum.get_mut(&out).unwrap() ^= entry;
                        }
                    }
                }
            }
            for &(out, value) in &fx {
                prop_assert_eq!(sum[&out], value);
            }
            let flat = l.flatten_input(x).unwrap();
            prop_assert_eq!(&*l.unflatten_input(flat), &x[..]);
            prop_assert_eq!(&*l.unflatten_output(l.apply_flat(flat)), &fx[..]);
            let y = &all[all.len() / 2];
            prop_assert_eq!(image_of(&l, &xor(x, y)), xor(&fx, &image_of(&l, y)));
        }
    }

    #[test]
    fn rank_kernel_and_image_count_points(l in layout(&INS, 3, 2, 3)) {
        let all = points(&l);
        let images: BTreeSet<_> = all.iter().map(|x| image_of(&l, x)).collect();
        prop_assert_eq!(images.len(), 1 << l.rank());
        prop_assert_eq!(l.is_injective(), images.len() == all.len());
        prop_assert_eq!(l.is_surjective(), images.len() as u64 == 1 << l.total_out_size_log2());
        prop_assert_eq!(l.is_invertible(), l.is_injective() && l.is_surjective());

        let zero = all.iter().filter(|x| image_of(&l, x).iter().all(|c| c.1 == 0)).count();
        prop_assert_eq!(zero, 1 << l.kernel().len());
        for &k in &l.kernel() {
            prop_assert_eq!(l.apply_flat(k), 0);
        }
        prop_assert_eq!(l.image().len() as u32, l.rank());

        // Fixing the free bits at zero loses no image and leaves no two alike.
        let free = l.free_variable_masks();
        for &(dim, mask) in &free {
            prop_assert_eq!(l.free_variable_mask(dim), mask);
        }
        let fixed: Vec<_> =
            all.iter().filter(|x| x.iter().all(|&(d, v)| v & lookup(&free, d) == 0)).collect();
        let reduced: BTreeSet<_> = fixed.iter().map(|x| image_of(&l, x)).collect();
        prop_assert_eq!(fixed.len(), reduced.len());
        prop_assert_eq!(reduced, images);
    }

    #[test]
    fn missing_output_is_named(l in layout(&INS, 2, 2, 3)) {
        let reached: BTreeSet<_> = points(&l).iter().map(|x| image_of(&l, x)).collect();
        match l.clone().require_surjective() {
            Ok(same) => prop_assert!(same == l && l.is_surjective()),
            Err(LayoutError::NotSurjective { dim, bit }) => {
                let missing: Vec<_> =
                    l.out_dims().iter().map(|&d| (d, if d == dim { 1 << bit } else { 0 })).collect();
                prop_assert!(!reached.contains(&missing));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn consecutive_elements(l in layout(&INS, 3, 2, 3)) {
        let (in_dim, out_dim) = (l.in_dims()[0], l.out_dims()[0]);
        let holds = |n: u32| {
            points(&l).iter().all(|x| {
                let v = x[0].1 % n;
                let mut base = x.clone();
                base[0].1 -= v;
                let mut expected = image_of(&l, &base);
                expected[0].1 += v;
                expected[0].1 < l.out_dim_size(out_dim) as u32 && image_of(&l, x) == expected
            })
        };
        let n = l.num_consecutive_in_out();
        prop_assert!(holds(n));
        prop_assert!(u64::from(n) == l.in_dim_size(in_dim) || !holds(2 * n));
    }

    #[test]
    fn contiguity_of_what_one_thread_holds(l in layout(&INS, 3, 2, 3)) {
        for out in [Dim::tensor(0), Dim::tensor(1)] {
            let held: BTreeSet<_> = points(&l).iter()
                .filter(|x| x.iter().all(|&(d, v)| d == Dim::REGISTER || v == 0))
                .map(|x| image_of(&l, x))
                .collect();
            let whole = |n: u64| held.iter().all(|element| (0..n as u32).all(|v| {
                let mut other = element.clone();
                for c in other.iter_mut().filter(|c| c.0 == out) {
                    c.1 = c.1 / n as u32 * n as u32 + v;
                }
                held.contains(&other)
            }));
            let n = l.contiguity(Dim::REGISTER, out);
            prop_assert!(whole(n));
            prop_assert!(n == l.out_dim_size(out) || !whole(2 * n));
        }
        prop_assert_eq!(l.contiguity(Dim::BLOCK, Dim::tensor(0)), 1);
    }

    #[test]
    fn a_product_applies_each_factor_to_its_own_bits(
        a in layout(&[Dim::REGISTER, Dim::LANE], 2, 2, 2),
        b in layout(&[Dim::LANE, Dim::WARP], 2, 2, 2),
        rename in any::<bool>(),
    ) {
        // The outputs dim0, dim1 of a, and dim1, dim2 of b: shared and different names.
        let b = if rename {
            b.rename_out(Dim::tensor(1), Dim::tensor(2)).unwrap()
                .rename_out(Dim::tensor(0), Dim::tensor(1)).unwrap()
        } else {
            b
        };
        let p = a.product(&b).unwrap();
        prop_assert_eq!(p.rank(), a.rank() + b.rank());
        for x in points(&p) {
            let minor: Vec<_> = a.in_dims().iter()
                .map(|&d| (d, lookup(&x, d) % a.in_dim_size(d) as u32)).collect();
            let major: Vec<_> = b.in_dims().iter()
                .map(|&d| (d, lookup(&x, d) / a.in_dim_size(d) as u32)).collect();
            let (fa, fb) = (image_of(&a, &minor), image_of(&b, &major));
            for (d, value) in image_of(&p, &x) {
                let expected = lookup(&fa, d) + lookup(&fb, d) * a.out_dim_size(d) as u32;
                prop_assert_eq!(value, expected);
            }
        }
        prop_assert_eq!(a.product(&LinearLayout::empty()).unwrap(), a.clone());
        prop_assert_eq!(LinearLayout::empty().product(&a).unwrap(), a);
    }

    #[test]
    fn steps_in_place_are_products(
        a in layout(&INS[..2], 3, 2, 3),
        log2 in 0..4u32,
        holder in 0..3usize,
        dim in 0..3usize,
    ) {
        // The last input and the last output are not there yet.
        let (size, holder, dim) = (1 << log2, INS[holder], Dim::tensor(dim));
        let mut grown = a.clone();
        grown.times_identity(size, holder, dim).unwrap();
        let identity = LinearLayout::identity_1d(size, holder, dim).unwrap();
        prop_assert_eq!(grown, a.product(&identity).unwrap());
        let mut copied = a.clone();
        copied.times_zeros(size, holder, dim).unwrap();
        let zeros = LinearLayout::zeros_1d(size, holder, dim, 1).unwrap();
        prop_assert_eq!(copied, a.product(&zeros).unwrap());
    }

    #[test]
    fn product_is_associative_and_division_undoes_it(
        a in layout(&INS, 1, 2, 1), b in layout(&INS, 1, 2, 1), c in layout(&INS, 1, 2, 1),
    ) {
        let left = a.product(&b).unwrap().product(&c).unwrap();
        prop_assert_eq!(&left, &a.product(&b.product(&c).unwrap()).unwrap());
        let bc = b.product(&c).unwrap();
        prop_assert_eq!(left.divide_left(&a), Some(bc));
        prop_assert_eq!(left.divide_right(&c), Some(a.product(&b).unwrap()));
    }

    #[test]
    fn quotient_exists_exactly_when_the_product_gives_the_layout_back(
        a in layout(&[Dim::REGISTER, Dim::LANE], 2, 2, 2),
        tile in layout(&[Dim::REGISTER, Dim::LANE], 1, 2, 1),
        divisible in any::<bool>(),
    ) {
        let whole = if divisible { tile.product(&a).unwrap() } else { a.clone() };
        match whole.divide_left(&tile) {
            Some(c) => {
                prop_assert_eq!(tile.product(&c).unwrap(), whole.clone());
                prop_assert_eq!(c.in_dims(), whole.in_dims());
                prop_assert_eq!(c.out_dims(), whole.out_dims());
            }
            None => prop_assert!(!divisible),
        }
        let whole = if divisible { a.product(&tile).unwrap() } else { a };
        match whole.divide_right(&tile) {
            Some(c) => prop_assert_eq!(c.product(&tile).unwrap(), whole),
            None => prop_assert!(!divisible),
        }
    }

    #[test]
    fn composition_is_application_twice(
        a in layout(&INS, 2, 2, 2),
        b in layout(&SWAPPED, 2, 2, 3),
    ) {
        let fits = a.out_dims().iter().all(|&d| a.out_dim_size(d) <= b.in_dim_size(d));
        match a.compose(&b) {
            Err(LayoutError::SizeMismatch { side: Side::Output, dim, .. }) => {
                prop_assert!(!fits && a.out_dim_size(dim) > b.in_dim_size(dim));
            }
            Err(other) => prop_assert!(false, "{other}"),
            Ok(c) => {
                prop_assert!(fits);
                for x in points(&a) {
                    prop_assert_eq!(image_of(&c, &x), image_of(&b, &image_of(&a, &x)));
                }
            }
        }
    }

    #[test]
    fn pseudo_inverse_is_a_right_inverse(l in layout(&INS, 3, 2, 2)) {
        match l.pseudo_invert() {
            Err(LayoutError::NotSurjective { .. }) => prop_assert!(!l.is_surjective()),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(inverse) => {
                prop_assert!(l.is_surjective());
                let free = l.free_variable_masks();
                for y in outputs(&l) {
                    let x = image_of(&inverse, &y);
                    prop_assert_eq!(image_of(&l, &x), y);
                    prop_assert!(x.iter().all(|&(d, v)| v & lookup(&free, d) == 0));
                }
            }
        }
        prop_assert_eq!(l.invert().is_ok(), l.is_invertible());
    }

    #[test]
    fn conversion_reads_the_right_element_from_one_place(
        (a, b) in (1u32..=3, 1u32..=3).prop_flat_map(|(x, y)| {
            let sizes = [x, y];
            (surjective(&INS, 3, &sizes), layout_onto(&INS, 3, &sizes))
        }),
        agree in any::<bool>(),
    ) {
        // Half of the pairs agree on the warps, broadcast or not.
        let b = if agree {
            let part = |l: &LinearLayout, dims: &[Dim]| l.sublayout(dims, l.out_dims()).unwrap();
            part(&b, &[Dim::REGISTER, Dim::LANE])
                .concat_ins(&part(&a, &[Dim::WARP])).unwrap()
        } else {
            b
        };
        let c = b.invert_and_compose(&a).unwrap();
        prop_assert_eq!(c.in_dims(), b.in_dims());
        prop_assert_eq!(c.out_dims(), a.in_dims());
        let same: Vec<Dim> = INS.iter().copied().filter(|&d| {
            a.in_dim_size_log2(d) == b.in_dim_size_log2(d)
                && (0..a.in_dim_size_log2(d)).all(|i| a.basis(d, i) == b.basis(d, i))
        }).collect();
        let mut sources: BTreeMap<Point, Point> = BTreeMap::new();
        for x in points(&b) {
            let place = image_of(&c, &x);
            prop_assert_eq!(image_of(&a, &place), image_of(&b, &x));
            // Identity where the two agree.
            if x.iter().all(|&(d, v)| v == 0 || same.contains(&d)) {
                for &d in &same {
                    prop_assert_eq!(lookup(&place, d), lookup(&x, d));
                }
            }
            // One source for each element elsewhere.
            if x.iter().all(|&(d, v)| v == 0 || !same.contains(&d)) {
                let element = image_of(&b, &x);
                prop_assert_eq!(sources.entry(element).or_insert_with(|| place.clone()), &place);
            }
        }
        if a.is_invertible() {
            prop_assert_eq!(c, b.compose(&a.invert().unwrap()).unwrap());
        }
    }

    #[test]
    fn what_is_not_in_the_image_is_named(
        (a, b) in (0u32..=2, 0u32..=2)
            .prop_flat_map(|(x, y)| (layout_onto(&INS, 1, &[x, y]), layout_onto(&INS, 1, &[x, y]))),
    ) {
        let image: BTreeSet<_> = points(&a).iter().map(|x| image_of(&a, x)).collect();
        let inside = points(&b).iter().all(|x| image.contains(&image_of(&b, x)));
        match b.invert_and_compose(&a) {
            Ok(_) => prop_assert!(inside),
            Err(LayoutError::OutsideImage { dim, bit }) => {
                let at: Vec<_> = b.in_dims().iter()
                    .map(|&d| (d, if d == dim { 1 << bit } else { 0 })).collect();
                prop_assert!(!image.contains(&image_of(&b, &at)));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn reordering_and_regrouping_keep_the_map(l in layout(&INS, 2, 3, 2)) {
        let ins = [Dim::WARP, Dim::REGISTER, Dim::LANE];
        let out = [Dim::tensor(2), Dim::tensor(0), Dim::tensor(1)];
        let t = l.transpose_ins(&ins).unwrap().transpose_outs(&out).unwrap();
        prop_assert_eq!(t.in_dims(), &ins[..]);
        prop_assert_eq!(t.out_dims(), &out[..]);
        for x in points(&l) {
            let (fx, ft) = (image_of(&l, &x), image_of(&t, &x));
            prop_assert!(fx.iter().all(|&(d, v)| lookup(&ft, d) == v));
        }
        prop_assert_eq!(
            t.transpose_ins(l.in_dims()).unwrap().transpose_outs(l.out_dims()).unwrap(), l.clone());

        let flat = l.flatten_ins().flatten_outs();
        for x in points(&l) {
            let x = l.flatten_input(&x).unwrap();
            prop_assert_eq!(flat.apply_flat(x), l.apply_flat(x));
        }
        let sizes: Vec<_> = l.in_dims().iter().map(|&d| (d, l.in_dim_size(d) as u32)).collect();
        let out_sizes: Vec<_> = l.out_dims().iter().map(|&d| (d, l.out_dim_size(d) as u32)).collect();
        let back = flat.reshape_ins(&sizes).unwrap().reshape_outs(&out_sizes).unwrap();
        prop_assert_eq!(back, l);
    }

    #[test]
    fn resizing_restricts_and_reduces(l in layout(&INS, 2, 2, 2), small in 0u32..3) {
        let (dim, out) = (Dim::LANE, Dim::tensor(1));
        match l.resize_in(dim, 1 << small) {
            Ok(r) => for x in points(&r) {
                prop_assert_eq!(image_of(&r, &x), image_of(&l, &x));
            },
            Err(_) => prop_assert!(small > l.in_dim_size_log2(dim)),
        }
        match l.resize_out(out, 1 << small) {
            Ok(r) => for x in points(&l) {
                let mut expected = image_of(&l, &x);
                expected.iter_mut().filter(|c| c.0 == out).for_each(|c| c.1 %= 1 << small);
                prop_assert_eq!(image_of(&r, &x), expected);
            },
            Err(_) => prop_assert!(small > l.out_dim_size_log2(out)),
        }
        match l.extend_out(out, 1 << small) {
            Ok(r) => for x in points(&l) {
                prop_assert_eq!(image_of(&r, &x), image_of(&l, &x));
                prop_assert_eq!(r.out_dim_size_log2(out), small);
            },
            Err(_) => prop_assert!(small < l.out_dim_size_log2(out)),
        }
    }

    #[test]
    fn wrapping_resizes_and_reorders_in_one_step(l in layout(&INS, 2, 2, 2), small in [0u32..3, 0u32..3]) {
        let order = [Dim::tensor(1), Dim::tensor(0)];
        let log2 = |dim: Dim| small[dim.tensor_index().unwrap()].min(l.out_dim_size_log2(dim));
        let mut expected = l.transpose_outs(&order).unwrap();
        for dim in order {
            expected = expected.resize_out(dim, 1 << log2(dim)).unwrap();
        }
        let size = |dim: Dim| 1u64 << small[dim.tensor_index().unwrap()];
        prop_assert_eq!(l.wrap_outs(&order, size).unwrap(), expected);
        prop_assert!(l.wrap_outs(&order, |_| 3).is_err());
        prop_assert!(l.wrap_outs(&order[..1], size).is_err());
    }

    #[test]
    fn bits_that_are_not_retained_are_zero(l in layout(&INS, 2, 2, 2), kept in 0usize..4) {
        let is_kept = |bit: usize| kept >> bit & 1 == 1;
        let r = llopt_layout::retain_bits(&l, Dim::LANE, is_kept);
        let bits = 0..l.in_dim_size_log2(Dim::LANE);
        let retained: Vec<u32> = bits.filter(|bit| is_kept(*bit as usize)).collect();
        prop_assert_eq!(r.in_dim_size_log2(Dim::LANE) as usize, retained.len());
        for x in points(&r) {
            let spread = |lane: u32| {
                let bits = retained.iter().enumerate();
                bits.fold(0, |all, (from, to)| all | (lane >> from & 1) << to)
            };
            let of_l: Vec<_> =
                x.iter().map(|&(dim, v)| (dim, if dim == Dim::LANE { spread(v) } else { v })).collect();
            prop_assert_eq!(image_of(&r, &x), image_of(&l, &of_l));
        }
    }

    #[test]
    fn each_output_bit_belongs_to_one_dimension(l in layout(&INS, 2, 2, 2)) {
        let mut flat = 0;
        for (position, &dim) in l.out_dims().iter().enumerate() {
            for bit in 0..l.out_dim_size_log2(dim) {
                prop_assert_eq!(llopt_layout::out_bit(&l, flat), Some((position, bit)));
                flat += 1;
            }
        }
        prop_assert_eq!(llopt_layout::out_bit(&l, flat), None);
    }

    #[test]
    fn concatenation_and_sublayouts(
        (a, b) in (0u32..=2, 0u32..=2).prop_flat_map(|(x, y)| (
            layout_onto(&[Dim::REGISTER, Dim::LANE], 2, &[x, y]),
            layout_onto(&[Dim::WARP, Dim::BLOCK], 2, &[x, y]),
        )),
    ) {
        let both = a.concat_ins(&b).unwrap();
        for x in points(&both) {
            let (xa, xb) = (&x[..2], &x[2..]);
            prop_assert_eq!(image_of(&both, &x), xor(&image_of(&a, xa), &image_of(&b, xb)));
        }
        prop_assert_eq!(both.sublayout(a.in_dims(), a.out_dims()).unwrap(), a.clone());
        prop_assert_eq!(both.sublayout(b.in_dims(), b.out_dims()).unwrap(), b);
        let d = Dim::tensor(0);
        let rest = both.sublayout(both.in_dims(), &[Dim::tensor(1)]).unwrap();
        let first = both.sublayout(both.in_dims(), &[d]).unwrap();
        prop_assert_eq!(first.concat_outs(&rest).unwrap(), both.clone());
        for dim in both.in_dims() {
            for out in both.out_dims() {
                let zero = points(&both).iter().all(|x| {
                    let only: Vec<_> =
                        x.iter().map(|&(e, v)| (e, if e == *dim { v } else { 0 })).collect();
                    lookup(&image_of(&both, &only), *out) == 0
                });
                prop_assert_eq!(both.sublayout_is_zero(&[*dim], &[*out]), zero);
            }
        }
    }

    #[test]
    fn trivial_over_and_quotient(
        rest in layout(&[Dim::REGISTER, Dim::LANE], 2, 2, 2), bits in 0u32..3, spoil in any::<bool>(),
    ) {
        let warp = LinearLayout::identity_1d(1 << bits, Dim::WARP, Dim::WARP).unwrap();
        let whole = rest.product(&warp).unwrap();
        prop_assert!(whole.is_trivial_over(&[Dim::WARP]));
        prop_assert_eq!(whole.quotient(&[Dim::WARP]), Some(rest.clone()));
        if spoil && bits > 0 && rest.total_in_size_log2() > 0 {
            // Let the first input move a warp as well.
            let mixed = LinearLayout::from_bases(
                &whole.in_dims().iter().map(|&d| (d, (0..whole.in_dim_size_log2(d)).map(|i| {
                    let mut basis = whole.basis(d, i).unwrap().to_vec();
                    if d != Dim::WARP && i == 0 {
                        basis[2] ^= 1;
                    }
                    basis
                }).collect::<Vec<_>>())).collect::<Vec<_>>().iter()
                    .map(|(d, v)| (*d, &v[..])).collect::<Vec<_>>(),
                &whole.out_dims().iter().map(|&d| (d, whole.out_dim_size(d) as u32))
                    .collect::<Vec<_>>(),
            ).unwrap();
            prop_assert!(!mixed.is_trivial_over(&[Dim::WARP]));
            prop_assert_eq!(mixed.quotient(&[Dim::WARP]), None);
        }
    }

    #[test]
    fn zero_bases_go_and_repeats_go(l in layout(&INS, 3, 2, 2)) {
        let reduced = l.remove_zero_bases(Dim::REGISTER);
        let image = |l: &LinearLayout| -> BTreeSet<_> {
            points(l).iter().map(|x| image_of(l, x)).collect()
        };
        prop_assert_eq!(image(&reduced), image(&l));
        prop_assert!((0..reduced.in_dim_size_log2(Dim::REGISTER))
            .all(|i| reduced.basis(Dim::REGISTER, i).unwrap().iter().any(|&v| v != 0)));

        let permutation = l.without_repeats(Dim::REGISTER);
        let once = permutation.apply_to(&l).unwrap();
        prop_assert_eq!(image(&once), image(&l));
        prop_assert!(once.sublayout(&[Dim::REGISTER], once.out_dims()).unwrap().is_injective());
        for x in points(&once) {
            let before: Vec<_> = x.iter()
                .map(|&(d, v)| (d, if d == Dim::REGISTER { permutation.source(v) } else { v }))
                .collect();
            prop_assert_eq!(image_of(&once, &x), image_of(&l, &before));
        }
    }

    #[test]
    fn permutations_invert_and_chain(order in Just([0u8, 1, 2, 3]).prop_shuffle(), l in layout(&INS, 4, 1, 4)) {
        let bits = l.in_dim_size_log2(Dim::REGISTER);
        let order: Vec<u8> = order.into_iter().filter(|&b| u32::from(b) < bits).collect();
        let p = BitPermutation::new(Dim::REGISTER, bits, &order).unwrap();
        let inverse = p.inverse().unwrap();
        prop_assert!(p.then(&inverse).unwrap().is_identity());
        prop_assert_eq!(inverse.apply_to(&p.apply_to(&l).unwrap()).unwrap(), l);
    }

    #[test]
    fn permuted_division_finds_the_tile(
        rest in layout(&INS, 2, 2, 2), tile in layout(&[Dim::REGISTER], 2, 2, 1), shuffle in any::<u64>(),
    ) {
        let whole = tile.product(&rest).unwrap();
        let bits = whole.in_dim_size_log2(Dim::REGISTER) as u8;
        let mut order: Vec<u8> = (0..bits).collect();
        let mut seed = shuffle;
        for i in (1..order.len()).rev() {
            order.swap(i, (seed % (i as u64 + 1)) as usize);
            seed /= 7;
        }
        let shuffled = BitPermutation::new(Dim::REGISTER, u32::from(bits), &order).unwrap()
            .apply_to(&whole).unwrap();
        let (permutation, quotient) = shuffled.divide_left_permuted(&tile).expect("divisible");
        prop_assert_eq!(tile.product(&quotient).unwrap(), permutation.apply_to(&shuffled).unwrap());
    }

    #[test]
    fn shape_operations_keep_every_element_in_place(l in layout(&INS, 2, 3, 2)) {
        let size = |i: usize| l.out_dim_size(Dim::tensor(i)) as u32;
        let position = |coords: &[u32], shape: &[u32]| -> u32 {
            coords.iter().zip(shape).fold(0, |acc, (&c, &n)| acc * n + c)
        };
        let shape = [size(0), size(1), size(2)];
        let permuted = l.permute_axes(&[2, 0, 1]).unwrap();
        let total: u32 = shape.iter().product();
        let flat = l.reshape_tensor(&[total]).unwrap();
        let two = l.reshape_tensor(&[shape[0] * shape[1], shape[2]]).unwrap();
        let expanded = l.expand_axis(1).unwrap();
        let joined = l.join().unwrap();
        let (split, selector) = joined.split().unwrap();
        prop_assert_eq!((&split, selector), (&l, 0));
        let reduced = l.reduce_axis(1).unwrap();
        for x in points(&l) {
            let e: Vec<u32> = image_of(&l, &x).iter().map(|c| c.1).collect();
            let get = |m: &LinearLayout, x: &[(Dim, u32)]| -> Vec<u32> {
                image_of(m, x).iter().map(|c| c.1).collect()
            };
            prop_assert_eq!(get(&permuted, &x), vec![e[2], e[0], e[1]]);
            prop_assert_eq!(get(&flat, &x), vec![position(&e, &shape)]);
            prop_assert_eq!(get(&two, &x), vec![e[0] * shape[1] + e[1], e[2]]);
            prop_assert_eq!(get(&expanded, &x), vec![e[0], 0, e[1], e[2]]);
            prop_assert_eq!(get(&reduced, &x), vec![e[0], e[2]]);
            for half in 0..2 {
                let at: Vec<_> = x.iter()
                    .map(|&(d, v)| (d, if d == Dim::REGISTER { 2 * v + half } else { v })).collect();
                prop_assert_eq!(get(&joined, &at), vec![e[0], e[1], e[2], half]);
            }
        }
        let collapsed = l.collapse_axis(1).unwrap();
        let grown = collapsed.broadcast(&[shape[0], 8, shape[2]]).unwrap();
        prop_assert_eq!(grown.in_dim_size(Dim::REGISTER), 8 * l.in_dim_size(Dim::REGISTER));
        prop_assert_eq!(
            grown.resize_in(Dim::REGISTER, l.in_dim_size(Dim::REGISTER) as u32).unwrap()
                .collapse_axis(1).unwrap(),
            collapsed.clone());
        if collapsed.is_surjective() {
            prop_assert!(grown.is_surjective());
        }
    }

    #[test]
    fn renaming_and_squeezing_change_names_only(l in layout(&INS, 2, 2, 2), other in layout(&INS, 2, 2, 2)) {
        let renamed = l.rename_in(Dim::LANE, Dim::OFFSET).unwrap()
            .rename_out(Dim::tensor(1), Dim::PARTITION).unwrap();
        let one_more = LinearLayout::zeros_1d(1, Dim::BLOCK, Dim::PARTITION, 1).unwrap();
        let wider = l.product(&one_more).unwrap();
        prop_assert_eq!(wider.squeeze_in(Dim::BLOCK).unwrap().squeeze_out(Dim::PARTITION).unwrap(), l.clone());
        let row_major = l.row_major().unwrap();
        for x in points(&l) {
            let y: Vec<_> =
                x.iter().map(|&(d, v)| (if d == Dim::LANE { Dim::OFFSET } else { d }, v)).collect();
            let fx = image_of(&l, &x);
            let fy: Vec<u32> = image_of(&renamed, &y).iter().map(|c| c.1).collect();
            prop_assert_eq!(fx.iter().map(|c| c.1).collect::<Vec<_>>(), fy);
            // The flattened output is the position in memory order, the last dimension fastest.
            let position = fx[0].1 * l.out_dim_size(Dim::tensor(1)) as u32 + fx[1].1;
            prop_assert_eq!(row_major.apply_flat(row_major.flatten_input(&x).unwrap()), position);
        }
        for dim in [Dim::REGISTER, Dim::LANE, Dim::BLOCK] {
            prop_assert_eq!(l.in_dim_size(dim), 1 << l.in_dim_size_log2(dim));
            prop_assert_eq!(l.has_in_dim(dim), l.in_dims().contains(&dim));
            prop_assert_eq!(l.flat_bases_of(dim).len() as u32, l.in_dim_size_log2(dim));
        }
        let total: u32 = l.in_dims().iter().map(|&d| l.in_dim_size_log2(d)).sum();
        prop_assert_eq!((l.total_in_size_log2(), l.flat_bases().len() as u32), (total, total));
        prop_assert_eq!(l.tensor_rank(), Ok(2));
        // Equality is that of dimensions and bases, and hashes agree with it.
        let hash = |l: &LinearLayout| {
            use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
            BuildHasherDefault::<DefaultHasher>::default().hash_one(l)
        };
        prop_assert_eq!(l == other, l.to_string() == other.to_string());
        prop_assert!(l != other || hash(&l) == hash(&other));
    }

    #[test]
    fn composition_is_associative_with_identities(
        (a, b) in (0u32..3, 0u32..3).prop_flat_map(|(x, y)| (
            layout_onto(&INS, 2, &[x, y]),
            layout_onto(&INS, 2, &[x, y]),
        )),
    ) {
        let identity = |l: &LinearLayout| l.out_dims().iter().fold(LinearLayout::empty(), |acc, &d| {
            acc * LinearLayout::identity_1d(l.out_dim_size(d) as u32, d, d).unwrap()
        });
        let id = identity(&a);
        prop_assert_eq!(a.compose(&id).unwrap(), a.clone());
        if let Ok(fetch) = b.invert_and_compose(&a) {
            prop_assert_eq!(fetch.compose(&a).unwrap().compose(&id).unwrap(), b.clone());
            prop_assert_eq!(fetch.compose(&a.compose(&id).unwrap()).unwrap(), b);
        }
    }

    #[test]
    fn bases_build_the_layout_they_came_from(l in layout(&INS, 3, 2, 3)) {
        let bases: Vec<(Dim, Vec<Vec<u32>>)> = l.in_dims().iter()
            .map(|&d| (d, (0..l.in_dim_size_log2(d)).map(|i| l.basis(d, i).unwrap().to_vec()).collect()))
            .collect();
        let borrowed: Vec<_> = bases.iter().map(|(d, v)| (*d, &v[..])).collect();
        let sizes: Vec<_> = l.out_dims().iter().map(|&d| (d, l.out_dim_size(d) as u32)).collect();
        prop_assert_eq!(LinearLayout::from_bases(&borrowed, &sizes).unwrap(), l.clone());
        if l.is_surjective() {
            prop_assert_eq!(LinearLayout::from_bases_surjective(&borrowed, l.out_dims()).unwrap(), l);
        }
    }
}

#[test]
fn one_dimensional_constructors() {
    let (i, o) = (Dim::LANE, Dim::tensor(0));
    let strided = LinearLayout::strided_1d(8, 4, i, o).unwrap();
    for x in 0..8 {
        assert_eq!(strided.apply(&[(i, x)]).unwrap()[0], (o, 4 * x));
        let identity = LinearLayout::identity_1d(8, i, o).unwrap();
        assert_eq!(identity.apply(&[(i, x)]).unwrap()[0], (o, x));
        let zeros = LinearLayout::zeros_1d(8, i, o, 2).unwrap();
        assert_eq!(zeros.apply(&[(i, x)]).unwrap()[0], (o, 0));
    }
    assert!(strided.is_injective() && !strided.is_surjective());
    assert_eq!(outs(&[3]), [(o, 8)]);
}
