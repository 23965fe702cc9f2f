//! Groups of warps with their own code: the kernel's warps and two partitions exchange numbers in a loop.

use llopt::sim::{Argument, FindingKind, Launch, Machine, Report};
use llopt::{ArtifactKind, Compiler, Options, Source, Target, prove_order};

const ELEMENTS: usize = 256;
const ROUNDS: usize = 3;

/// A partition of four warps fills a buffer, one of a single warp writes where the kernel's warps do not, and the
/// kernel's warps read the buffer; in each iteration of a loop, and with the requested numbers of registers.
fn module(registers: &str) -> String {
    format!(
        "#b = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>
#one = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}}>
#s = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32}} {{
  tt.func public @kernel(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>, %u: !tt.ptr<i32>) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant {ROUNDS} : i32
    %c256 = arith.constant {ELEMENTS} : i32
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<{ELEMENTS}xi32, #s, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%before = %c0) -> (i32) : i32 {{
      %begin = arith.muli %i, %c256 : i32
      %from = tt.addptr %x, %begin : !tt.ptr<i32>, i32
      %r = ttg.warp_specialize(%buffer, %full, %from, %u, %i) {registers}
      default {{
        %phase = arith.andi %i, %c1 : i32
        ttng.wait_barrier %full, %phase : !ttg.memdesc<1xi64, #s, #smem, mutable>
        %n = tt.make_range {{end = {ELEMENTS} : i32, start = 0 : i32}} : tensor<{ELEMENTS}xi32, #b>
        %to = tt.addptr %o, %begin : !tt.ptr<i32>, i32
        %q = tt.splat %to : !tt.ptr<i32> -> tensor<{ELEMENTS}x!tt.ptr<i32>, #b>
        %p = tt.addptr %q, %n : tensor<{ELEMENTS}x!tt.ptr<i32>, #b>, tensor<{ELEMENTS}xi32, #b>
        %v = ttg.local_load %buffer : !ttg.memdesc<{ELEMENTS}xi32, #s, #smem, mutable> -> tensor<{ELEMENTS}xi32, #b>
        %all = \"tt.reduce\"(%v) <{{axis = 0 : i32}}> ({{
        ^bb0(%l: i32, %m: i32):
          %t = arith.addi %l, %m : i32
          tt.reduce.return %t : i32
        }}) : (tensor<{ELEMENTS}xi32, #b>) -> i32
        tt.store %p, %v : tensor<{ELEMENTS}x!tt.ptr<i32>, #b>
        ttg.warp_yield %all : i32
      }}
      partition0(%m0: !ttg.memdesc<{ELEMENTS}xi32, #s, #smem, mutable>, %f0: !ttg.memdesc<1xi64, #s, #smem, mutable>, %x0: !tt.ptr<i32>, %u0: !tt.ptr<i32>, %i0: i32) num_warps(4) {{
        %n0 = tt.make_range {{end = {ELEMENTS} : i32, start = 0 : i32}} : tensor<{ELEMENTS}xi32, #b>
        %q0 = tt.splat %x0 : !tt.ptr<i32> -> tensor<{ELEMENTS}x!tt.ptr<i32>, #b>
        %p0 = tt.addptr %q0, %n0 : tensor<{ELEMENTS}x!tt.ptr<i32>, #b>, tensor<{ELEMENTS}xi32, #b>
        %v0 = tt.load %p0 : tensor<{ELEMENTS}x!tt.ptr<i32>, #b>
        %all0 = \"tt.reduce\"(%v0) <{{axis = 0 : i32}}> ({{
        ^bb0(%l: i32, %m: i32):
          %t = arith.maxsi %l, %m : i32
          tt.reduce.return %t : i32
        }}) : (tensor<{ELEMENTS}xi32, #b>) -> i32
        %s0 = tt.splat %all0 : i32 -> tensor<{ELEMENTS}xi32, #b>
        %w0 = arith.addi %v0, %s0 : tensor<{ELEMENTS}xi32, #b>
        ttg.local_store %w0, %m0 : tensor<{ELEMENTS}xi32, #b> -> !ttg.memdesc<{ELEMENTS}xi32, #s, #smem, mutable>
        ttng.arrive_barrier %f0, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
        ttg.warp_return
      }}
      partition1(%m1: !ttg.memdesc<{ELEMENTS}xi32, #s, #smem, mutable>, %f1: !ttg.memdesc<1xi64, #s, #smem, mutable>, %x1: !tt.ptr<i32>, %u1: !tt.ptr<i32>, %i1: i32) num_warps(1) {{
        %c32 = arith.constant 32 : i32
        %n1 = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32, #one>
        %b1 = arith.muli %i1, %c32 : i32
        %to1 = tt.addptr %u1, %b1 : !tt.ptr<i32>, i32
        %q1 = tt.splat %to1 : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #one>
        %p1 = tt.addptr %q1, %n1 : tensor<32x!tt.ptr<i32>, #one>, tensor<32xi32, #one>
        tt.store %p1, %n1 : tensor<32x!tt.ptr<i32>, #one>
        ttg.warp_return
      }} : (!ttg.memdesc<{ELEMENTS}xi32, #s, #smem, mutable>, !ttg.memdesc<1xi64, #s, #smem, mutable>, !tt.ptr<i32>, !tt.ptr<i32>, i32) -> i32
      %next = arith.addi %before, %r : i32
      scf.yield %next : i32
    }}
    %end = arith.constant 96 : i32
    %last = tt.addptr %u, %end : !tt.ptr<i32>, i32
    tt.store %last, %sum : !tt.ptr<i32>
    tt.return
  }}
}}
"
    )
}

fn compile(registers: &str, optimize: bool) -> (String, u32, u32) {
    let mut options = Options::new(Target::parse("cuda:90").unwrap());
    options.optimize = optimize;
    let source = Source::new("kernel.ttgir", module(registers));
    let compiled = Compiler::new(options)
        .compile(&source, ArtifactKind::Llvm)
        .unwrap_or_else(|error| panic!("{error}"));
    let text = compiled.artifact.text().unwrap().to_owned();
    (text, compiled.metadata.shared, compiled.metadata.num_warps)
}

fn run(ir: &str, shared: u32, warps: u32) -> (Vec<i32>, Vec<i32>, Report) {
    let target = Target::parse("cuda:90").unwrap();
    let machine = Machine::from_ir(ir.as_bytes(), target, None).unwrap();
    let bytes = |numbers: Vec<i32>| numbers.into_iter().flat_map(i32::to_le_bytes).collect();
    let arguments = vec![
        Argument::Buffer(bytes((0..(ROUNDS * ELEMENTS) as i32).collect())),
        Argument::Buffer(bytes(vec![0; ROUNDS * ELEMENTS])),
        Argument::Buffer(bytes(vec![-1; 97])),
        Argument::Null,
        Argument::Null,
    ];
    let mut launch = Launch::new([1; 3], 32 * warps, arguments);
    launch.dynamic_shared = shared.into();
    let report = machine
        .run(&mut launch, &llopt::sim::Options::default())
        .unwrap();
    let mut numbers = |position: usize| -> Vec<i32> {
        let Argument::Buffer(bytes) = &mut launch.arguments[position] else {
            panic!("a buffer comes back as one");
        };
        bytes
            .chunks(4)
            .map(|four| i32::from_le_bytes(four.try_into().unwrap()))
            .collect()
    };
    let (filled, own) = (numbers(1), numbers(2));
    (filled, own, report)
}

#[test]
fn groups_of_warps_run_once_in_each_iteration() {
    for (registers, warps) in [
        ("", 9),
        ("attributes {requestedRegisters = array<i32: 80, 24>}", 12),
    ] {
        for optimize in [false, true] {
            let (ir, shared, launched) = compile(registers, optimize);
            assert_eq!(launched, warps);
            let (filled, own, report) = run(&ir, shared, launched);
            assert_eq!(report.findings, []);
            let of_round = |at: usize| (at / ELEMENTS * ELEMENTS + ELEMENTS - 1) as i32;
            let expected: Vec<i32> = (0..ROUNDS * ELEMENTS)
                .map(|at| at as i32 + of_round(at))
                .collect();
            assert_eq!(filled, expected);
            let mut of_one: Vec<i32> = (0..96).map(|at| at % 32).collect();
            of_one.push(expected.iter().sum());
            assert_eq!(own, of_one);
        }
    }
}

#[test]
fn groups_of_warps_are_ordered() {
    let options = Options::new(Target::parse("cuda:90").unwrap());
    let source = Source::new("kernel.ttgir", module(""));
    let proof = prove_order(&source, &options).unwrap();
    assert_eq!(proof.diagnostics(), [], "{proof:?}");
    assert!(proof.obligations.len() > 4, "{proof:?}");
}

#[test]
fn registers_that_nobody_has_are_named() {
    let (ir, shared, warps) = compile("attributes {requestedRegisters = array<i32: 80, 24>}", true);
    assert!(ir.contains("setmaxnreg.dec.sync.aligned.u32 80;"), "{ir}");
    // All 12 warps start with 168 registers, and keep 24 each. The requests of the other groups are satisfied.
    let more = ir.replace(
        "setmaxnreg.dec.sync.aligned.u32 80;",
        "setmaxnreg.inc.sync.aligned.u32 4000;",
    );
    let (_, _, report) = run(&more, shared, warps);
    let kinds: Vec<FindingKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&FindingKind::RegisterRequest), "{kinds:?}");
}
