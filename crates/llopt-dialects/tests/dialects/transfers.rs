//! Layouts transferred through operations and back: the round trip is the identity on the map from hardware places to
//! elements, and the forward transfer puts every element where the operation defines it.
//!
//! The second is checked against the semantics of the operations, place by place, without the algebra that the
//! transfers use.

use llopt_dialects::layout::encoding::{
    AmdMfma, Blocked, CgaLayout, DotOperand, Encoding, Linear, NvidiaMma, PaddedShared, Slice,
    SwizzledShared,
};
use llopt_dialects::layout::transfer;
use llopt_layout::{Dim, LinearLayout};
use proptest::prelude::*;
use proptest::sample::select;

fn power(highest: u32) -> impl Strategy<Value = u32> {
    (0..=highest).prop_map(|bit| 1 << bit)
}

fn order(rank: usize) -> impl Strategy<Value = Vec<u32>> {
    let axes: Vec<u32> = (0..rank as u32).collect();
    Just(axes).prop_shuffle()
}

fn counts(rank: usize, highest: u32) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(power(highest), rank)
}

/// No cluster, or one of two blocks that share or split a dimension.
fn cga_layout(rank: usize) -> impl Strategy<Value = CgaLayout> {
    prop::option::of((0..rank, any::<bool>())).prop_map(move |choice| match choice {
        None => CgaLayout::single(rank),
        Some((axis, splits)) => {
            let mut basis = vec![0; rank];
            basis[axis] = u32::from(splits);
            CgaLayout::from_bases(rank, vec![basis]).unwrap()
        }
    })
}

fn blocked(rank: usize) -> impl Strategy<Value = Encoding> {
    let tiles = (counts(rank, 2), counts(rank, 3), counts(rank, 1));
    (tiles, order(rank), cga_layout(rank)).prop_map(|(tiles, order, cga_layout)| {
        Encoding::Blocked(Blocked {
            size_per_thread: tiles.0,
            threads_per_warp: tiles.1,
            warps_per_cta: tiles.2,
            order,
            cga_layout,
        })
    })
}

fn product() -> impl Strategy<Value = Encoding> {
    let nvidia = (counts(2, 1), select(vec![2, 3])).prop_map(|(warps, version)| {
        let (warps_per_cta, instr_shape) = match version {
            2 => (warps, vec![16, 8]),
            _ => (vec![4, 1], vec![16, 32, 16]),
        };
        Encoding::NvidiaMma(NvidiaMma {
            version_major: version,
            version_minor: 0,
            warps_per_cta,
            cga_layout: CgaLayout::single(2),
            instr_shape,
        })
    });
    let amd = (counts(2, 1), any::<bool>(), any::<bool>()).prop_map(
        |(warps_per_cta, is_transposed, large)| {
            let instr_shape = if large {
                vec![32, 32, 8]
            } else {
                vec![16, 16, 16]
            };
            Encoding::AmdMfma(AmdMfma {
                version: 3,
                warps_per_cta,
                instr_shape,
                is_transposed,
                cga_layout: CgaLayout::single(2),
                tiles_per_warp: vec![1, 1],
                element_bit_width: 32,
            })
        },
    );
    prop_oneof![nvidia, amd]
}

fn dot_operand() -> impl Strategy<Value = Encoding> {
    (product(), 0..2u32, power(3)).prop_filter_map("is an operand", |(parent, op_idx, k_width)| {
        let operand = Encoding::DotOperand(DotOperand {
            op_idx,
            parent: Box::new(parent),
            k_width,
        });
        operand.verify().is_ok().then_some(operand)
    })
}

/// A layout of registers of this rank, of any kind.
fn registers(rank: usize) -> BoxedStrategy<Encoding> {
    let slice = (blocked(rank + 1), 0..=rank as u32).prop_map(|(parent, dim)| {
        Encoding::Slice(Slice {
            dim,
            parent: Box::new(parent),
        })
    });
    let plain = prop_oneof![3 => blocked(rank), 1 => slice];
    if rank == 2 {
        prop_oneof![3 => plain, 1 => product(), 1 => dot_operand()].boxed()
    } else {
        plain.boxed()
    }
}

fn shape(rank: usize) -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(power(6).prop_map(i64::from), rank)
        .prop_filter("is small enough", |shape| {
            shape.iter().product::<i64>() <= 1 << 14
        })
}

/// An encoding that has a layout on the shape; half of the time spelled as a linear one.
fn tensors(ranks: std::ops::Range<usize>) -> impl Strategy<Value = (Encoding, Vec<i64>)> {
    ranks
        .prop_flat_map(|rank| (registers(rank), shape(rank), any::<bool>()))
        .prop_filter_map("has a layout", |(encoding, shape, spelled)| {
            let layout = encoding.linear_layout(&transfer::extents(&shape)).ok()?;
            if spelled {
                let linear = Linear::new(layout).ok()?;
                return Some((Encoding::Linear(linear), shape));
            }
            Some((encoding, shape))
        })
}

fn map(encoding: &Encoding, shape: &[i64]) -> LinearLayout {
    encoding
        .linear_layout(&transfer::extents(shape))
        .unwrap_or_else(|error| panic!("{encoding:?} on {shape:?}: {error}"))
}

/// The element at each hardware place, register fastest.
fn elements(encoding: &Encoding, shape: &[i64]) -> Vec<Vec<i64>> {
    let layout = map(encoding, shape);
    let bits = layout.total_in_size_log2();
    (0..1u32 << bits)
        .map(|place| {
            let element = layout.unflatten_output(layout.apply_flat(place));
            (0..shape.len())
                .map(|axis| {
                    let found = element
                        .iter()
                        .find(|(dim, _)| *dim == Dim::tensor(axis))
                        .map_or(0, |(_, value)| *value);
                    i64::from(found)
                })
                .collect()
        })
        .collect()
}

/// The basis vectors of one dimension.
fn vectors(layout: &LinearLayout, dim: Dim, rank: usize) -> Vec<Vec<u32>> {
    (0..layout.in_dim_size_log2(dim))
        .map(|bit| {
            (0..rank)
                .map(|axis| layout.basis_entry(dim, bit, Dim::tensor(axis)))
                .collect()
        })
        .collect()
}

fn row_major(place: &[i64], shape: &[i64]) -> i64 {
    place
        .iter()
        .zip(shape)
        .fold(0, |index, (coordinate, extent)| index * extent + coordinate)
}

fn same_map(left: &Encoding, right: &Encoding, shape: &[i64]) {
    assert_eq!(
        map(left, shape),
        map(right, shape),
        "{left:?} and {right:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A permutation and its inverse; element by element.
    #[test]
    fn a_permutation_moves_every_coordinate_and_its_inverse_moves_it_back((encoding, shape) in tensors(1..4), seed in any::<prop::sample::Index>()) {
        let rank = shape.len();
        let mut order: Vec<i32> = (0..rank as i32).collect();
        order.rotate_left(seed.index(rank));
        if seed.index(2) == 1 {
            order.reverse();
        }
        let permuted: Vec<i64> = order.iter().map(|axis| shape[*axis as usize]).collect();
        let there = transfer::trans(&encoding, &shape, &order).unwrap();
        let back = transfer::trans(&there, &permuted, &transfer::inverse(&order)).unwrap();
        same_map(&back, &encoding, &shape);
        let (before, after) = (elements(&encoding, &shape), elements(&there, &permuted));
        prop_assert_eq!(before.len(), after.len());
        for (from, to) in before.iter().zip(&after) {
            let expected: Vec<i64> = order.iter().map(|axis| from[*axis as usize]).collect();
            prop_assert_eq!(&expected, to);
        }
        // A blocked layout stays one.
        prop_assert_eq!(
            matches!(encoding, Encoding::Blocked(_)),
            matches!(there, Encoding::Blocked(_))
        );
    }

    /// What stays in threads is what every thread finds in its own registers, element by element.
    #[test]
    fn what_stays_in_threads_is_in_their_own_registers(
        (held, wanted, to) in (1..4usize).prop_flat_map(|rank| {
            let small = prop::collection::vec(power(3).prop_map(i64::from), rank);
            (blocked(rank), blocked(rank), small)
        }),
        repeated in prop::collection::vec(any::<bool>(), 3),
        alike in any::<bool>(),
    ) {
        let wanted = if alike { held.clone() } else { wanted };
        let from: Vec<i64> = to.iter().zip(&repeated).map(|(&extent, &one)| if one { 1 } else { extent }).collect();
        let (has, needs) = (map(&held, &from), map(&wanted, &to));
        let threads = |layout: &LinearLayout| -> u32 {
            [Dim::LANE, Dim::WARP, Dim::BLOCK].map(|dim| layout.in_dim_size_log2(dim)).iter().sum()
        };
        prop_assume!([Dim::LANE, Dim::WARP, Dim::BLOCK].iter().all(|dim| {
            has.in_dim_size_log2(*dim) == needs.in_dim_size_log2(*dim)
        }));
        // Places in order, with registers fastest: those of a thread follow each other.
        let by_thread = |encoding: &Encoding, layout: &LinearLayout, shape: &[i64]| {
            let registers = 1usize << (layout.total_in_size_log2() - threads(layout));
            let all = elements(encoding, shape);
            all.chunks(registers).map(<[_]>::to_vec).collect::<Vec<_>>()
        };
        let own = by_thread(&held, &has, &from);
        let needed = by_thread(&wanted, &needs, &to);
        let expected = own.iter().zip(&needed).all(|(own, needed)| {
            needed.iter().all(|element| {
                let coordinates = element.iter().zip(&from);
                let meant: Vec<i64> = coordinates.map(|(&at, &extent)| if extent == 1 { 0 } else { at }).collect();
                own.contains(&meant)
            })
        });
        prop_assert_eq!(transfer::stays_in_threads(&held, &from, &wanted, &to), expected);
    }

    /// A reshape and the one back; elements keep their row-major number.
    #[test]
    fn a_reshape_keeps_row_major_numbers_and_its_inverse_restores_the_layout((encoding, shape) in tensors(1..4), split in prop::collection::vec(any::<prop::sample::Index>(), 14)) {
        let bits = shape.iter().product::<i64>().ilog2() as usize;
        let rank = split[0].index(3) + 1;
        let mut to = vec![1; rank];
        for choice in split.iter().cycle().take(bits) {
            to[choice.index(rank)] *= 2;
        }
        let there = transfer::reshape(&encoding, &shape, &to).unwrap();
        let back = transfer::reshape(&there, &to, &shape).unwrap();
        same_map(&back, &encoding, &shape);
        for (from, to_place) in elements(&encoding, &shape).iter().zip(&elements(&there, &to)) {
            prop_assert_eq!(row_major(from, &shape), row_major(to_place, &to));
        }
    }

    /// A dimension of extent 1, and without it.
    #[test]
    fn a_dimension_of_extent_one_moves_no_element((encoding, shape) in tensors(1..4), choice in any::<prop::sample::Index>()) {
        let axis = choice.index(shape.len() + 1);
        let mut expanded = shape.clone();
        expanded.insert(axis, 1);
        let there = transfer::expand_dims(&encoding, &shape, axis as i64).unwrap();
        let back = transfer::slice(&there, axis as i64).unwrap();
        // A slice has no registers that repeat others.
        prop_assert_eq!(
            map(&back, &shape).remove_zero_bases(Dim::REGISTER),
            map(&encoding, &shape).remove_zero_bases(Dim::REGISTER)
        );
        let (before, after) = (map(&encoding, &shape), map(&there, &expanded));
        for dim in [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK] {
            let mut from = vectors(&before, dim, shape.len());
            let mut to = vectors(&after, dim, expanded.len());
            for vector in &mut from {
                vector.insert(axis, 0);
            }
            if dim == Dim::REGISTER {
                from.retain(|vector| vector.iter().any(|entry| *entry != 0));
                to.retain(|vector| vector.iter().any(|entry| *entry != 0));
            }
            prop_assert_eq!(from, to);
        }
    }

    /// What a reduction leaves has the elements of the operand without the dimension.
    #[test]
    fn a_reduction_leaves_the_other_coordinates((encoding, shape) in tensors(2..4), choice in any::<prop::sample::Index>()) {
        let axis = choice.index(shape.len());
        let mut reduced = shape.clone();
        reduced.remove(axis);
        let there = transfer::slice(&encoding, axis as i64).unwrap();
        let (from, to) = (map(&encoding, &shape), map(&there, &reduced));
        for dim in [Dim::LANE, Dim::WARP, Dim::BLOCK] {
            for bit in 0..from.in_dim_size_log2(dim) {
                let kept = (0..shape.len()).filter(|other| *other != axis);
                for (position, other) in kept.enumerate() {
                    prop_assert_eq!(
                        from.basis_entry(dim, bit, Dim::tensor(other)),
                        to.basis_entry(dim, bit, Dim::tensor(position))
                    );
                }
            }
        }
    }

    /// Join of two tensors, and split.
    #[test]
    fn a_split_undoes_a_join_whose_pairs_stay_in_one_thread((encoding, shape) in tensors(1..4)) {
        let mut joined = shape.clone();
        joined.push(2);
        let there = transfer::join(&encoding, &shape).unwrap();
        let back = transfer::split(&there, &joined).unwrap();
        same_map(&back, &encoding, &shape);
        // Both elements of a pair are in the registers of one thread.
        let layout = map(&there, &joined);
        let pair = Dim::tensor(shape.len());
        for dim in [Dim::LANE, Dim::WARP, Dim::BLOCK] {
            for bit in 0..layout.in_dim_size_log2(dim) {
                prop_assert_eq!(layout.basis_entry(dim, bit, pair), 0);
            }
        }
    }

    /// Two elements from each byte, and back into one.
    #[test]
    fn packing_undoes_unpacking_and_the_lowest_register_bit_chooses((encoding, shape) in tensors(1..4), choice in any::<prop::sample::Index>()) {
        let axis = choice.index(shape.len());
        let mut doubled = shape.clone();
        doubled[axis] *= 2;
        let there = transfer::unpack(&encoding, &shape, axis as i64).unwrap();
        let back = transfer::pack(&there, &doubled, axis as i64).unwrap();
        same_map(&back, &encoding, &shape);
        // The register's lowest bit chooses between the two.
        let from = elements(&encoding, &shape);
        for (place, to) in elements(&there, &doubled).iter().enumerate() {
            let mut expected = from[place / 2].clone();
            expected[axis] = 2 * expected[axis] + (place % 2) as i64;
            prop_assert_eq!(&expected, to);
        }
    }

    /// Views of shared memory: permuted and reshaped, and back.
    #[test]
    fn views_of_shared_memory_are_permuted_and_reshaped_and_back(vec in power(3), phase in power(2), phases in power(3), order in order(2), padded in any::<bool>()) {
        let shape = [32, 64];
        let encoding = if padded {
            let component = Encoding::SwizzledShared(SwizzledShared {
                vec: 1, per_phase: 1, max_phase: 1, order, cga_layout: CgaLayout::single(2),
            });
            let component = map(&component, &shape);
            Encoding::PaddedShared(PaddedShared::new(vec![(64, 4)], component).unwrap())
        } else {
            Encoding::SwizzledShared(SwizzledShared {
                vec, per_phase: phase, max_phase: phases, order, cga_layout: CgaLayout::single(2),
            })
        };
        let there = transfer::trans(&encoding, &shape, &[1, 0]).unwrap();
        let back = transfer::trans(&there, &[64, 32], &[1, 0]).unwrap();
        prop_assert!(transfer::are_equal(&back, &encoding, &shape));
        let to = [4, 8, 64];
        let there = transfer::reshape(&encoding, &shape, &to).unwrap();
        let back = transfer::reshape(&there, &to, &shape).unwrap();
        prop_assert!(transfer::are_equal(&back, &encoding, &shape));
    }
}
