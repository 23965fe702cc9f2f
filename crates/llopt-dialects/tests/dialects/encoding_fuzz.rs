//! For any fields and any shape, an encoding has a layout of that shape, or gives the reason why not.

use llopt_dialects::layout::encoding::{
    AmdMfma, AmdRotatingShared, AmdWmma, Blocked, CgaLayout, DotOperand, Encoding, Linear,
    NvidiaMma, NvmmaShared, PaddedShared, SharedLinear, Slice, SwizzledShared, TensorMemory,
    TensorMemoryScales,
};
use llopt_layout::Dim;
use proptest::prelude::*;
use proptest::sample::select;

fn number() -> impl Strategy<Value = u32> {
    select(vec![
        0,
        1,
        1,
        2,
        2,
        3,
        4,
        8,
        16,
        32,
        64,
        128,
        4096,
        1 << 31,
        u32::MAX,
    ])
}

fn list() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(number(), 0..5)
}

fn plausible(length: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(select(vec![1, 2, 4, 8, 16, 32]), length)
}

fn order() -> impl Strategy<Value = Vec<u32>> {
    select(vec![
        vec![],
        vec![0],
        vec![0, 1],
        vec![1, 0],
        vec![2, 0, 1],
        vec![1, 1],
        vec![7, 0],
    ])
}

fn bases() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(prop::collection::vec(number(), 0..4), 0..6)
}

fn cga_layout() -> impl Strategy<Value = CgaLayout> {
    (0usize..4, bases()).prop_map(|(rank, bases)| {
        CgaLayout::from_bases(rank, bases).unwrap_or_else(|_| CgaLayout::single(rank))
    })
}

fn shape() -> impl Strategy<Value = Vec<u64>> {
    let size = select(vec![0, 1, 2, 8, 16, 64, 256, 3, 1 << 31, 1 << 32, u64::MAX]);
    prop_oneof![
        prop::collection::vec(size, 0..5),
        prop::collection::vec(select(vec![1, 16, 64, 128]), 2),
        prop::collection::vec(select(vec![1, 16, 64]), 3),
    ]
}

fn instruction() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        list(),
        select(vec![
            vec![16, 8],
            vec![1, 16, 8],
            vec![16, 64, 16],
            vec![16, 16, 16],
            vec![32, 32, 8],
            vec![64, 4, 4],
            vec![4, 64, 4],
            vec![16, 16, 128],
        ]),
    ]
}

fn matrix() -> impl Strategy<Value = Encoding> {
    let fields = (
        number(),
        number(),
        instruction(),
        any::<bool>(),
        cga_layout(),
    );
    let counts = (2usize..4).prop_flat_map(|rank| (plausible(rank), plausible(rank)));
    let counts = prop_oneof![(list(), list()), counts];
    (fields, counts, 0..3).prop_map(|(fields, (warps_per_cta, tiles_per_warp), kind)| {
        let (version, bits, instr_shape, is_transposed, cga_layout) = fields;
        // Most clusters of the right rank.
        let cga_layout = if bits % 3 == 0 {
            cga_layout
        } else {
            CgaLayout::single(warps_per_cta.len())
        };
        match kind {
            0 => Encoding::NvidiaMma(NvidiaMma {
                version_major: version,
                version_minor: 0,
                warps_per_cta,
                cga_layout,
                instr_shape,
            }),
            1 => Encoding::AmdMfma(AmdMfma {
                version,
                warps_per_cta,
                instr_shape,
                is_transposed,
                cga_layout,
                tiles_per_warp,
                element_bit_width: bits,
            }),
            _ => Encoding::AmdWmma(AmdWmma {
                version,
                is_transposed,
                warps_per_cta,
                tiles_per_warp,
                cga_layout,
                instr_shape,
            }),
        }
    })
}

fn blocked() -> impl Strategy<Value = Encoding> {
    let fields = prop_oneof![
        (list(), list(), list(), order()),
        (plausible(2), plausible(2), plausible(2), order()),
    ];
    (fields, cga_layout()).prop_map(|(fields, cga_layout)| {
        let (size_per_thread, threads_per_warp, warps_per_cta, order) = fields;
        Encoding::Blocked(Blocked {
            size_per_thread,
            threads_per_warp,
            warps_per_cta,
            order,
            cga_layout,
        })
    })
}

fn memory() -> impl Strategy<Value = Encoding> {
    let fields = ((number(), number(), number()), order(), cga_layout());
    let flags = (any::<bool>(), any::<bool>());
    (fields, flags, 0..5).prop_map(|(fields, (transposed, fp4_padded), kind)| {
        let ((vec, per_phase, max_phase), order, cga_layout) = fields;
        match kind {
            0 => Encoding::SwizzledShared(SwizzledShared {
                vec,
                per_phase,
                max_phase,
                order,
                cga_layout,
            }),
            1 => Encoding::AmdRotatingShared(AmdRotatingShared {
                vec,
                per_phase,
                max_phase,
                order,
                cga_layout,
            }),
            2 => Encoding::NvmmaShared(NvmmaShared {
                swizzling_byte_width: vec,
                transposed,
                element_bit_width: per_phase,
                fp4_padded,
                cga_layout,
            }),
            3 => Encoding::TensorMemory(TensorMemory {
                block_m: vec,
                block_n: per_phase,
                col_stride: max_phase,
                cta_split_m: 1 << order.len(),
                cta_split_n: max_phase,
                two_ctas: transposed,
            }),
            _ => Encoding::TensorMemoryScales(TensorMemoryScales {
                cta_split_m: vec,
                cta_split_n: per_phase,
            }),
        }
    })
}

/// Explicit bases, most of which form no layout and are then replaced by something that is one.
fn explicit() -> impl Strategy<Value = Encoding> {
    let bases = (0usize..4, bases(), bases(), bases(), bases());
    (bases, number(), order(), shape(), 0..4).prop_map(|(bases, alignment, order, shape, kind)| {
        let (rank, first, second, third, fourth) = bases;
        let explicit = match kind {
            0 => Linear::from_bases(rank, &first, &second, &third, &fourth).map(Encoding::Linear),
            1 => SharedLinear::from_bases(rank, &first, &second, alignment)
                .map(Encoding::SharedLinear),
            2 => PaddedShared::from_bases(vec![(alignment, 4)], rank, &first, &second)
                .map(Encoding::PaddedShared),
            _ => PaddedShared::identity(vec![(alignment, 4)], &order, &shape)
                .map(Encoding::PaddedShared),
        };
        explicit.unwrap_or(Encoding::TensorMemoryScales(TensorMemoryScales {
            cta_split_m: 1,
            cta_split_n: 1,
        }))
    })
}

fn encoding() -> impl Strategy<Value = Encoding> {
    let leaf = prop_oneof![blocked(), matrix(), memory(), explicit()];
    leaf.prop_recursive(3, 4, 1, |parent| {
        (parent, number(), number(), any::<bool>()).prop_map(|(parent, first, second, slice)| {
            let parent = Box::new(parent);
            if slice {
                Encoding::Slice(Slice { dim: first, parent })
            } else {
                Encoding::DotOperand(DotOperand {
                    op_idx: first,
                    parent,
                    k_width: second,
                })
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 5_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_layout_of_the_shape_or_an_error(encoding in encoding(), shape in shape()) {
        let _ = encoding.cga_layout();
        match encoding.linear_layout(&shape) {
            Ok(layout) => {
                prop_assert!(encoding.verify().is_ok());
                prop_assert!(layout.is_surjective(), "{encoding:?}");
                let sizes: Vec<u64> =
                    (0..shape.len()).map(|dim| layout.out_dim_size(Dim::tensor(dim))).collect();
                prop_assert_eq!(sizes, shape);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
