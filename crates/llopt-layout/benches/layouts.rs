//! How long the algebra and the planner take: 16-bit layouts, and typical conversions.

#[path = "../tests/corpus/mod.rs"]
mod corpus;
#[path = "../tests/machines/mod.rs"]
mod machines;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use llopt_layout::plan::{SwizzleRequest, cheapest, plan, synthesize};
use llopt_layout::{Dim, LinearLayout};
use machines::{WARP32_MATRIX, WAVE64};

const ROW: Dim = Dim::tensor(0);
const COLUMN: Dim = Dim::tensor(1);

/// An invertible layout of 16 bits; `dense` fills the matrix.
fn sixteen_bits(seed: u32, dense: bool) -> LinearLayout {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let mut columns: Vec<u32> = (0..16).map(|bit| 1 << bit).collect();
    for i in (1..16usize).rev() {
        columns.swap(i, next() as usize % (i + 1));
    }
    if dense {
        for _ in 0..200 {
            let (i, j) = (next() as usize % 16, next() as usize % 16);
            if i != j {
                columns[i] ^= columns[j];
            }
        }
    }
    let bases: Vec<[u32; 2]> = columns.iter().map(|&c| [c & 255, c >> 8]).collect();
    LinearLayout::from_bases(
        &[
            (Dim::REGISTER, &bases[..6]),
            (Dim::LANE, &bases[6..11]),
            (Dim::WARP, &bases[11..]),
        ],
        &[(ROW, 256), (COLUMN, 256)],
    )
    .expect("16 independent columns")
}

fn algebra(c: &mut Criterion) {
    for (name, dense) in [("sparse", false), ("dense", true)] {
        let (a, b) = (sixteen_bits(1, dense), sixteen_bits(2, dense));
        let inverse = b.invert().expect("invertible");
        c.bench_function(&format!("compose/{name}"), |bench| {
            bench.iter(|| black_box(&a).compose(black_box(&inverse)))
        });
        c.bench_function(&format!("invert/{name}"), |bench| {
            bench.iter(|| black_box(&a).invert())
        });
        c.bench_function(&format!("invert_and_compose/{name}"), |bench| {
            bench.iter(|| black_box(&a).invert_and_compose(black_box(&b)))
        });
    }
}

fn product(parts: &[(Dim, u32, Dim)]) -> LinearLayout {
    let whole = parts
        .iter()
        .fold(LinearLayout::empty(), |acc, &(from, size, to)| {
            acc * LinearLayout::identity_1d(size, from, to).expect("powers of two")
        });
    whole
        .transpose_ins(&[Dim::REGISTER, Dim::LANE, Dim::WARP])
        .and_then(|l| l.transpose_outs(&[ROW, COLUMN]))
        .expect("all dimensions")
}

/// 128x64 over four warps: blocked with `vector` columns per lane.
fn blocked(vector: u32) -> LinearLayout {
    let lanes = (64 / vector).min(32);
    product(&[
        (Dim::REGISTER, vector, COLUMN),
        (Dim::LANE, lanes, COLUMN),
        (Dim::LANE, 32 / lanes, ROW),
        (Dim::WARP, 4, ROW),
        (Dim::REGISTER, 64 / vector / lanes, COLUMN),
        (Dim::REGISTER, 128 / (4 * 32 / lanes), ROW),
    ])
}

/// 128x64 over four warps: columns along lanes first.
fn tall(vector: u32) -> LinearLayout {
    product(&[
        (Dim::REGISTER, vector, ROW),
        (Dim::LANE, 128 / vector, ROW),
        (Dim::LANE, 32 * vector / 128, COLUMN),
        (Dim::WARP, 4, COLUMN),
        (Dim::REGISTER, 64 / (4 * (32 * vector / 128)), COLUMN),
    ])
}

/// 128x64 over four warps: the accumulator of a warp's matrix product.
fn accumulator() -> LinearLayout {
    product(&[
        (Dim::REGISTER, 2, COLUMN),
        (Dim::LANE, 4, COLUMN),
        (Dim::LANE, 8, ROW),
        (Dim::REGISTER, 2, ROW),
        (Dim::WARP, 4, ROW),
        (Dim::REGISTER, 8, COLUMN),
        (Dim::REGISTER, 2, ROW),
    ])
}

/// 128x64 over four warps: the left operand of a warp's matrix product.
fn operand() -> LinearLayout {
    product(&[
        (Dim::REGISTER, 2, COLUMN),
        (Dim::LANE, 4, COLUMN),
        (Dim::LANE, 8, ROW),
        (Dim::REGISTER, 2, ROW),
        (Dim::REGISTER, 2, COLUMN),
        (Dim::WARP, 4, ROW),
        (Dim::REGISTER, 4, COLUMN),
        (Dim::REGISTER, 2, ROW),
    ])
}

fn planner(c: &mut Criterion) {
    let pairs = [
        ("accumulator_to_blocked", accumulator(), blocked(8), 16),
        ("blocked_to_operand", blocked(8), operand(), 16),
        ("accumulator_to_operand", accumulator(), operand(), 16),
        ("blocked_to_tall", blocked(4), tall(4), 32),
        ("blocked_to_tall_8_bits", blocked(16), tall(16), 8),
    ];
    for (name, from, to, bits) in &pairs {
        c.bench_function(&format!("plan/{name}"), |bench| {
            bench.iter(|| plan(black_box(from), black_box(to), *bits, &WARP32_MATRIX))
        });
        c.bench_function(&format!("cheapest/{name}"), |bench| {
            bench.iter(|| cheapest(black_box(from), black_box(to), *bits, &WARP32_MATRIX))
        });
        c.bench_function(&format!("swizzle/{name}"), |bench| {
            let request = SwizzleRequest::default();
            bench.iter(|| {
                synthesize(
                    black_box(from),
                    black_box(to),
                    *bits,
                    &WARP32_MATRIX,
                    request,
                )
            })
        });
    }
    let wave = |layout: &LinearLayout| {
        let more = LinearLayout::identity_1d(2, Dim::LANE, ROW).expect("two");
        layout.product(&more).expect("the same order")
    };
    let (from, to) = (wave(&blocked(8)), wave(&tall(8)));
    c.bench_function("plan/wave_of_64", |bench| {
        bench.iter(|| plan(black_box(&from), black_box(&to), 16, &WAVE64))
    });
}

/// All conversions of the corpus, one after another: the time divided by their number is the mean.
fn corpus_sweep(c: &mut Criterion) {
    let pairs = corpus::pairs();
    c.bench_function(
        &format!("plan/all_{}_of_the_corpus", pairs.len()),
        |bench| {
            bench.iter(|| {
                for pair in &pairs {
                    let machine = pair.machine();
                    let _ = black_box(plan(&pair.from, &pair.to, pair.element_bits, &machine));
                }
            })
        },
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(60);
    targets = algebra, planner, corpus_sweep
}
criterion_main!(benches);
