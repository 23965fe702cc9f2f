//! Waits for copies to LDS are long enough and no longer: with the counts of the compiler the machine has no
//! findings, and if any one of them is greater by one, data is read before it has arrived.

use llopt::sim::{Argument, FindingKind, Launch, Machine, Report};
use llopt::{ArtifactKind, Compiler, Options, Source, Target};

const WARPS: u32 = 4;
const TILES: usize = 6;

/// Bodies of kernels. `COPY` names a buffer, by a number, and starts a copy of the tile of that number to it; `READ`
/// adds the contents of a buffer to the sum, which is stored in the end.
const BODIES: [(&str, &str); 5] = [
    (
        "three copies, waited for one after the other",
        "%t0 = COPY %c0
         %g0 = ttg.async_commit_group tokens %t0
         %t1 = COPY %c1
         %t2 = COPY %c2
         %g1 = ttg.async_commit_group tokens %t1, %t2
         %w0 = ttg.async_wait {num = 1 : i32}
         READ %a = %zero, %c0
         %t3 = COPY %c3
         %g2 = ttg.async_commit_group tokens %t3
         %w1 = ttg.async_wait {num = 1 : i32}
         READ %b = %a, %c1
         READ %c = %b, %c2
         %w2 = ttg.async_wait {num = 0 : i32}
         READ %sum = %c, %c3",
    ),
    (
        "a group named by its token, with younger ones under way",
        "%t0 = COPY %c0
         %g0 = ttg.async_commit_group tokens %t0
         %t1 = COPY %c1
         %g1 = ttg.async_commit_group tokens %t1
         %t2 = COPY %c2
         %g2 = ttg.async_commit_group tokens %t2
         %w0 = ttg.async_wait %g0 {num = 0 : i32}
         READ %a = %zero, %c0
         %w1 = ttg.async_wait %g2, %g1 {num = 0 : i32}
         READ %b = %a, %c1
         READ %sum = %b, %c2",
    ),
    (
        "a loop with three buffers",
        "%t0 = COPY %c0
         %g0 = ttg.async_commit_group tokens %t0
         %t1 = COPY %c1
         %g1 = ttg.async_commit_group tokens %t1
         %sum, %x, %y = scf.for %k = %c2 to %c4 step %c1 iter_args(%s = %zero, %g = %g0, %h = %g1) -> (tensor<1024xi32, #b>, !ttg.async.token, !ttg.async.token) : i32 {
           %t = COPY %k
           %gn = ttg.async_commit_group tokens %t
           %w = ttg.async_wait %g {num = 0 : i32}
           %before = arith.subi %k, %c2 : i32
           READ %next = %s, %before
           scf.yield %next, %h, %gn : tensor<1024xi32, #b>, !ttg.async.token, !ttg.async.token
         }",
    ),
    (
        "one copy or two, as the program goes",
        "%t0 = COPY %c0
         %g0 = ttg.async_commit_group tokens %t0
         scf.if %more {
           %t1 = COPY %c1
           %t2 = COPY %c2
         } else {
           %t3 = COPY %c3
         }
         %w0 = ttg.async_wait {num = 0 : i32}
         READ %sum = %zero, %c0",
    ),
    (
        "instructions are counted by the program",
        "%t0 = COPY %c0
         %g0 = ttg.async_commit_group tokens %t0
         %t1 = COPY %c1
         %g1 = ttg.async_commit_group tokens %t1
         %w0 = amdg.async_wait {num_inst = INSTRUCTIONS : i32}
         READ %a = %zero, %c0
         %w1 = amdg.async_wait %g1 {num_inst = INSTRUCTIONS : i32}
         READ %sum = %a, %c1",
    ),
];

fn module(body: &str, target: Target, width: u32) -> String {
    let mut lines = String::new();
    let mut number = 0;
    for line in body.lines().map(str::trim) {
        number += 1;
        let buffer = |tile: &str| {
            format!(
                "%m{number} = ttg.memdesc_index %buffers[{tile}] : !ttg.memdesc<{TILES}x1024xi32, #s, #smem, mutable> \
                 -> !ttg.memdesc<1024xi32, #s, #smem, mutable>\n"
            )
        };
        if let Some((token, tile)) = line.split_once(" = COPY ") {
            lines += &buffer(tile);
            lines += &format!(
                "%o{number} = arith.muli {tile}, %c1024 : i32
                 %f{number} = tt.addptr %in, %o{number} : !tt.ptr<i32>, i32
                 %q{number} = tt.splat %f{number} : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #a>
                 %p{number} = tt.addptr %q{number}, %n : tensor<1024x!tt.ptr<i32>, #a>, tensor<1024xi32, #a>
                 {token} = ttg.async_copy_global_to_local %p{number}, %m{number} : tensor<1024x!tt.ptr<i32>, #a> -> <1024xi32, #s, #smem, mutable>\n"
            );
        } else if let Some(read) = line.strip_prefix("READ ") {
            let (sum, (before, tile)) = read
                .split_once(" = ")
                .map(|(sum, from)| (sum, from.split_once(", ").unwrap()))
                .unwrap();
            lines += &buffer(tile);
            lines += &format!(
                "%v{number} = ttg.local_load %m{number} : !ttg.memdesc<1024xi32, #s, #smem, mutable> -> tensor<1024xi32, #b>
                 {sum} = arith.addi {before}, %v{number} : tensor<1024xi32, #b>\n"
            );
        } else {
            lines += line;
            lines.push('\n');
        }
    }
    let instructions = 1024 / (WARPS * target.warp_size() * width);
    let body = lines.replace("INSTRUCTIONS", &instructions.to_string());
    let lanes = target.warp_size();
    let blocked = |size: u32| {
        format!(
            "#ttg.blocked<{{sizePerThread = [{size}], threadsPerWarp = [{lanes}], \
             warpsPerCTA = [{WARPS}], order = [0]}}>"
        )
    };
    let constants: String = (0..5)
        .map(|i| format!("%c{i} = arith.constant {i} : i32\n"))
        .collect();
    format!(
        "#a = {}
#b = {}
#s = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = {WARPS} : i32, ttg.target = \"{target}\", \"ttg.threads-per-warp\" = {lanes} : i32}} {{
  tt.func public @kernel(%in: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %out: !tt.ptr<i32>, %more: i1) {{
    {constants}
    %c1024 = arith.constant 1024 : i32
    %zero = arith.constant dense<0> : tensor<1024xi32, #b>
    %buffers = ttg.local_alloc : () -> !ttg.memdesc<{TILES}x1024xi32, #s, #smem, mutable>
    %n = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32, #a>
    {body}
    %nb = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32, #b>
    %ob = tt.splat %out : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
    %pb = tt.addptr %ob, %nb : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
    tt.store %pb, %sum : tensor<1024x!tt.ptr<i32>, #b>
    tt.return
  }}
}}
",
        blocked(width),
        blocked(2)
    )
}

/// The number of loads that a line of IR allows to be outstanding (`s_waitcnt` of gfx9), if it waits for loads, and
/// the line with one more.
fn wait(line: &str) -> Option<(u32, String)> {
    const CALL: &str = "@llvm.amdgcn.s.waitcnt(i32 ";
    let start = line.find("call ").and(line.find(CALL))? + CALL.len();
    let end = start + line[start..].find(')')?;
    let counters: u32 = line[start..end].parse().ok()?;
    let loads = counters & 15 | counters >> 10 & 0x30;
    let more = loads + 1;
    let weaker = counters & !0xc00f | more & 15 | more >> 4 << 14;
    (loads < 63).then(|| {
        let text = format!("{}{weaker}{}", &line[..start], &line[end..]);
        (loads, text)
    })
}

fn run(ir: &str, target: Target, shared: u32, more: bool) -> Report {
    let machine = Machine::from_ir(ir.as_bytes(), target, None).unwrap();
    let data: Vec<u8> = (0..TILES as u32 * 1024)
        .flat_map(|i| (i.wrapping_mul(0x9e37_79b9) >> 3 | 1 << 30).to_le_bytes())
        .collect();
    let arguments = vec![
        Argument::Buffer(data),
        Argument::Buffer(vec![0; 4096]),
        Argument::Int(more.into()),
        Argument::Null,
        Argument::Null,
    ];
    let mut launch = Launch::new([1; 3], WARPS * target.warp_size(), arguments);
    launch.dynamic_shared = shared.into();
    machine
        .run(&mut launch, &llopt::sim::Options::default())
        .unwrap()
}

fn check(name: &str, width: u32) {
    let target = Target::parse(name).unwrap();
    for optimize in [false, true] {
        let mut options = Options::new(target);
        options.optimize = optimize;
        let compiler = Compiler::new(options);
        for (what, body) in BODIES {
            let source = Source::new("kernel.ttgir", module(body, target, width));
            let compiled = compiler.compile(&source, ArtifactKind::Llvm).unwrap();
            let (text, shared) = (compiled.artifact.text().unwrap(), compiled.metadata.shared);
            for more in [false, true] {
                let whole = run(text, target, shared, more);
                assert_eq!(whole.findings, [], "{what} on {name}");
            }
            let lines: Vec<&str> = text.lines().collect();
            let waits: Vec<(usize, u32, String)> = lines
                .iter()
                .enumerate()
                .filter_map(|(at, line)| wait(line).map(|(loads, weaker)| (at, loads, weaker)))
                .collect();
            assert!(
                waits.iter().any(|(_, loads, _)| *loads > 0),
                "{what} on {name} leaves nothing under way"
            );
            for (at, loads, weaker) in waits {
                let mut changed = lines.clone();
                changed[at] = &weaker;
                // The path with fewer instructions is the one that needs the wait.
                let report = run(&changed.join("\n"), target, shared, false);
                assert!(
                    report
                        .findings
                        .iter()
                        .any(|finding| finding.kind == FindingKind::UnwaitedCopy),
                    "{what} on {name}: a wait for all but {loads} takes longer than needed"
                );
            }
        }
    }
}

#[test]
fn every_wait_is_as_long_as_needed() {
    check("hip:gfx942", 1);
    check("hip:gfx950", 4);
}
