//! Swizzles: the transpose of the swizzle article, the lemma against counting, and instructions of
//! every kind.

mod machines;

use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{
    Machine, Movement, SharedAccess, SwizzleRequest, cheapest, pad, plan, synthesize,
};
use llopt_layout::{Dim, LinearLayout};
use machines::{WARP32, WARP32_MATRIX, WAVE64, WAVE64_BANKS64};

const ROW: Dim = Dim::tensor(0);
const COLUMN: Dim = Dim::tensor(1);

fn layout(parts: &[(Dim, u32, Dim)]) -> LinearLayout {
    parts
        .iter()
        .fold(LinearLayout::empty(), |acc, &(from, size, to)| {
            acc * LinearLayout::identity_1d(size, from, to).expect("powers of two")
        })
}

/// One warp, 16x32: lane n writes column n, row by row.
fn rows() -> LinearLayout {
    layout(&[(Dim::REGISTER, 16, ROW), (Dim::LANE, 32, COLUMN)])
}

/// One warp, 16x32: lane t reads element (t mod 16, 2 r + t / 16).
fn column_pairs() -> LinearLayout {
    let pairs = layout(&[
        (Dim::LANE, 16, ROW),
        (Dim::LANE, 2, COLUMN),
        (Dim::REGISTER, 16, COLUMN),
    ]);
    let order = [Dim::REGISTER, Dim::LANE];
    pairs.transpose_ins(&order).expect("both dimensions")
}

/// Row-major, the column of row `2^i` moved by xor with `masks[i]`.
fn memory(masks: [u32; 4]) -> LinearLayout {
    // Element (m, n) lies at 32 m + (n ^ S m): offset 32 m + c holds (m, c ^ S m).
    let columns = (0..5).map(|i| [0, 1 << i]);
    let rows = (0..4).map(|i| [1 << i, masks[i]]);
    let bases: Vec<[u32; 2]> = columns.chain(rows).collect();
    LinearLayout::from_bases(&[(Dim::OFFSET, &bases[..])], &[(ROW, 16), (COLUMN, 32)])
        .expect("a bijection")
}

fn wavefronts(memory: &LinearLayout) -> (u32, u32) {
    let count = |layout: &LinearLayout, access: Access| {
        let kind = Some(InstructionKind::Vector);
        SharedAccess::for_memory(layout, memory, 32, access, kind, &WARP32)
            .expect("an access of 32 bits")
            .wavefronts
    };
    (
        count(&rows(), Access::Store),
        count(&column_pairs(), Access::Load),
    )
}

#[test]
fn the_swizzle_article() {
    assert_eq!(wavefronts(&memory([0; 4])), (16, 256));
    assert_eq!(wavefronts(&memory([1, 2, 4, 8])), (16, 32));
    assert_eq!(wavefronts(&memory([2, 4, 8, 16])), (16, 16));
    let plan = synthesize(
        &rows(),
        &column_pairs(),
        32,
        &WARP32,
        SwizzleRequest::default(),
    )
    .expect("a plan");
    assert_eq!((plan.store.wavefronts, plan.load.wavefronts), (16, 16));
    assert_eq!((plan.store.bound, plan.load.bound), (16, 16));
    assert_eq!(wavefronts(&plan.memory), (16, 16));
}

/// The lemma against counting, on every swizzle that moves the columns of each row by an xor that
/// is linear in the row: 4 masks of 5 bits.
#[test]
fn the_lemma_counts_all_linear_swizzles_of_the_article() {
    let mut free_of_conflicts = 0;
    for all in 0u32..1 << 20 {
        let masks = [all & 31, all >> 5 & 31, all >> 10 & 31, all >> 15];
        let mut moved = [0u32; 16];
        for (m, moved) in moved.iter_mut().enumerate() {
            for (i, mask) in masks.iter().enumerate() {
                *moved ^= mask * (m as u32 >> i & 1);
            }
        }
        let busiest = |place: &dyn Fn(u32) -> (u32, u32)| {
            let mut banks = [0u8; 32];
            for lane in 0..32 {
                let (m, n) = place(lane);
                banks[(n ^ moved[m as usize]) as usize] += 1;
            }
            u32::from(banks.into_iter().max().unwrap_or(0))
        };
        let mut counted = (0, 0);
        for r in 0..16 {
            counted.0 += busiest(&|t| (r, t));
            counted.1 += busiest(&|t| (t % 16, 2 * r + t / 16));
        }
        // The lemma: byte addresses of the lanes 1, 2, 4, 8, 16.
        let address = |m: u32, n: u32| 4 * (32 * m + (n ^ moved[m as usize]));
        let store = [1, 2, 4, 8, 16].map(|n| address(0, n));
        let load = [
            address(1, 0),
            address(2, 0),
            address(4, 0),
            address(8, 0),
            address(0, 1),
        ];
        let banks = &WARP32.banks;
        let lemma = (
            16 * banks.wavefronts(2, &store),
            16 * banks.wavefronts(2, &load),
        );
        assert_eq!(counted, lemma, "{masks:?}");
        free_of_conflicts += u32::from(counted == (16, 16));
    }
    // The number of invertible 5x5 matrices with one column given: 2 r has to be in the span.
    assert_eq!(
        free_of_conflicts,
        (32 - 2) * (32 - 4) * (32 - 8) * (32 - 16)
    );
}

#[test]
fn exact_counts_of_narrow_vectors() {
    let banks = &WARP32.banks;
    for bytes_log2 in 0..5u32 {
        let bytes = 1 << bytes_log2;
        for seed in 0u32..2000 {
            let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
            let mut lanes = [0u32; 5];
            for lane in &mut lanes {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                *lane = if state >> 20 & 3 == 0 {
                    0
                } else {
                    (state >> 7 & 0x3ff) << bytes_log2
                };
            }
            let all: Vec<u32> = (0u32..32)
                .map(|l| {
                    (0..5)
                        .filter(|i| l >> i & 1 == 1)
                        .fold(0, |acc, i| acc ^ lanes[i])
                })
                .collect();
            let shared = |d: u32| all[d as usize] == 0;
            let phase = banks
                .phase(Access::Load, 8 * bytes, shared)
                .expect("a width that exists");
            let of_phase: Vec<u32> = phase.iter().map(|&l| all[l as usize]).collect();
            let phases = 32 >> phase.len();
            let counted = banks.count(Access::Load, bytes, &all).expect("likewise");
            assert_eq!(
                counted,
                phases * banks.wavefronts(bytes_log2, &of_phase),
                "{lanes:?}"
            );
        }
    }
}

/// The accumulator of a 16x8 matrix product: pairs of columns in a lane, rows over lanes.
fn accumulator(columns: u32) -> LinearLayout {
    layout(&[
        (Dim::REGISTER, 2, COLUMN),
        (Dim::LANE, 4, COLUMN),
        (Dim::LANE, 8, ROW),
        (Dim::REGISTER, 2, ROW),
        (Dim::REGISTER, columns / 8, COLUMN),
    ])
    .transpose_outs(&[ROW, COLUMN])
    .expect("both dimensions")
}

/// A blocked layout of the same shape with 16 bytes of a row in each lane.
fn blocked(vector: u32, columns: u32) -> LinearLayout {
    let lanes = columns / vector;
    layout(&[
        (Dim::REGISTER, vector, COLUMN),
        (Dim::LANE, lanes, COLUMN),
        (Dim::LANE, 32 / lanes, ROW),
        (Dim::REGISTER, 16 * lanes / 32, ROW),
    ])
    .transpose_outs(&[ROW, COLUMN])
    .expect("both dimensions")
}

fn request(store: InstructionKind, load: InstructionKind) -> SwizzleRequest {
    SwizzleRequest {
        store: Some(store),
        load: Some(load),
        ..SwizzleRequest::default()
    }
}

#[test]
fn matrix_instructions_fit_the_accumulator() {
    use InstructionKind::{Matrix, MatrixTransposed, Vector};
    let (mma, rows) = (accumulator(64), blocked(8, 64));
    // 16x64 elements of 16 bits: 2 KiB, 32 elements per lane.
    let plan = synthesize(&mma, &rows, 16, &WARP32_MATRIX, request(Matrix, Vector)).expect("fits");
    assert_eq!(
        (plan.store.instruction.name, plan.store.instructions),
        ("matrix.b16", 4)
    );
    assert_eq!((plan.store.wavefronts, plan.load.wavefronts), (16, 16));
    let plan = synthesize(&rows, &mma, 16, &WARP32_MATRIX, request(Vector, Matrix)).expect("fits");
    assert_eq!(
        (plan.load.instruction.name, plan.load.instructions),
        ("matrix.b16", 4)
    );
    assert_eq!((plan.store.wavefronts, plan.load.wavefronts), (16, 16));
    // Left free, the choice moves 16 bytes per lane on both sides, which vectors alone cannot.
    let best =
        synthesize(&mma, &rows, 16, &WARP32_MATRIX, SwizzleRequest::default()).expect("fits");
    let used = [best.store.instruction.kind, best.load.instruction.kind];
    assert!(used.contains(&Matrix) && best.store.instructions + best.load.instructions == 8);

    // The same with rows and columns exchanged needs the transposed form.
    let tall = layout(&[
        (Dim::REGISTER, 8, ROW),
        (Dim::LANE, 2, ROW),
        (Dim::LANE, 16, COLUMN),
        (Dim::REGISTER, 4, COLUMN),
    ]);
    let plan = synthesize(
        &tall,
        &mma,
        16,
        &WARP32_MATRIX,
        request(Vector, MatrixTransposed),
    )
    .expect("fits");
    assert_eq!(plan.load.instruction.name, "matrix.trans.b16");
    assert_eq!((plan.store.wavefronts, plan.load.wavefronts), (16, 16));
    let plan = synthesize(
        &mma,
        &tall,
        16,
        &WARP32_MATRIX,
        request(MatrixTransposed, Vector),
    )
    .expect("fits");
    assert_eq!((plan.store.wavefronts, plan.load.wavefronts), (16, 16));
}

#[test]
fn matrix_instructions_read_swizzled_memory() {
    // 64 rows of 64 elements of 16 bits; 16-byte pieces of a row moved by xor with the row modulo 8,
    // as bulk copies write them.
    let columns = (0..6).map(|i| [0, 1 << i]);
    let rows = (0..6).map(|i| [1 << i, if i < 3 { 8 << i } else { 0 }]);
    let bases: Vec<[u32; 2]> = columns.chain(rows).collect();
    let memory = LinearLayout::from_bases(&[(Dim::OFFSET, &bases[..])], &[(ROW, 64), (COLUMN, 64)])
        .expect("a bijection");
    // The left operand of a 16x8x16 product over all of it, and its transpose.
    let operand = layout(&[
        (Dim::REGISTER, 2, COLUMN),
        (Dim::LANE, 4, COLUMN),
        (Dim::LANE, 8, ROW),
        (Dim::REGISTER, 2, ROW),
        (Dim::REGISTER, 8, COLUMN),
        (Dim::REGISTER, 4, ROW),
    ])
    .transpose_outs(&[ROW, COLUMN])
    .expect("both dimensions");
    let transposed = operand.permute_axes(&[1, 0]).expect("two axes");
    for (to, name) in [(operand, "matrix.b16"), (transposed, "matrix.trans.b16")] {
        let load = SharedAccess::for_memory(&to, &memory, 16, Access::Load, None, &WARP32_MATRIX)
            .expect("an access");
        assert_eq!(load.instruction.name, name);
        // 64x64 elements, 32 lanes, 8 elements each; eight rows of 16 bytes per pass.
        assert_eq!(
            (load.instructions, load.wavefronts, load.bound),
            (16, 64, 64)
        );
        // Without matrix instructions: four bytes at a time, or element by element.
        let plain = SharedAccess::for_memory(&to, &memory, 16, Access::Load, None, &WARP32)
            .expect("an access");
        assert!(plain.instructions >= 64 && plain.wavefronts >= 64);
    }
}

#[test]
fn a_wave_of_64_reads_transposed() {
    // 64 lanes: 16 columns over lanes, four rows in registers; written with rows of 16 bytes.
    let fragment = layout(&[
        (Dim::LANE, 16, COLUMN),
        (Dim::REGISTER, 4, ROW),
        (Dim::LANE, 4, ROW),
        (Dim::REGISTER, 4, COLUMN),
    ]);
    let fragment = fragment
        .transpose_ins(&[Dim::REGISTER, Dim::LANE])
        .and_then(|l| l.transpose_outs(&[ROW, COLUMN]))
        .expect("both dimensions");
    let rows = layout(&[
        (Dim::REGISTER, 8, COLUMN),
        (Dim::LANE, 8, COLUMN),
        (Dim::LANE, 8, ROW),
        (Dim::REGISTER, 2, ROW),
    ])
    .transpose_outs(&[ROW, COLUMN])
    .expect("both dimensions");
    let wanted = request(InstructionKind::Vector, InstructionKind::MatrixTransposed);
    let plan = synthesize(&rows, &fragment, 16, &WAVE64_BANKS64, wanted).expect("fits");
    assert_eq!(plan.load.instruction.name, "read.trans.b16");
    assert_eq!(plan.load.wavefronts, plan.load.bound);
    assert_eq!(plan.store.wavefronts, plan.store.bound);
}

#[test]
fn loads_wider_than_stores() {
    // Stores of one element only, loads of four: the widths differ, and nothing conflicts.
    let from = layout(&[(Dim::LANE, 32, COLUMN), (Dim::REGISTER, 16, ROW)])
        .transpose_ins(&[Dim::REGISTER, Dim::LANE])
        .and_then(|l| l.transpose_outs(&[ROW, COLUMN]))
        .expect("both dimensions");
    let to = layout(&[
        (Dim::REGISTER, 4, COLUMN),
        (Dim::LANE, 8, COLUMN),
        (Dim::LANE, 4, ROW),
        (Dim::REGISTER, 4, ROW),
    ])
    .transpose_outs(&[ROW, COLUMN])
    .expect("both dimensions");
    for machine in [WARP32, WARP32_MATRIX] {
        let plan = synthesize(&from, &to, 32, &machine, SwizzleRequest::default()).expect("fits");
        assert_eq!(plan.load.instructions, 4);
        assert_eq!((plan.store.wavefronts, plan.load.wavefronts), (16, 16));
    }
}

#[test]
fn padding_keeps_the_order() {
    // 64x64 elements of 16 bits in row-major order, written by rows of 16 bytes.
    let memory = layout(&[(Dim::OFFSET, 64, COLUMN), (Dim::OFFSET, 64, ROW)]);
    let rows = blocked(8, 64)
        .product(&layout(&[(Dim::REGISTER, 4, ROW)]))
        .expect("the same order");
    let mma = accumulator(64)
        .product(&layout(&[(Dim::REGISTER, 4, ROW)]))
        .expect("likewise");
    for (machine, kind) in [
        (WARP32, InstructionKind::Vector),
        (WARP32_MATRIX, InstructionKind::Matrix),
        (WARP32_MATRIX, InstructionKind::MatrixTransposed),
    ] {
        let wanted = request(InstructionKind::Vector, kind);
        let to = match kind {
            InstructionKind::MatrixTransposed => mma.permute_axes(&[1, 0]).expect("two axes"),
            _ => mma.clone(),
        };
        let flat = SharedAccess::for_memory(&to, &memory, 16, Access::Load, Some(kind), &machine)
            .expect("fits");
        let padded = pad(&memory, &rows, &to, 16, &machine, wanted).expect("fits");
        assert!(flat.wavefronts > flat.bound, "rows of 128 bytes conflict");
        assert_eq!(padded.load.wavefronts, padded.load.bound);
        assert_eq!(padded.store.wavefronts, padded.store.bound);
        assert!(padded.padding.gap > 0 && padded.bytes > 64 * 64 * 2);
        let offsets: Vec<u32> = (0..64 * 64)
            .map(|offset| padded.padding.apply(offset))
            .collect();
        assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(padded.bytes, 2 * (offsets[offsets.len() - 1] + 1));
    }
}

#[test]
fn what_a_small_machine_cannot_do() {
    let small = Machine {
        shared_bytes: 64,
        ..WARP32
    };
    let error = synthesize(
        &rows(),
        &column_pairs(),
        32,
        &small,
        SwizzleRequest::default(),
    );
    assert_eq!(
        error.expect_err("too small").to_string(),
        "the conversion needs 2048 bytes of shared memory; 64 are available"
    );
    // It still has a plan, since one warp can shuffle.
    let plan = cheapest(&rows(), &column_pairs(), 32, &small).expect("by shuffles");
    assert!(matches!(plan.movement, Movement::Shuffle(_)));
    assert!(plan.cost > 0.0);
}

#[test]
fn bad_questions_get_answers() {
    let text = |from: &LinearLayout, to: &LinearLayout, bits: u32, machine: &Machine<'_>| {
        plan(from, to, bits, machine)
            .expect_err("must be rejected")
            .to_string()
    };
    let (a, b) = (rows(), column_pairs());
    assert_eq!(
        text(&a, &b, 24, &WARP32),
        "elements of 24 bits: a power of two from 8 to 128 is required"
    );
    let wide = layout(&[(Dim::REGISTER, 8, ROW), (Dim::LANE, 64, COLUMN)]);
    assert_eq!(
        text(&a, &wide, 32, &WARP32),
        "output dimension `dim0` has size 8 where 16 is required"
    );
    assert_eq!(
        text(&wide, &wide, 32, &WARP32),
        "the layouts have 2^6 lanes, a warp of this machine has 2^5"
    );
    let offsets = memory([0; 4]);
    assert_eq!(
        text(&offsets, &b, 32, &WARP32),
        "the layout has no input dimension `offset`"
    );
    let half = LinearLayout::from_bases(
        &[
            (Dim::REGISTER, &[[1, 0], [2, 0], [4, 0]][..]),
            (Dim::LANE, &[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]),
        ],
        &[(ROW, 16), (COLUMN, 32)],
    )
    .expect("well formed");
    assert_eq!(
        text(&half, &b, 32, &WARP32),
        "basis vector 3 of `lane` is not in the image of the layout that is inverted"
    );
    let across = |dim: Dim| {
        layout(&[(Dim::LANE, 32, COLUMN), (dim, 2, ROW)])
            .product(
                &LinearLayout::zeros_1d(
                    2,
                    if dim == Dim::BLOCK {
                        Dim::REGISTER
                    } else {
                        Dim::BLOCK
                    },
                    ROW,
                    1,
                )
                .expect("two"),
            )
            .expect("no conflict of orders")
    };
    let alone = Machine {
        cluster: false,
        ..WARP32
    };
    assert_eq!(
        text(&across(Dim::BLOCK), &across(Dim::REGISTER), 32, &alone),
        "the conversion crosses blocks, which this machine cannot do"
    );
    let none = Machine {
        matrix: &[],
        ..WAVE64
    };
    let request = request(InstructionKind::Matrix, InstructionKind::Vector);
    let same = layout(&[(Dim::LANE, 64, COLUMN)]);
    assert_eq!(
        synthesize(&same, &same, 32, &none, request)
            .expect_err("no such instruction")
            .to_string(),
        "no pair of shared-memory instructions of the kinds asked for fits"
    );
}

#[test]
fn the_text_of_each_plan() {
    let order = [Dim::REGISTER, Dim::LANE];
    let from = layout(&[(Dim::LANE, 32, ROW), (Dim::REGISTER, 4, ROW)])
        .transpose_ins(&order)
        .expect("both");
    let to = layout(&[
        (Dim::LANE, 16, ROW),
        (Dim::REGISTER, 4, ROW),
        (Dim::LANE, 2, ROW),
    ])
    .transpose_ins(&order)
    .expect("both");
    let plans = plan(&from, &to, 16, &WARP32).expect("feasible");
    let text = |kind: &str| {
        plans
            .iter()
            .find(|p| p.kind() == kind)
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    assert_eq!(
        text("shuffle"),
        "shuffle (cost 4.0, 1 shuffle, 4 selects, 2 byte permutes)
  pack 2 elements into each word
  where parity of lane & 16 is odd, words i and i ^ 1 trade places
  word 0: word 0 of the own lane
  word 1: word 1 of lane ^ 16
  where parity of lane & 16 is odd, words i and i ^ 1 trade places"
    );
    assert_eq!(
        text("shared"),
        "shared (cost 9.8, 2 byte permutes, 2 stores, 1 load, 4 wavefronts, 1 barrier, 256 bytes)
  2 x store of 32 bits per lane, 2 wavefronts (bound 2)
  barrier of the warp
  1 x load of 64 bits per lane, 2 wavefronts (bound 2)"
    );
}

#[test]
fn a_load_stays_within_a_part() {
    // 64x32: a thread stores rows that are 1, 16 and 32 apart; register r of what is read is row r, and a reader takes 16
    // rows after the other.
    let stored = layout(&[
        (Dim::REGISTER, 2, ROW),
        (Dim::LANE, 8, ROW),
        (Dim::REGISTER, 4, ROW),
        (Dim::LANE, 4, COLUMN),
        (Dim::REGISTER, 8, COLUMN),
    ]);
    let read = layout(&[(Dim::REGISTER, 64, ROW), (Dim::LANE, 32, COLUMN)]);
    let parts_of_load = |parts: u32| {
        let request = SwizzleRequest {
            parts,
            ..SwizzleRequest::default()
        };
        let plan = synthesize(&stored, &read, 16, &WARP32, request).expect("fits");
        let slots = 0..1 << plan.load.instruction.registers_log2();
        let mut parts: Vec<u32> = slots.map(|slot| plan.load.register(0, slot) >> 4).collect();
        parts.sort_unstable();
        parts.dedup();
        parts.len()
    };
    assert!(parts_of_load(0) > 1);
    // The first dimension has the lowest bits.
    assert_eq!(parts_of_load(0b11_0000), 1);
}
