//! Planted bugs, one per kind, each next to the same kernel without it.

use llopt_sim::{Argument, Error, FindingKind, Report};

use crate::harness::{data_layout, lanewise, run, run_to_error};

/// A kernel of 64 threads with one word of shared memory each at `%p`.
fn kernel(name: &str, body: &str) -> String {
    let (convention, id) = if name.starts_with("cuda") {
        ("ptx_kernel", "llvm.nvvm.read.ptx.sreg.tid.x")
    } else {
        ("amdgpu_kernel", "llvm.amdgcn.workitem.id.x")
    };
    format!(
        "{}
@s = internal addrspace(3) global [64 x i32] poison, align 16
define {convention} void @k(ptr addrspace(1) %out) !dbg !4 {{
entry:
  %i = call i32 @{id}()
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %i
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  {body}
  ret void
}}
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2}}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: \"kernel.py\", directory: \"/\")
!2 = !{{i32 2, !\"Debug Info Version\", i32 3}}
!4 = distinct !DISubprogram(name: \"k\", scope: !1, file: !1, line: 1, type: !5, spFlags: DISPFlagDefinition, unit: !0)
!5 = !DISubroutineType(types: !6)
!6 = !{{}}
!7 = !DILocation(line: 42, column: 7, scope: !4)
",
        data_layout(name)
    )
}

const NV: &str = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";
const AMD: &str = "call void @llvm.amdgcn.s.barrier()";

fn report(name: &str, body: &str, threads: u32) -> Report {
    run(
        name,
        &kernel(name, body),
        threads,
        vec![Argument::Buffer(vec![0; 1024])],
    )
    .1
}

fn kinds(report: &Report) -> Vec<FindingKind> {
    report.findings.iter().map(|f| f.kind).collect()
}

#[test]
fn a_forgotten_barrier_between_warps() {
    for (name, barrier, threads) in [("cuda:90", NV, 64), ("hip:gfx1100", AMD, 64)] {
        let body = |barrier: &str| {
            format!(
                "store i32 %i, ptr addrspace(3) %p
  {barrier}
  %n = xor i32 %i, 32
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %x = load i32, ptr addrspace(3) %q, !dbg !7
  store i32 %x, ptr addrspace(1) %o"
            )
        };
        assert_eq!(kinds(&report(name, &body(barrier), threads)), []);
        let racy = report(name, &body(""), threads);
        assert!(!racy.findings.is_empty());
        let race = racy
            .findings
            .iter()
            .find(|f| f.kind == FindingKind::SharedReadWriteRace && f.instruction.contains("load"));
        let race = race.unwrap_or_else(|| panic!("{name}: {:#?}", racy.findings));
        assert_eq!(race.warp, 1);
        assert_eq!(race.source.as_deref(), Some("kernel.py:42:7"));
        assert!(race.instruction.contains("load i32"), "{race}");
        assert_eq!(race.block, [0, 0, 0]);
        assert!(race.address.is_some());
    }
}

#[test]
fn two_warps_write_one_word() {
    let body = "%h = and i32 %i, 31
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %h
  store i32 %i, ptr addrspace(3) %q";
    assert_eq!(
        kinds(&report("cuda:90", body, 64)),
        [FindingKind::SharedWriteWriteRace]
    );
    // The same value is no race: duplicated warps do this on purpose.
    let same = body.replace("store i32 %i", "store i32 %h");
    assert_eq!(kinds(&report("cuda:90", &same, 64)), []);
}

#[test]
fn lanes_of_one_warp() {
    // Without a meeting, lanes of a warp are unordered on NVIDIA, and ordered by lockstep on AMD.
    let body = |meet: &str| {
        format!(
            "store i32 %i, ptr addrspace(3) %p
  {meet}
  %n = xor i32 %i, 1
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %x = load i32, ptr addrspace(3) %q
  store i32 %x, ptr addrspace(1) %o"
        )
    };
    assert_eq!(
        kinds(&report("cuda:90", &body(""), 32)),
        [FindingKind::SharedReadWriteRace]
    );
    assert_eq!(
        kinds(&report(
            "cuda:90",
            &body("call void @llvm.nvvm.bar.warp.sync(i32 -1)"),
            32
        )),
        []
    );
    assert_eq!(kinds(&report("hip:gfx942", &body(""), 64)), []);
    // Two lanes of one instruction, though, race everywhere.
    let one = "store i32 %i, ptr addrspace(3) @s";
    assert_eq!(
        kinds(&report("hip:gfx942", one, 64)),
        [FindingKind::SharedWriteWriteRace]
    );
    assert_eq!(
        kinds(&report("cuda:90", one, 32)),
        [FindingKind::SharedWriteWriteRace]
    );
}

#[test]
fn out_of_bounds() {
    let body = "%q = getelementptr i32, ptr addrspace(1) %out, i32 256\n store i32 1, ptr addrspace(1) %q, !dbg !7";
    let found = report("cuda:90", body, 1);
    assert_eq!(kinds(&found), [FindingKind::OutOfBounds]);
    assert!(
        found.findings[0]
            .message
            .contains("offset 1024 of a buffer of 1024 bytes"),
        "{}",
        found.findings[0]
    );
    let body = "%q = getelementptr i32, ptr addrspace(1) %out, i32 -1\n %x = load i32, ptr addrspace(1) %q";
    assert_eq!(
        kinds(&report("hip:gfx942", body, 1)),
        [FindingKind::OutOfBounds]
    );
    // Beyond the 256 static and 4096 dynamic bytes.
    let body =
        "%q = getelementptr i8, ptr addrspace(3) @s, i32 4352\n store i8 1, ptr addrspace(3) %q";
    assert_eq!(
        kinds(&report("cuda:90", body, 1)),
        [FindingKind::OutOfBounds]
    );
    let body = "store i32 1, ptr null";
    assert_eq!(
        kinds(&report("cuda:90", body, 1)),
        [FindingKind::OutOfBounds]
    );
    let body = "%a = alloca i32, addrspace(5)\n %q = getelementptr i8, ptr addrspace(5) %a, i32 4\n store i32 1, ptr addrspace(5) %q";
    assert_eq!(
        kinds(&report("hip:gfx942", body, 1)),
        [FindingKind::OutOfBounds]
    );
}

#[test]
fn misaligned() {
    let body = "%q = getelementptr i8, ptr addrspace(1) %out, i32 6\n store i32 1, ptr addrspace(1) %q, align 4";
    assert_eq!(
        kinds(&report("cuda:90", body, 1)),
        [FindingKind::Misaligned]
    );
    let body = "%q = getelementptr i8, ptr addrspace(3) @s, i32 8\n call void asm sideeffect \"st.shared.v4.b32 [ $0 + 0 ], { $1, $1, $1, $1 };\", \"r,r\"(ptr addrspace(3) %q, i32 1)";
    assert_eq!(
        kinds(&report("cuda:90", body, 1)),
        [FindingKind::Misaligned]
    );
}

#[test]
fn uninitialised() {
    let body = "%x = load i32, ptr addrspace(3) %p\n store i32 %x, ptr addrspace(1) %o";
    assert_eq!(
        kinds(&report("cuda:90", body, 32)),
        [FindingKind::UninitializedRead]
    );
    let body = "%a = alloca i32\n %x = load i32, ptr %a\n store i32 %x, ptr addrspace(1) %o";
    assert_eq!(
        kinds(&report("cuda:90", body, 32)),
        [FindingKind::UninitializedRead]
    );
    let ir = lanewise("cuda:90", "%y = add i32 %x, 1");
    let arguments = vec![Argument::Uninitialized(128), Argument::Uninitialized(128)];
    let (arguments, report) = run("cuda:90", &ir, 32, arguments);
    assert_eq!(kinds(&report), [FindingKind::UninitializedRead]);
    assert!(matches!(&arguments[1], Argument::Buffer(bytes) if bytes.len() == 128));
}

#[test]
fn barriers_that_not_all_reach() {
    // Half a warp.
    let half = |barrier: &str| {
        format!(
            "%low = icmp ult i32 %i, 16\n br i1 %low, label %a, label %b\na:\n {barrier}\n br label %b\nb:"
        )
    };
    assert_eq!(
        kinds(&report("cuda:90", &half(NV), 32)),
        [FindingKind::DivergentBarrier]
    );
    // A whole warp that leaves early.
    let body = format!(
        "%low = icmp ult i32 %i, 32\n br i1 %low, label %a, label %b\na:\n {NV}\n br label %b\nb:"
    );
    assert_eq!(
        kinds(&report("cuda:90", &body, 64)),
        [FindingKind::DivergentBarrier]
    );
    // A named barrier that waits for more than will come.
    let body = "call void asm sideeffect \"bar.sync 1, 96;\", \"\"()";
    let error = run_to_error(
        "cuda:90",
        &kernel("cuda:90", body),
        64,
        vec![Argument::Buffer(vec![0; 1024])],
    );
    let Error::Stopped {
        report, message, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert!(
        message.contains("barrier 1 waits for 96 threads, 64 have arrived"),
        "{message}"
    );
    assert_eq!(kinds(report), [FindingKind::DivergentBarrier]);
}

#[test]
fn clean_kernels_have_no_findings() {
    // A transposition through shared memory, twice, with a barrier before reuse.
    for (name, barrier) in [("cuda:90", NV), ("hip:gfx1100", AMD)] {
        let body = format!(
            "store i32 %i, ptr addrspace(3) %p
  {barrier}
  %n = xor i32 %i, 63
  %q = getelementptr i32, ptr addrspace(3) @s, i32 %n
  %x = load i32, ptr addrspace(3) %q
  {barrier}
  store i32 %x, ptr addrspace(3) %p
  {barrier}
  %z = load i32, ptr addrspace(3) %q
  store i32 %z, ptr addrspace(1) %o"
        );
        assert_eq!(kinds(&report(name, &body, 64)), [], "{name}");
    }
}
