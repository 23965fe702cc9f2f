//! Loops of products in which the halves of a block take turns: executed on the simulated machine, with the sanitizer,
//! compared with the reference interpreter, and without each of their barriers in turn.

use llopt::sim::{Argument, Change, Launch, Machine, Removal};
use llopt::{
    ArtifactKind, Compiler, Engines, Options, Rewriting, Source, TakenTurns, Target, explain,
    run_everywhere,
};

/// Rows, columns, and elements along k of an iteration.
const EXTENT: usize = 64;
/// The most iterations.
const MOST: usize = 6;

/// A loop of products of tiles, the first factor at a pointer that moves, the second masked.
fn kernel() -> Source {
    let text = "module {
        tt.func public @kernel(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %most: i32) {
        %zero = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %ones = arith.constant dense<1.0> : tensor<64x64xf32>
        %nothing = arith.constant dense<0.0> : tensor<64x64xf16>
        %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
        %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
        %cols = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
        %row = arith.constant dense<64> : tensor<64x1xi32>
        %tile = arith.constant dense<4096> : tensor<64x64xi32>
        %r0 = arith.muli %rows, %row : tensor<64x1xi32>
        %r1 = tt.broadcast %r0 : tensor<64x1xi32> -> tensor<64x64xi32>
        %c1 = tt.broadcast %cols : tensor<1x64xi32> -> tensor<64x64xi32>
        %o = arith.addi %r1, %c1 : tensor<64x64xi32>
        %limit = tt.splat %most : i32 -> tensor<1x64xi32>
        %few = arith.cmpi slt, %cols, %limit : tensor<1x64xi32>
        %mask = tt.broadcast %few : tensor<1x64xi1> -> tensor<64x64xi1>
        %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
        %ap = tt.addptr %as, %o : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
        %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
        %bp = tt.addptr %bs, %o : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
        %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
        %cp = tt.addptr %cs, %o : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
        %r:3 = scf.for %i = %zero to %n step %one iter_args(%p = %ap, %q = %bp, %sum = %ones) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
          %x = tt.load %p : tensor<64x64x!tt.ptr<f16>>
          %y = tt.load %q, %mask, %nothing : tensor<64x64x!tt.ptr<f16>>
          %d = tt.dot %x, %y, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
          %s = tt.addptr %p, %tile : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
          %t = tt.addptr %q, %tile : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
          scf.yield %s, %t, %d : tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
        }
        tt.store %cp, %r#2 : tensor<64x64x!tt.ptr<f32>>
        tt.return
        }
        }";
    Source::new("kernel.ttir", text)
}

/// Small whole numbers as f16.
fn halves(seed: usize) -> Argument {
    let numbers = [0u16, 0x3c00, 0x4000, 0xc000, 0xbc00];
    let digit = |i: usize| (i * (2 * seed + 1) * 2_654_435_761) >> 13;
    let count = EXTENT * EXTENT * MOST;
    let elements = (0..count).flat_map(|i| numbers[digit(i) % 5].to_le_bytes());
    Argument::Buffer(elements.collect())
}

fn arguments(iterations: usize) -> Vec<Argument> {
    vec![
        halves(1),
        halves(2),
        Argument::Buffer(vec![0; EXTENT * EXTENT * size_of::<f32>()]),
        Argument::Int(iterations as i64),
        Argument::Int(EXTENT as i64 - 5),
    ]
}

fn options(target: &str, warps: u32, stages: u32, turns: Rewriting) -> Options {
    let mut options = Options::new(Target::parse(target).unwrap());
    options.num_warps = Some(warps);
    options.num_stages = stages;
    options.block_pingpong = turns;
    options
}

/// The turns in the kernel's loop, or why there are none.
fn turns(options: &Options) -> Result<TakenTurns, String> {
    let [of] = explain(&kernel(), options)
        .unwrap()
        .loops
        .try_into()
        .unwrap();
    let stages = of.pipeline.unwrap();
    let reason = stages.not_in_turns;
    stages.turns.ok_or_else(|| reason.unwrap_or_default())
}

#[test]
fn halves_in_turns_compute_what_the_program_says() {
    for (target, warps, stages) in [
        ("hip:gfx90a", 8, 2),
        ("hip:gfx942", 8, 2),
        ("hip:gfx942", 8, 3),
        ("hip:gfx950", 8, 2),
        ("hip:gfx950", 16, 2),
        ("hip:gfx1100", 8, 2),
        ("hip:gfx1200", 8, 3),
    ] {
        let options = options(target, warps, stages, Rewriting::On);
        assert!(turns(&options).is_ok(), "{target}: {:?}", turns(&options));
        let launches = (0..=MOST).map(arguments);
        let all = run_everywhere(
            &kernel(),
            &options,
            [1, 1, 1],
            launches.collect(),
            Engines::ALL,
        );
        for (n, outcomes) in all.unwrap().into_iter().enumerate() {
            let expected = outcomes.reference.unwrap().unwrap();
            for found in [outcomes.unoptimized, outcomes.optimized] {
                let found = found.unwrap().unwrap();
                assert_eq!(found.report.findings, [], "{target}, {n} iterations");
                assert!(
                    found.arguments[2] == expected.arguments[2],
                    "{target}, {warps} warps, {stages} stages, {n} iterations"
                );
            }
        }
    }
}

/// The operations that synchronise, each with what shows its absence.
fn removals(options: Options) -> Vec<Removal> {
    let (target, warps) = (options.target, options.num_warps.unwrap());
    let compiled = Compiler::new(options).compile(&kernel(), ArtifactKind::Llvm);
    let compiled = compiled.unwrap();
    let mut machine = Machine::from_ir(compiled.artifact.bytes(), target, None).unwrap();
    let mut given = arguments(MOST);
    given.extend([Argument::Null, Argument::Null]);
    let mut launch = Launch::new([1, 1, 1], warps * target.warp_size(), given);
    launch.dynamic_shared = compiled.metadata.shared.into();
    let (report, removals) = machine
        .removals(&launch, &llopt::sim::Options::default())
        .unwrap();
    assert_eq!(report.findings, []);
    removals
}

/// In two parts, each of the four barriers of an iteration orders accesses of the halves, and so do the conditional ones.
#[test]
fn every_barrier_of_two_parts_is_needed() {
    for target in ["hip:gfx942", "hip:gfx950"] {
        let mut options = options(target, 8, 2, Rewriting::On);
        assert_eq!(turns(&options).unwrap().parts, 2);
        options.optimize = false;
        let removals = removals(options);
        let barriers = removals.iter().filter(|removal| {
            removal.operation == "a barrier" && removal.change == Change::Removed
        });
        // Those of an iteration, the conditional ones, and the one before them.
        const LEAST: usize = 4 + 2 + 1;
        assert!(barriers.clone().count() >= LEAST, "{target}");
        for removal in barriers {
            assert!(removal.is_found(), "{target}: {removal}");
        }
    }
}

#[test]
fn turns_are_declined_with_a_reason() {
    let reason = |options: &Options| turns(options).unwrap_err();
    let auto = |warps| options("hip:gfx942", warps, 2, Rewriting::Auto);
    assert!(reason(&auto(8)).contains("a second block is resident"));
    assert!(reason(&auto(4)).contains("its 4 warps are not two halves"));
    // Neither where they are off, nor where a target has none.
    assert_eq!(reason(&options("hip:gfx942", 8, 2, Rewriting::Off)), "");
    assert_eq!(reason(&options("cuda:90", 8, 2, Rewriting::On)), "");
}
