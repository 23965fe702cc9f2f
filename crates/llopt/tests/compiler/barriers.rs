//! Barriers are sufficient and necessary: with all of them the machine finds no race in a kernel, and without any one
//! of them it finds a race.
//!
//! "Necessary" applies to whole ops. Barriers are placed by the bytes that an op accesses, not by the threads that
//! access them: where the layouts happen to give every warp the same bytes in both ops, there is still a barrier
//! between them. The lanes of an AMD wave run in lockstep, so it would not be needed there (on NVIDIA a lane may
//! still overtake another one of its warp). Counters of 32 bits read by fours and pointers converted through the same
//! memory are such a pair for waves of 32 lanes. No kernel here has one.

use llopt::sim::{Argument, FindingKind, Launch, Machine, Report};
use llopt::{ArtifactKind, Compiler, Options, Source, Target};

const ELEMENTS: usize = 1024;
const WARPS: u32 = 4;

/// The converted value changes in each iteration.
const CONVERSION_IN_A_LOOP: &str = "%zero = arith.constant 0 : i32
         %one = arith.constant 1 : i32
         %three = arith.constant 3 : i32
         %n0 = arith.constant dense<0> : tensor<1024xi32, #b>
         %e, %last = scf.for %i = %zero to %three step %one iter_args(%s = %n0, %v = %x) -> (tensor<1024xi32, #b>, tensor<1024xi32, #a>) : i32 {
           %b = ttg.convert_layout %v : tensor<1024xi32, #a> -> tensor<1024xi32, #b>
           %c = arith.addi %s, %b : tensor<1024xi32, #b>
           %d = arith.muli %v, %x : tensor<1024xi32, #a>
           scf.yield %c, %d : tensor<1024xi32, #b>, tensor<1024xi32, #a>
         }
         tt.store %q, %e : tensor<1024x!tt.ptr<i32>, #b>";

/// Bodies of kernels; `%x` holds the elements in layout `#a`, `%p` and `%q` are pointers to the results, in layouts
/// `#a` and `#b`.
const BODIES: [(&str, &str); 9] = [
    (
        "two conversions through the same memory",
        "%b = ttg.convert_layout %x : tensor<1024xi32, #a> -> tensor<1024xi32, #b>
         %c = arith.muli %x, %x : tensor<1024xi32, #a>
         %d = ttg.convert_layout %c : tensor<1024xi32, #a> -> tensor<1024xi32, #b>
         %e = arith.xori %b, %d : tensor<1024xi32, #b>
         tt.store %q, %e : tensor<1024x!tt.ptr<i32>, #b>",
    ),
    (
        "a conversion in a loop",
        CONVERSION_IN_A_LOOP,
    ),
    (
        "a reduction across warps, and one of its result",
        "%s = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({
         ^bb0(%l: i32, %r: i32):
           %t = arith.addi %l, %r : i32
           tt.reduce.return %t : i32
         }) : (tensor<1024xi32, #a>) -> i32
         %all = tt.splat %s : i32 -> tensor<1024xi32, #a>
         %y = arith.xori %all, %x : tensor<1024xi32, #a>
         %m = \"tt.reduce\"(%y) <{axis = 0 : i32}> ({
         ^bb0(%l: i32, %r: i32):
           %t = arith.maxsi %l, %r : i32
           tt.reduce.return %t : i32
         }) : (tensor<1024xi32, #a>) -> i32
         %most = tt.splat %m : i32 -> tensor<1024xi32, #a>
         tt.store %p, %most : tensor<1024x!tt.ptr<i32>, #a>",
    ),
    (
        "a scan across warps, then a conversion",
        "%s = \"tt.scan\"(%x) <{axis = 0 : i32, reverse = false}> ({
         ^bb0(%l: i32, %r: i32):
           %t = arith.addi %l, %r : i32
           tt.scan.return %t : i32
         }) : (tensor<1024xi32, #a>) -> tensor<1024xi32, #a>
         %b = ttg.convert_layout %s : tensor<1024xi32, #a> -> tensor<1024xi32, #b>
         tt.store %q, %b : tensor<1024x!tt.ptr<i32>, #b>",
    ),
    (
        "a gather",
        "%most = arith.constant dense<1023> : tensor<1024xi32, #a>
         %i = arith.andi %x, %most : tensor<1024xi32, #a>
         %g = tt.gather %x[%i] {axis = 0 : i32} : (tensor<1024xi32, #a>, tensor<1024xi32, #a>) -> tensor<1024xi32, #a>
         tt.store %p, %g : tensor<1024x!tt.ptr<i32>, #a>",
    ),
    (
        "a gather of what a gather finds",
        "%most = arith.constant dense<1023> : tensor<1024xi32, #a>
         %i = arith.andi %x, %most : tensor<1024xi32, #a>
         %g = tt.gather %x[%i] {axis = 0 : i32} : (tensor<1024xi32, #a>, tensor<1024xi32, #a>) -> tensor<1024xi32, #a>
         %j = arith.andi %g, %most : tensor<1024xi32, #a>
         %h = tt.gather %g[%j] {axis = 0 : i32} : (tensor<1024xi32, #a>, tensor<1024xi32, #a>) -> tensor<1024xi32, #a>
         tt.store %p, %h : tensor<1024x!tt.ptr<i32>, #a>",
    ),
    (
        "a histogram, and one of its counts",
        "%most = arith.constant dense<1023> : tensor<1024xi32, #a>
         %i = arith.andi %x, %most : tensor<1024xi32, #a>
         %h = tt.histogram %i : tensor<1024xi32, #a> -> tensor<1024xi32, #b>
         %k = tt.histogram %h : tensor<1024xi32, #b> -> tensor<1024xi32, #a>
         tt.store %p, %k : tensor<1024x!tt.ptr<i32>, #a>",
    ),
    (
        "a buffer that is stored to twice",
        "%m = ttg.local_alloc : () -> !ttg.memdesc<1024xi32, #s, #smem, mutable>
         ttg.local_store %x, %m : tensor<1024xi32, #a> -> !ttg.memdesc<1024xi32, #s, #smem, mutable>
         %b = ttg.local_load %m : !ttg.memdesc<1024xi32, #s, #smem, mutable> -> tensor<1024xi32, #b>
         %c = arith.muli %x, %x : tensor<1024xi32, #a>
         ttg.local_store %c, %m : tensor<1024xi32, #a> -> !ttg.memdesc<1024xi32, #s, #smem, mutable>
         %d = ttg.local_load %m : !ttg.memdesc<1024xi32, #s, #smem, mutable> -> tensor<1024xi32, #b>
         %e = arith.xori %b, %d : tensor<1024xi32, #b>
         tt.store %q, %e : tensor<1024x!tt.ptr<i32>, #b>",
    ),
    (
        "a buffer, and another in its place",
        "%m = ttg.local_alloc %x : (tensor<1024xi32, #a>) -> !ttg.memdesc<1024xi32, #s, #smem>
         %b = ttg.local_load %m : !ttg.memdesc<1024xi32, #s, #smem> -> tensor<1024xi32, #b>
         %c = arith.muli %x, %x : tensor<1024xi32, #a>
         %k = ttg.local_alloc %c : (tensor<1024xi32, #a>) -> !ttg.memdesc<1024xi32, #s, #smem>
         %d = ttg.local_load %k : !ttg.memdesc<1024xi32, #s, #smem> -> tensor<1024xi32, #b>
         %e = arith.xori %b, %d : tensor<1024xi32, #b>
         tt.store %q, %e : tensor<1024x!tt.ptr<i32>, #b>",
    ),
];

/// Bodies for clusters: in layouts `#a` and `#b` every block has a part of the elements. The machine does not detect
/// that a block ends while others read its memory: so here the last exchange between blocks is in a loop.
const CLUSTER_BODIES: [(&str, &str); 2] = [
    (
        "a reduction across blocks in a loop",
        "%zero = arith.constant 0 : i32
         %one = arith.constant 1 : i32
         %three = arith.constant 3 : i32
         %last = scf.for %i = %zero to %three step %one iter_args(%v = %x) -> (tensor<1024xi32, #a>) : i32 {
           %s = \"tt.reduce\"(%v) <{axis = 0 : i32}> ({
           ^bb0(%l: i32, %r: i32):
             %t = arith.addi %l, %r : i32
             tt.reduce.return %t : i32
           }) : (tensor<1024xi32, #a>) -> i32
           %all = tt.splat %s : i32 -> tensor<1024xi32, #a>
           %y = arith.xori %all, %v : tensor<1024xi32, #a>
           scf.yield %y : tensor<1024xi32, #a>
         }
         tt.store %p, %last : tensor<1024x!tt.ptr<i32>, #a>",
    ),
    (
        "a conversion between blocks in a loop",
        CONVERSION_IN_A_LOOP,
    ),
];

fn module(body: &str, target: Target, blocks: u32) -> String {
    let lanes = target.warp_size();
    let blocked = |size: u32| {
        // In one of the layouts the elements are divided among the blocks, in the other the blocks alternate.
        let cluster: Vec<String> = match (blocks.ilog2(), size) {
            (bits, 1) => (0..bits).map(|bit| format!("[{}]", 1 << bit)).collect(),
            (bits, _) => (0..bits)
                .rev()
                .map(|bit| format!("[{}]", 1 << bit))
                .collect(),
        };
        let cluster = match cluster.is_empty() {
            true => String::new(),
            false => format!(", CGALayout = [{}]", cluster.join(", ")),
        };
        format!(
            "#ttg.blocked<{{sizePerThread = [{size}], threadsPerWarp = [{lanes}], \
             warpsPerCTA = [{WARPS}], order = [0]{cluster}}}>"
        )
    };
    format!(
        "#a = {}
#b = {}
#s = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
module attributes {{\"ttg.num-ctas\" = {blocks} : i32, \"ttg.num-warps\" = {WARPS} : i32, ttg.target = \"{target}\", \"ttg.threads-per-warp\" = {lanes} : i32}} {{
  tt.func public @kernel(%in: !tt.ptr<i32>, %out: !tt.ptr<i32>) {{
    %n = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32, #a>
    %is = tt.splat %in : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #a>
    %ip = tt.addptr %is, %n : tensor<1024x!tt.ptr<i32>, #a>, tensor<1024xi32, #a>
    %x = tt.load %ip : tensor<1024x!tt.ptr<i32>, #a>
    %os = tt.splat %out : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #a>
    %p = tt.addptr %os, %n : tensor<1024x!tt.ptr<i32>, #a>, tensor<1024xi32, #a>
    %nb = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32, #b>
    %ob = tt.splat %out : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
    %q = tt.addptr %ob, %nb : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
    {body}
    tt.return
  }}
}}
",
        blocked(1),
        blocked(4)
    )
}

/// The lines of each barrier: one, or two for a cluster barrier, with separate arrival and wait.
fn barriers(lines: &[&str]) -> Vec<Vec<usize>> {
    let calling = |names: &[&str]| -> Vec<usize> {
        let is_call =
            |line: &str| line.contains("call ") && names.iter().any(|name| line.contains(name));
        (0..lines.len()).filter(|&i| is_call(lines[i])).collect()
    };
    let of_block = calling(&["@llvm.nvvm.barrier.cta.sync", "@llvm.amdgcn.s.barrier"]);
    let arrivals = calling(&["@llvm.nvvm.barrier.cluster.arrive"]);
    let waits = calling(&["@llvm.nvvm.barrier.cluster.wait"]);
    assert_eq!(arrivals.len(), waits.len());
    let of_cluster = arrivals.into_iter().zip(waits);
    of_block
        .into_iter()
        .map(|line| vec![line])
        .chain(of_cluster.map(|(arrival, wait)| vec![arrival, wait]))
        .collect()
}

fn run(ir: &str, target: Target, blocks: u32, shared: u32) -> Report {
    let machine = Machine::from_ir(ir.as_bytes(), target, None).unwrap();
    let data: Vec<u8> = (0..ELEMENTS as u32)
        .flat_map(|i| (i.wrapping_mul(0x9e37_79b9) >> 3).to_le_bytes())
        .collect();
    let arguments = vec![
        Argument::Buffer(data),
        Argument::Buffer(vec![0; ELEMENTS * 4]),
        Argument::Null,
        Argument::Null,
    ];
    let mut launch = Launch::new([blocks, 1, 1], WARPS * target.warp_size(), arguments);
    launch.dynamic_shared = shared.into();
    machine
        .run(&mut launch, &llopt::sim::Options::default())
        .unwrap()
}

fn check(name: &str, blocks: u32, bodies: &[(&str, &str)]) {
    let target = Target::parse(name).unwrap();
    let mut options = Options::new(target);
    options.optimize = false;
    let compiler = Compiler::new(options);
    for (what, body) in bodies {
        let source = Source::new("kernel.ttgir", module(body, target, blocks));
        let compiled = compiler.compile(&source, ArtifactKind::Llvm).unwrap();
        let (text, shared) = (compiled.artifact.text().unwrap(), compiled.metadata.shared);
        let whole = run(text, target, blocks, shared);
        assert_eq!(whole.findings, [], "{what} on {name}");
        let lines: Vec<&str> = text.lines().collect();
        let barriers = barriers(&lines);
        assert!(!barriers.is_empty(), "{what} on {name} has no barrier");
        for barrier in &barriers {
            let kept = (0..lines.len()).filter(|line| !barrier.contains(line));
            let fewer: Vec<&str> = kept.map(|line| lines[line]).collect();
            let report = run(&fewer.join("\n"), target, blocks, shared);
            let races = |kind| {
                matches!(
                    kind,
                    FindingKind::SharedWriteWriteRace | FindingKind::SharedReadWriteRace
                )
            };
            assert!(
                report.findings.iter().any(|finding| races(finding.kind)),
                "{what} on {name} needs no barrier at line {}: {}",
                barrier[0] + 1,
                lines[barrier[0]]
            );
        }
    }
}

#[test]
fn every_barrier_is_needed_on_nvidia() {
    check("cuda:80", 1, &BODIES);
    check("cuda:90", 1, &BODIES);
}

#[test]
fn every_barrier_is_needed_on_amd() {
    for name in [
        "hip:gfx90a",
        "hip:gfx942",
        "hip:gfx950",
        "hip:gfx1100",
        "hip:gfx1200",
    ] {
        check(name, 1, &BODIES);
    }
}

#[test]
fn every_barrier_of_a_cluster_is_needed() {
    check("cuda:90", 2, &CLUSTER_BODIES);
    check("cuda:90", 4, &CLUSTER_BODIES);
}
