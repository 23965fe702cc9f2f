//! Asynchronous copies, mbarriers, named barriers.

use llopt_sim::{Argument, FindingKind};

use crate::harness::{data_layout, numbers, run, words};

/// A kernel that copies a word per thread to shared memory with `cp.async`, runs `wait`, and reads a neighbour's.
fn copying(wait: &str) -> String {
    format!(
        "{}
@s = internal addrspace(3) global [64 x i32] poison, align 16
define ptx_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %g = getelementptr i32, ptr addrspace(1) %in, i32 %i
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %i
  call void asm sideeffect \"cp.async.ca.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x4, $2;\", \"r,l,r\"(ptr addrspace(3) %p, ptr addrspace(1) %g, i32 4)
  call void @llvm.nvvm.cp.async.commit.group()
  {wait}
  %n = xor i32 %i, 63
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %x = load i32, ptr addrspace(3) %q
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %x, ptr addrspace(1) %o
  ret void
}}",
        data_layout("cuda:80")
    )
}

const WAIT: &str = "call void @llvm.nvvm.cp.async.wait.group(i32 0)";
const BARRIER: &str = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";

#[test]
fn copies_arrive_when_waited_for() {
    let input: Vec<u32> = (0..64).collect();
    let arguments = || {
        vec![
            Argument::Buffer(words(&input)),
            Argument::Buffer(vec![0; 256]),
        ]
    };
    let (results, report) = run(
        "cuda:80",
        &copying(&format!("{WAIT}\n {BARRIER}")),
        64,
        arguments(),
    );
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let expected: Vec<u32> = (0..64).rev().collect();
    assert_eq!(numbers(&results[1]), expected);
    // Not waited for: the data is not there.
    let (results, report) = run("cuda:80", &copying(BARRIER), 64, arguments());
    assert_eq!(report.findings[0].kind, FindingKind::UnwaitedCopy);
    assert_ne!(numbers(&results[1]), expected);
    // Waited for, but without a barrier: other threads may not see it.
    let (_, report) = run("cuda:80", &copying(WAIT), 64, arguments());
    let kinds: Vec<FindingKind> = report.findings.iter().map(|f| f.kind).collect();
    assert!(
        kinds.contains(&FindingKind::SharedReadWriteRace)
            || kinds.contains(&FindingKind::UnwaitedCopy)
            || kinds.contains(&FindingKind::UninitializedRead),
        "{kinds:?}"
    );
    assert!(!kinds.is_empty());
}

#[test]
fn copies_write_zeros_where_their_source_is_ignored() {
    let input: Vec<u32> = (1..65).collect();
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 256]),
    ];
    let kernel = copying(&format!("{WAIT}\n {BARRIER}"));
    let text = kernel
        .replace("0x4, $2;", "0x4, !$2;")
        .replace("\"r,l,r\"", "\"r,l,b\"")
        .replace("i32 4)", "i1 %even)")
        .replace(
            "  %g = getelementptr",
            "  %bit = trunc i32 %i to i1\n  %even = xor i1 %bit, true\n  %g = getelementptr",
        );
    let (buffers, report) = run("cuda:80", &text, 64, arguments);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let copied = (0..64u32).rev().map(|place| match place % 2 {
        0 => place + 1,
        _ => 0,
    });
    assert_eq!(numbers(&buffers[1]), copied.collect::<Vec<_>>());
}

#[test]
fn a_wait_for_too_few_groups_is_found() {
    let input: Vec<u32> = (0..64).collect();
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 256]),
    ];
    let wait = format!("call void @llvm.nvvm.cp.async.wait.group(i32 1)\n {BARRIER}");
    let (_, report) = run("cuda:80", &copying(&wait), 64, arguments);
    assert_eq!(report.findings[0].kind, FindingKind::UnwaitedCopy);
}

#[test]
fn bulk_copies_are_counted_by_an_mbarrier() {
    let kernel = |wait: &str| {
        format!(
            "{}
@s = internal addrspace(3) global [64 x i32] poison, align 16
@bar = internal addrspace(3) global i64 poison, align 8
define ptx_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %i, 0
  call void asm sideeffect \"@$1 mbarrier.init.shared::cta.b64 [ $0 ], 1;\", \"r,b\"(ptr addrspace(3) @bar, i1 %first)
  call void asm sideeffect \"fence.proxy.async.shared::cta;\", \"\"()
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  call void asm sideeffect \"@$1 mbarrier.arrive.expect_tx.shared.b64 _, [ $0 ], 256;\", \"r,b\"(ptr addrspace(3) @bar, i1 %first)
  call void asm sideeffect \"@$3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [ $0 ], [ $1 ], 256, [ $2 ];\", \"r,l,r,b\"(ptr addrspace(3) @s, ptr addrspace(1) %in, ptr addrspace(3) @bar, i1 %first)
  {wait}
  %n = xor i32 %i, 63
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %x = load i32, ptr addrspace(3) %q
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %x, ptr addrspace(1) %o
  ret void
}}",
            data_layout("cuda:90")
        )
    };
    let wait = "call void asm sideeffect \"{ .reg .pred done; wait: mbarrier.try_wait.parity.shared.b64 done, [ $0 ], 0; @!done bra.uni wait; }\", \"r\"(ptr addrspace(3) @bar)";
    let input: Vec<u32> = (0..64).collect();
    let arguments = || {
        vec![
            Argument::Buffer(words(&input)),
            Argument::Buffer(vec![0; 256]),
        ]
    };
    let (results, report) = run("cuda:90", &kernel(wait), 64, arguments());
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(numbers(&results[1]), (0..64).rev().collect::<Vec<u32>>());
    let (_, report) = run("cuda:90", &kernel(""), 64, arguments());
    assert!(
        report.findings.iter().any(|f| matches!(
            f.kind,
            FindingKind::SharedReadWriteRace | FindingKind::UninitializedRead
        )),
        "{:#?}",
        report.findings
    );
}

#[test]
fn named_barriers_order_producers_and_consumers() {
    // Warp 0 produces and arrives, warp 1 waits and consumes.
    let ir = format!(
        "{}
@s = internal addrspace(3) global [32 x i32] poison, align 16
define ptx_kernel void @k(ptr addrspace(1) %out) {{
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %l = and i32 %i, 31
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %l
  %producer = icmp ult i32 %i, 32
  br i1 %producer, label %produce, label %consume
produce:
  store i32 %i, ptr addrspace(3) %p
  call void asm sideeffect \"bar.arrive 3, 64;\", \"\"()
  br label %done
consume:
  call void asm sideeffect \"bar.sync 3, 64;\", \"\"()
  %x = load i32, ptr addrspace(3) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %l
  store i32 %x, ptr addrspace(1) %o
  br label %done
done:
  ret void
}}",
        data_layout("cuda:90")
    );
    let (results, report) = run("cuda:90", &ir, 64, vec![Argument::Buffer(vec![0; 128])]);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(numbers(&results[0]), (0..32).collect::<Vec<u32>>());
}

/// A kernel of one wave that loads a word per lane to LDS, twice, waits, and reads the result of the lanes' first
/// load.
fn loading(wait: &str) -> String {
    format!(
        "{}
@s = internal addrspace(3) global [128 x i32] poison, align 16
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr i32, ptr addrspace(1) %in, i32 %i
  call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %g, ptr addrspace(3) @s, i32 4, i32 0, i32 0)
  call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %g, ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @s, i32 256), i32 4, i32 0, i32 0)
  {wait}
  %n = xor i32 %i, 63
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %x = load i32, ptr addrspace(3) %q
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %x, ptr addrspace(1) %o
  ret void
}}
declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)
declare void @llvm.amdgcn.s.waitcnt(i32)",
        data_layout("hip:gfx942")
    )
}

#[test]
fn loads_to_lds_arrive_when_their_counter_is_waited_for() {
    let input: Vec<u32> = (0..64).collect();
    // vmcnt 0, vmcnt 1, and a wait for LDS operations only.
    let waits = [("3952", true), ("3953", true), ("49279", false)];
    for (counters, enough) in waits {
        let wait = format!("call void @llvm.amdgcn.s.waitcnt(i32 {counters})");
        let arguments = vec![
            Argument::Buffer(words(&input)),
            Argument::Buffer(vec![0; 256]),
        ];
        let (after, report) = run("hip:gfx942", &loading(&wait), 64, arguments);
        let kinds: Vec<FindingKind> = report.findings.iter().map(|f| f.kind).collect();
        if enough {
            assert_eq!(kinds, [], "{counters}");
            let reversed: Vec<u32> = (0..64).rev().collect();
            assert_eq!(numbers(&after[1]), reversed);
        } else {
            assert_eq!(kinds, [FindingKind::UnwaitedCopy], "{counters}");
        }
    }
}
