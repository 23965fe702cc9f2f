//! Loops of products that the blocks of a cluster share: executed on the simulated machine, with the sanitizer, and
//! compared with the reference interpreter, which runs the program as it is written. All sums are of whole numbers, so
//! that their order does not matter. Each cluster barrier is needed: without it the machine reports a race.

use llopt::sim::{Argument, FindingKind, Launch, Machine, Report};
use llopt::{
    ArtifactKind, Compiler, Engines, Explanation, Options, Source, Target, explain, run_everywhere,
};

/// Rows and columns of a tile, and elements along k of an iteration.
const EXTENT: usize = 32;
const DEPTH: usize = 16;
/// The most iterations.
pub const MOST: usize = 9;
/// Tiles, one below the other.
pub const PROGRAMS: usize = 2;

/// What comes after the loop.
pub const RESTS: [(&str, &str); 4] = [
    (
        "the sum is stored",
        "tt.store %cp, %r#1 : tensor<32x32x!tt.ptr<f32>>",
    ),
    (
        "a bias is added and few columns are stored",
        "%bias = tt.load %cp : tensor<32x32x!tt.ptr<f32>>
         %biased = arith.addf %r#1, %bias : tensor<32x32xf32>
         %most = arith.constant dense<27> : tensor<1x32xi32>
         %few = arith.cmpi slt, %cols, %most : tensor<1x32xi32>
         %mask = tt.broadcast %few : tensor<1x32xi1> -> tensor<32x32xi1>
         tt.store %cp, %biased, %mask : tensor<32x32x!tt.ptr<f32>>",
    ),
    (
        "rows are summed",
        "%sums = \"tt.reduce\"(%r#1) <{axis = 1 : i32}> ({
         ^bb0(%x: f32, %y: f32):
           %z = arith.addf %x, %y : f32
           tt.reduce.return %z : f32
         }) : (tensor<32x32xf32>) -> tensor<32xf32>
         %sp = tt.splat %cb : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
         %sq = tt.addptr %sp, %range : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
         tt.store %sq, %sums : tensor<32x!tt.ptr<f32>>",
    ),
    (
        "the sum is added to memory",
        "%true = arith.constant dense<true> : tensor<32x32xi1>
         %old = tt.atomic_rmw fadd, acq_rel, gpu, %cp, %r#1, %true : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> tensor<32x32xf32>",
    ),
];

/// A loop from `%lower` to `%upper` in steps of two, with the left operand at a pointer that moves and the right one at
/// an offset that follows from the iteration; the sum begins with ones.
pub fn kernel(rest: &str) -> Source {
    kernel_of(rest, "")
}

/// The same with factors that are loaded in wide accesses.
pub fn aligned_kernel(rest: &str) -> Source {
    kernel_of(rest, " {tt.divisibility = 16 : i32}")
}

fn kernel_of(rest: &str, factors: &str) -> Source {
    let text = format!(
        "module {{
         tt.func public @kernel(%a: !tt.ptr<f16>{factors}, %b: !tt.ptr<f16>{factors}, %c: !tt.ptr<f32>, %lower: i32, %upper: i32) {{
         %step = arith.constant 2 : i32
         %least = arith.constant -1 : i32
         %promise = arith.cmpi sgt, %lower, %least : i32
         llvm.intr.assume %promise : i1
         %ones = arith.constant dense<1.0> : tensor<32x32xf32>
         %program = tt.get_program_id x : i32
         %tile = arith.constant 1024 : i32
         %begin = arith.muli %program, %tile : i32
         %cb = tt.addptr %c, %begin : !tt.ptr<f32>, i32
         %range = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
         %deep = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32>
         %rows = tt.expand_dims %range {{axis = 1 : i32}} : tensor<32xi32> -> tensor<32x1xi32>
         %cols = tt.expand_dims %range {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
         %kr = tt.expand_dims %deep {{axis = 1 : i32}} : tensor<16xi32> -> tensor<16x1xi32>
         %kc = tt.expand_dims %deep {{axis = 0 : i32}} : tensor<16xi32> -> tensor<1x16xi32>
         %c16 = arith.constant dense<16> : tensor<32x1xi32>
         %c32 = arith.constant dense<32> : tensor<32x1xi32>
         %d32 = arith.constant dense<32> : tensor<16x1xi32>
         %a0 = arith.muli %rows, %c16 : tensor<32x1xi32>
         %a1 = tt.broadcast %a0 : tensor<32x1xi32> -> tensor<32x16xi32>
         %a2 = tt.broadcast %kc : tensor<1x16xi32> -> tensor<32x16xi32>
         %ao = arith.addi %a1, %a2 : tensor<32x16xi32>
         %as = tt.splat %a : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>>
         %ap = tt.addptr %as, %ao : tensor<32x16x!tt.ptr<f16>>, tensor<32x16xi32>
         %am = arith.constant dense<512> : tensor<32x16xi32>
         %b0 = arith.muli %kr, %d32 : tensor<16x1xi32>
         %b1 = tt.broadcast %b0 : tensor<16x1xi32> -> tensor<16x32xi32>
         %b2 = tt.broadcast %cols : tensor<1x32xi32> -> tensor<16x32xi32>
         %bo = arith.addi %b1, %b2 : tensor<16x32xi32>
         %c0 = arith.muli %rows, %c32 : tensor<32x1xi32>
         %c1 = tt.broadcast %c0 : tensor<32x1xi32> -> tensor<32x32xi32>
         %c2 = tt.broadcast %cols : tensor<1x32xi32> -> tensor<32x32xi32>
         %co = arith.addi %c1, %c2 : tensor<32x32xi32>
         %cs = tt.splat %cb : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
         %cp = tt.addptr %cs, %co : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
         %r:2 = scf.for %i = %lower to %upper step %step iter_args(%p = %ap, %sum = %ones) -> (tensor<32x16x!tt.ptr<f16>>, tensor<32x32xf32>) : i32 {{
           %x = tt.load %p : tensor<32x16x!tt.ptr<f16>>
           %from = arith.constant 256 : i32
           %offset = arith.muli %i, %from : i32
           %place = tt.addptr %b, %offset : !tt.ptr<f16>, i32
           %bs = tt.splat %place : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>>
           %q = tt.addptr %bs, %bo : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
           %y = tt.load %q : tensor<16x32x!tt.ptr<f16>>
           %d = tt.dot %x, %y, %sum : tensor<32x16xf16> * tensor<16x32xf16> -> tensor<32x32xf32>
           %n = tt.addptr %p, %am : tensor<32x16x!tt.ptr<f16>>, tensor<32x16xi32>
           scf.yield %n, %d : tensor<32x16x!tt.ptr<f16>>, tensor<32x32xf32>
         }}
         llvm.intr.assume %promise : i1
         {rest}
         tt.return
         }}
         }}"
    );
    Source::new("kernel.ttir", text)
}

/// Small whole numbers as f16.
fn halves(count: usize, seed: usize) -> Argument {
    let numbers = [0u16, 0x3c00, 0x4000, 0xc000, 0xbc00];
    let digit = |i: usize| (i * (2 * seed + 1) * 2_654_435_761) >> 13;
    let elements = (0..count).flat_map(|i| numbers[digit(i) % 5].to_le_bytes());
    Argument::Buffer(elements.collect())
}

pub fn arguments(lower: i64, iterations: usize) -> Vec<Argument> {
    let words = EXTENT * EXTENT * PROGRAMS;
    let upper = lower + 2 * iterations as i64 - i64::from(iterations % 2 == 1);
    vec![
        halves(EXTENT * DEPTH * MOST, 1),
        halves(EXTENT * DEPTH * (MOST + 2), 2),
        Argument::Buffer((0..words).flat_map(|i| (i as f32).to_le_bytes()).collect()),
        Argument::Int(lower),
        Argument::Int(upper),
    ]
}

fn options(blocks: u32) -> Options {
    let mut options = Options::new(Target::parse("cuda:90").unwrap());
    options.split_k = blocks;
    options
}

fn check(rest: usize, blocks: u32) {
    let (what, body) = RESTS[rest];
    let cases: Vec<(i64, usize)> = (0..=MOST).map(|n| (n as i64 % 3, n)).collect();
    let launches = cases.iter().map(|&(lower, n)| arguments(lower, n));
    let grid = [PROGRAMS as u32, 1, 1];
    let all = run_everywhere(
        &kernel(body),
        &options(blocks),
        grid,
        launches.collect(),
        Engines::ALL,
    );
    for (outcomes, case) in all.unwrap().into_iter().zip(cases) {
        let expected = outcomes.reference.unwrap().unwrap();
        for found in [outcomes.unoptimized, outcomes.optimized] {
            let found = found.unwrap().unwrap();
            assert_eq!(found.report.findings, [], "{what}, {blocks} blocks");
            assert!(
                found.arguments[2] == expected.arguments[2],
                "{what}, {blocks} blocks, from and iterations {case:?}"
            );
        }
    }
}

#[test]
fn blocks_that_share_a_loop_compute_what_the_program_says() {
    for rest in 0..RESTS.len() {
        for blocks in [1, 2, 4, 8] {
            check(rest, blocks);
        }
    }
}

fn explained(rest: usize) -> Explanation {
    explain(&kernel(RESTS[rest].1), &options(2)).unwrap()
}

#[test]
fn each_block_stores_its_part_where_it_can() {
    let divided = |rest: usize| {
        let [of] = explained(rest).shared_loops.try_into().unwrap();
        assert_eq!((of.blocks, of.reason), (2, None));
        (of.divided, of.undivided)
    };
    assert_eq!(divided(0), (Some(0), None));
    assert_eq!(divided(1), (Some(0), None));
    assert!(divided(2).1.is_some());
    assert!(divided(3).1.is_some());
}

/// Runs LLVM IR as two programs of a cluster of blocks.
fn run(ir: &str, blocks: u32, shared: u32) -> Report {
    let target = Target::parse("cuda:90").unwrap();
    let machine = Machine::from_ir(ir.as_bytes(), target, None).unwrap();
    let mut given = arguments(0, MOST);
    given.extend([Argument::Null, Argument::Null]);
    let mut launch = Launch::new([blocks * PROGRAMS as u32, 1, 1], 128, given);
    launch.dynamic_shared = shared.into();
    machine
        .run(&mut launch, &llopt::sim::Options::default())
        .unwrap()
}

#[test]
fn every_barrier_of_the_cluster_is_needed() {
    use FindingKind::{EndedBlock, SharedReadWriteRace, UninitializedRead};
    // The first orders the writes before the reads, the second the reads before the end of the block that is read, or
    // before its next writes.
    for (blocks, rest, second) in [
        (2, 0, EndedBlock),
        (4, 1, EndedBlock),
        (2, 2, SharedReadWriteRace),
    ] {
        let mut options = options(blocks);
        options.optimize = false;
        let compiled = Compiler::new(options).compile(&kernel(RESTS[rest].1), ArtifactKind::Llvm);
        let compiled = compiled.unwrap();
        let (text, shared) = (compiled.artifact.text().unwrap(), compiled.metadata.shared);
        assert_eq!(run(text, blocks, shared).findings, []);
        let lines: Vec<&str> = text.lines().collect();
        let calling = |name: &str| -> Vec<usize> {
            let is_call = |line: &str| line.contains("call ") && line.contains(name);
            (0..lines.len()).filter(|&i| is_call(lines[i])).collect()
        };
        let arrivals = calling("@llvm.nvvm.barrier.cluster.arrive");
        let waits = calling("@llvm.nvvm.barrier.cluster.wait");
        assert_eq!((arrivals.len(), waits.len()), (2, 2));
        let mut found = Vec::new();
        for barrier in arrivals.into_iter().zip(waits) {
            let kept = (0..lines.len()).filter(|&line| line != barrier.0 && line != barrier.1);
            let fewer: Vec<&str> = kept.map(|line| lines[line]).collect();
            let findings = run(&fewer.join("\n"), blocks, shared).findings;
            assert!(!findings.is_empty(), "line {} is not needed", barrier.0 + 1);
            found.push(findings[0].kind);
        }
        let about = format!("{blocks} blocks, {}", RESTS[rest].0);
        // Memory that nothing was written to before is read without a race.
        let is_early = matches!(found[0], SharedReadWriteRace | UninitializedRead);
        assert!(is_early, "{about}: {:?}", found[0]);
        assert_eq!(found[1..], [second], "{about}");
    }
}
