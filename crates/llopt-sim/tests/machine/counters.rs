//! Counters, compared with numbers computed by hand.

use llopt_sim::Argument;

use crate::harness::{data_layout, numbers, run};

/// A warp writes and reads a 16x32 tile of singles in shared memory with a row pitch of `pitch` bytes: it writes rows
/// and reads columns, as a transposition does.
fn transposition(pitch: u32) -> (u64, u64) {
    let ir = format!(
        "{}
@s = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @k(ptr addrspace(1) %out) {{
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %in
in:
  %r = phi i32 [ 0, %entry ], [ %r1, %in ]
  %a = mul i32 %r, {pitch}
  %b = shl i32 %i, 2
  %c = add i32 %a, %b
  %p = getelementptr i8, ptr addrspace(3) @s, i32 %c
  store i32 %c, ptr addrspace(3) %p
  %r1 = add i32 %r, 1
  %more = icmp ult i32 %r1, 16
  br i1 %more, label %in, label %middle
middle:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %row = and i32 %i, 15
  %half = lshr i32 %i, 4
  br label %over
over:
  %k = phi i32 [ 0, %middle ], [ %k1, %over ]
  %k2 = shl i32 %k, 1
  %col = add i32 %k2, %half
  %d = mul i32 %row, {pitch}
  %e = shl i32 %col, 2
  %f = add i32 %d, %e
  %q = getelementptr i8, ptr addrspace(3) @s, i32 %f
  %x = load i32, ptr addrspace(3) %q
  %k1 = add i32 %k, 1
  %again = icmp ult i32 %k1, 16
  br i1 %again, label %over, label %done
done:
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %x, ptr addrspace(1) %o
  ret void
}}",
        data_layout("cuda:90")
    );
    let (_, report) = run("cuda:90", &ir, 32, vec![Argument::Buffer(vec![0; 128])]);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let shared = report.shared;
    assert_eq!(
        (
            shared.store_instructions,
            shared.store_wavefronts,
            shared.store_bound
        ),
        (16, 16, 16)
    );
    assert_eq!((shared.load_instructions, shared.load_bound), (16, 16));
    assert_eq!(report.barriers, 1);
    (shared.load_wavefronts, shared.load_instructions)
}

#[test]
fn transposes_conflict_as_their_pitch_says() {
    assert_eq!(transposition(128), (16 * 16, 16), "16 ways");
    assert_eq!(
        transposition(132),
        (2 * 16, 16),
        "2 ways: the second column lies one bank on"
    );
    assert_eq!(transposition(136), (16, 16), "1 way");
}

#[test]
fn an_access_of_a_buffer_is_one_instruction() {
    let ir = format!(
        "{}
define amdgpu_kernel void @k(ptr addrspace(1) %in) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %o = shl i32 %i, 4
  %r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 0, i64 1024, i32 0)
  %v = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %r, i32 %o, i32 0, i32 0)
  call void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32> %v, ptr addrspace(8) %r, i32 %o, i32 0, i32 0)
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
declare <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8), i32, i32, i32 immarg)
declare void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32>, ptr addrspace(8), i32, i32, i32 immarg)
",
        data_layout("hip:gfx942")
    );
    let (_, report) = run("hip:gfx942", &ir, 64, vec![Argument::Buffer(vec![0; 1024])]);
    let global = report.global;
    // 64 lanes of 16 bytes, whatever the alignment of the offsets.
    assert_eq!((global.load_instructions, global.load_sectors), (1, 32));
    assert_eq!((global.store_instructions, global.store_sectors), (1, 32));
}

#[test]
fn instructions_sectors_and_lines() {
    let ir = format!(
        "{}
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) !dbg !4 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x(), !dbg !7
  %p = getelementptr <4 x float>, ptr addrspace(1) %in, i32 %i, !dbg !7
  %v = load <4 x float>, ptr addrspace(1) %p, align 16, !dbg !7
  %s = fadd <4 x float> %v, %v, !dbg !8
  %q = getelementptr <4 x float>, ptr addrspace(1) %out, i32 %i, !dbg !8
  store <4 x float> %s, ptr addrspace(1) %q, align 4, !dbg !8
  ret void, !dbg !8
}}
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2}}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: \"k.py\", directory: \"/\")
!2 = !{{i32 2, !\"Debug Info Version\", i32 3}}
!4 = distinct !DISubprogram(name: \"k\", scope: !1, file: !1, line: 1, type: !5, spFlags: DISPFlagDefinition, unit: !0)
!5 = !DISubroutineType(types: !6)
!6 = !{{}}
!7 = !DILocation(line: 10, column: 1, scope: !4)
!8 = !DILocation(line: 11, column: 1, scope: !4)
",
        data_layout("hip:gfx942")
    );
    let arguments = vec![
        Argument::Buffer(vec![0; 1024]),
        Argument::Buffer(vec![0; 1024]),
    ];
    let (_, report) = run("hip:gfx942", &ir, 64, arguments);
    let global = report.global;
    // 64 lanes of 16 bytes are 32 sectors; a store that is aligned to 4 takes four instructions over them all.
    assert_eq!((global.load_instructions, global.load_sectors), (1, 32));
    assert_eq!((global.store_instructions, global.store_sectors), (4, 128));
    let lines: Vec<u32> = report.per_source_line.iter().map(|l| l.line).collect();
    assert_eq!(lines, [10, 11]);
    assert_eq!(report.per_source_line[0].global.load_sectors, 32);
    // Four additions, an address (the index is widened first), a store and the return.
    assert_eq!(report.per_source_line[1].instructions, 8);
    assert_eq!(report.lane_instructions, 64 * report.instructions);
    let json = serde_json::to_value(&report).unwrap();
    for key in [
        "load_instructions",
        "load_wavefronts",
        "load_bound",
        "store_instructions",
        "store_wavefronts",
        "store_bound",
    ] {
        assert!(json["shared"][key].is_u64(), "{key}");
    }
    assert_eq!(json["global"]["load_sectors"], 32);
    assert!(json["findings"].as_array().unwrap().is_empty());
}

/// Each lane writes three words out of four and reads `words` of them one by one; (instructions, wavefronts) of the
/// loads.
fn neighbours(words: u32, triple: &str) -> (u64, u64) {
    let loads: String = (0..words)
        .map(|i| {
            format!(
                "%q{i} = getelementptr i8, ptr addrspace(3) %p, i32 {}
                 %x{i} = load i32, ptr addrspace(3) %q{i}, align {}\n",
                4 * i,
                if i == 0 { 16 } else { 4 }
            )
        })
        .collect();
    let sums: String = (1..words)
        .map(|i| {
            let before = if i == 1 {
                "x0".to_owned()
            } else {
                format!("s{}", i - 1)
            };
            format!("%s{i} = add i32 %{before}, %x{i}\n")
        })
        .collect();
    let ir = format!(
        "{}
{triple}
@s = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @k(ptr addrspace(1) %out) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = shl i32 %i, 4
  %p = getelementptr i8, ptr addrspace(3) @s, i32 %at
  store <2 x i32> <i32 1, i32 2>, ptr addrspace(3) %p, align 16
  %p8 = getelementptr i8, ptr addrspace(3) %p, i32 8
  store i32 3, ptr addrspace(3) %p8, align 8
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  {loads}
  {sums}
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %s{}, ptr addrspace(1) %o
  ret void
}}",
        data_layout("cuda:90"),
        words - 1
    );
    let (arguments, report) = run("cuda:90", &ir, 32, vec![Argument::Buffer(vec![0; 128])]);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(
        numbers(&arguments[0])
            .iter()
            .all(|&sum| sum == [3, 6][words as usize - 2])
    );
    (
        report.shared.load_instructions,
        report.shared.load_wavefronts,
    )
}

#[test]
fn neighbours_are_accessed_at_once_as_on_hardware() {
    // Words 16 bytes apart conflict four ways, for two words of 8 bytes half a warp is served at once.
    assert_eq!(neighbours(2, ""), (2, 8), "no target is named");
    let triple = "target triple = \"nvptx64-nvidia-cuda\"";
    assert_eq!(neighbours(2, triple), (1, 4));
    // Of three words all four are fetched; that the fourth was never written is not reported.
    assert_eq!(neighbours(3, triple), (1, 4));
}
