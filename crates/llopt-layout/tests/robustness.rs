//! No input makes anything panic: the result is an answer or an error.

mod machines;

use llopt_layout::banks::Access;
use llopt_layout::plan::{Machine, SharedAccess, SwizzleRequest, cheapest, pad, plan, synthesize};
use llopt_layout::{BitPermutation, Dim, LinearLayout};
use machines::{WARP32, WARP32_MATRIX, WAVE64_BANKS64};
use proptest::prelude::*;

const NAMES: [Dim; 8] = [
    Dim::REGISTER,
    Dim::LANE,
    Dim::WARP,
    Dim::BLOCK,
    Dim::OFFSET,
    Dim::tensor(0),
    Dim::tensor(1),
    Dim::tensor(2),
];

fn dim() -> impl Strategy<Value = Dim> {
    (0..NAMES.len()).prop_map(|i| NAMES[i])
}

/// Sizes: mostly powers of two of all magnitudes, sometimes anything.
fn size() -> impl Strategy<Value = u32> {
    prop_oneof![4 => (0u32..32).prop_map(|b| 1 << b), 4 => (0u32..4).prop_map(|b| 1 << b), 1 => any::<u32>()]
}

/// Layouts of all sizes up to the limits, from bases that may or may not fit.
fn any_layout() -> impl Strategy<Value = Option<LinearLayout>> {
    let value = prop_oneof![3 => 0u32..8, 1 => any::<u32>(), 2 => (0u32..32).prop_map(|b| 1 << b)];
    let basis = proptest::collection::vec(value, 0..3);
    let bases = proptest::collection::vec((dim(), proptest::collection::vec(basis, 0..12)), 0..5);
    let outs = proptest::collection::vec((dim(), size()), 0..3);
    (bases, outs).prop_map(|(mut bases, outs)| {
        // Fit the arity and the range half of the time, or hardly any layout would be accepted.
        if bases.len() % 2 == 0 {
            for basis in bases.iter_mut().flat_map(|(_, list)| list) {
                basis.resize(outs.len(), 0);
                for (value, (_, size)) in basis.iter_mut().zip(&outs) {
                    *value %= (*size).max(1);
                }
            }
        }
        let borrowed: Vec<_> = bases.iter().map(|(d, list)| (*d, &list[..])).collect();
        let names: Vec<Dim> = outs.iter().map(|o| o.0).collect();
        let _ = LinearLayout::from_bases_surjective(&borrowed, &names);
        LinearLayout::from_bases(&borrowed, &outs).ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn no_operation_panics(
        a in any_layout(), b in any_layout(), d in dim(), e in dim(), n in size(), m in size(),
        axes in proptest::collection::vec(0usize..4, 0..4), order in proptest::collection::vec(any::<u8>(), 0..5),
    ) {
        let _ = LinearLayout::strided_1d(n, m, d, e);
        let _ = LinearLayout::zeros_1d(n, d, e, m);
        let _ = BitPermutation::new(d, n, &order);
        let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
        let _ = (a.product(&b), a.compose(&b), a.invert(), a.pseudo_invert(), a.invert_and_compose(&b));
        let _ = (a.divide_left(&b), a.divide_right(&b), a.divide_left_permuted(&b));
        let _ = (a.quotient(&[d, e]), a.is_trivial_over(&[d]), a.sublayout(&[d], &[e]));
        let _ = (a.kernel(), a.image(), a.free_variable_masks(), a.num_consecutive_in_out());
        let _ = (a.resize_in(d, n), a.resize_out(d, n), a.extend_out(d, n), a.rename_in(d, e));
        let _ = (a.reshape_ins(&[(d, n), (e, m)]), a.reshape_outs(&[(d, n), (e, m)]));
        let _ = (a.transpose_ins(&[d, e]), a.transpose_outs(&[d, e]), a.rename_out(d, e));
        let _ = (a.concat_ins(&b), a.concat_outs(&b), a.squeeze_in(d), a.squeeze_out(d));
        let _ = (a.permute_axes(&axes), a.reshape_tensor(&[n, m]), a.join(), a.split());
        let _ = (a.expand_axis(axes.len()), a.broadcast(&[n, m]), a.reduce_axis(axes.len()));
        let _ = (a.apply(&[(d, n), (e, m)]), a.apply_flat(n), a.basis(d, n), a.basis_entry(d, n, e));
        let _ = (a.flatten_ins(), a.flatten_outs(), a.without_repeats(d), a.remove_zero_bases(d));
        let _ = (a.to_string(), format!("{b:?}"));
    }

    #[test]
    fn no_plan_of_a_conversion_panics(a in any_layout(), b in any_layout(), bits in prop_oneof![Just(8u32), Just(16), Just(32), Just(128), any::<u32>()]) {
        let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
        for machine in [WARP32, WARP32_MATRIX, WAVE64_BANKS64] {
            // A layout always converts to itself, as far as it describes registers.
            for to in [&a, &b] {
                if let Ok(plans) = plan(&a, to, bits, &machine) {
                    for plan in plans {
                        let _ = plan.to_string();
                    }
                }
                let _ = cheapest(&a, to, bits, &machine);
                let _ = synthesize(&a, to, bits, &machine, SwizzleRequest::default());
                let _ = SharedAccess::for_memory(&a, to, bits, Access::Load, None, &machine);
            }
            if a.total_in_size_log2() < 10 && b.total_in_size_log2() < 10 {
                let _ = pad(&b, &a, &a, bits, &machine, SwizzleRequest::default());
            }
        }
        let odd = Machine { lanes_log2: 40, max_vector_bits: 7, shared_bytes: 0, ..WARP32 };
        let _ = plan(&a, &b, bits, &odd);
    }
}
