//! Planted bugs, one per kind, each next to the same kernel without it.

use llopt_sim::{Argument, Error, FindingKind, Launch, Options, Order, Report};

use crate::harness::{data_layout, lanewise, machine, numbers, run, run_to_error};

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
const AMD: &str = "fence syncscope(\"workgroup\") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope(\"workgroup\") acquire";

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
    // The same value is not a race: duplicated warps do this intentionally.
    let same = body.replace("store i32 %i", "store i32 %h");
    assert_eq!(kinds(&report("cuda:90", &same, 64)), []);
}

#[test]
fn lanes_of_one_warp() {
    // Without synchronisation, lanes of a warp are unordered on NVIDIA, and ordered by lockstep on AMD.
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
    // Two lanes of one instruction race on every target.
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
fn accesses_out_of_bounds_are_found_in_every_memory() {
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
fn misaligned_accesses_are_found() {
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
fn reads_of_what_nothing_wrote_are_found() {
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
    // A named barrier that waits for more threads than will arrive.
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

/// Runs a [`kernel`] on several blocks; `%b` in its body is the block's number.
fn grid_report(body: &str, blocks: u32, order: Order) -> (Vec<u32>, Report) {
    let body = format!("%b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n{body}");
    let arguments = vec![Argument::Buffer(vec![0; 1024])];
    let mut launch = Launch::new([blocks, 1, 1], 32, arguments);
    let options = Options {
        order,
        ..Options::default()
    };
    let ir = kernel("cuda:90", &body);
    let report = machine("cuda:90", &ir).run(&mut launch, &options);
    let report = report.unwrap_or_else(|error| panic!("{error}\n{ir}"));
    (numbers(&launch.arguments[0]), report)
}

fn grid_kinds(body: &str) -> Vec<FindingKind> {
    kinds(&grid_report(body, 4, Order::Ascending).1)
}

#[test]
fn blocks_that_store_different_values_to_one_address() {
    let body = |value: &str| format!("store i32 {value}, ptr addrspace(1) %o, !dbg !7");
    assert_eq!(grid_kinds(&body("5")), []);
    assert_eq!(grid_kinds(&body("%i")), []);
    let (_, report) = grid_report(&body("%b"), 4, Order::Ascending);
    assert_eq!(kinds(&report), [FindingKind::GlobalWriteWriteRace]);
    let finding = report.findings[0].to_string();
    for part in [
        "kernel.py:42:7: a write of global memory races with the write of another block, block (0, 0, 0) warp 0 lane ",
        "(block (1, 0, 0), warp 0, lane ",
    ] {
        assert!(finding.contains(part), "{finding}");
    }
}

#[test]
fn a_block_that_reads_what_another_writes() {
    let body = |next: &str| {
        format!(
            "%n = add i32 %b, {next}
             %from = getelementptr i32, ptr addrspace(1) %out, i32 %n
             %to = getelementptr i32, ptr addrspace(1) %out, i32 %b
             %v = load i32, ptr addrspace(1) %from
             %w = add i32 %v, 1
             store i32 %w, ptr addrspace(1) %to"
        )
    };
    // Each block its own word, in place: all threads of the block load a word before one of them changes it.
    assert_eq!(grid_kinds(&body("0")), []);
    assert_eq!(grid_kinds(&body("8")), []);
    assert!(grid_kinds(&body("1")).contains(&FindingKind::GlobalReadWriteRace));
}

#[test]
fn updates_that_are_lost_and_atomics_mixed_with_stores() {
    let lost = "%v = load i32, ptr addrspace(1) %o
                %w = add i32 %v, 1
                store i32 %w, ptr addrspace(1) %o";
    assert!(grid_kinds(lost).contains(&FindingKind::GlobalReadWriteRace));
    let atomic = "%v = atomicrmw add ptr addrspace(1) %o, i32 1 monotonic";
    assert_eq!(grid_kinds(atomic), []);
    let mixed = "%f = icmp eq i32 %b, 2
                 br i1 %f, label %plain, label %update
               plain:
                 store i32 7, ptr addrspace(1) %o
                 br label %end
               update:
                 %v = atomicrmw add ptr addrspace(1) %o, i32 1 monotonic
                 br label %end
               end:";
    assert!(grid_kinds(mixed).contains(&FindingKind::GlobalWriteWriteRace));
}

/// The last of the blocks to arrive reads the values of all: the usual end of a reduction.
#[test]
fn a_counter_orders_what_comes_before_with_what_comes_after() {
    let body = |counted: &str| {
        format!(
            "%place = add i32 %b, 64
             %mine = getelementptr i32, ptr addrspace(1) %out, i32 %place
             %counter = getelementptr i32, ptr addrspace(1) %out, i32 128
             %first = icmp eq i32 %i, 0
             br i1 %first, label %work, label %end
           work:
             store i32 %b, ptr addrspace(1) %mine
             %count = {counted}
             %last = icmp eq i32 %count, 3
             br i1 %last, label %read, label %end
           read:
             %other = getelementptr i32, ptr addrspace(1) %out, i32 64
             %v = load i32, ptr addrspace(1) %other
             br label %end
           end:"
        )
    };
    let counted = "atomicrmw add ptr addrspace(1) %counter, i32 1 acq_rel";
    assert_eq!(grid_kinds(&body(counted)), []);
    // Without the counter, by the number of the block.
    assert_eq!(
        grid_kinds(&body("add i32 %b, 0")),
        [FindingKind::GlobalReadWriteRace]
    );
}

#[test]
fn warps_of_a_block_that_meet_in_global_memory() {
    let body = |barrier: &str| {
        format!(
            "store i32 %i, ptr addrspace(1) %o
             {barrier}
             %j = xor i32 %i, 32
             %q = getelementptr i32, ptr addrspace(1) %out, i32 %j
             %v = load i32, ptr addrspace(1) %q"
        )
    };
    assert_eq!(kinds(&report("cuda:90", &body(NV), 64)), []);
    let found = report("cuda:90", &body(""), 64);
    assert_eq!(kinds(&found), [FindingKind::GlobalReadWriteRace]);
}

#[test]
fn a_result_that_depends_on_the_order_of_blocks() {
    let body = "store i32 %b, ptr addrspace(1) %o";
    let of = |order| grid_report(body, 4, order).0[0];
    assert_eq!((of(Order::Ascending), of(Order::Descending)), (3, 0));
}

#[test]
fn a_division_by_zero() {
    for (divisor, expected) in [("%i", vec![FindingKind::DivisionByZero]), ("%j", vec![])] {
        let body = format!(
            "%j = add i32 %i, 1
             %q = udiv i32 7, {divisor}
             store i32 %q, ptr addrspace(1) %o"
        );
        assert_eq!(kinds(&report("cuda:90", &body, 32)), expected);
        assert_eq!(kinds(&report("hip:gfx1100", &body, 32)), expected);
    }
}

#[test]
fn a_buffer_that_was_given_back_or_begins_anew() {
    const MARKS: &str = "declare void @llopt_buffer_begins(ptr addrspace(3), i32)
declare void @llopt_buffer_ends(ptr addrspace(3), i32)\n";
    let of = |name: &str, between: &str, last: &str| {
        let body = format!(
            "call void @llopt_buffer_begins(ptr addrspace(3) @s, i32 256)
             store i32 %i, ptr addrspace(3) %p
             %x = load i32, ptr addrspace(3) %p
             store i32 %x, ptr addrspace(1) %o
             {between}
             {last}"
        );
        let arguments = vec![Argument::Buffer(vec![0; 1024])];
        run(name, &(kernel(name, &body) + MARKS), 64, arguments).1
    };
    let [ends, begins] = ["ends", "begins"].map(|what| {
        format!("call void @llopt_buffer_{what}(ptr addrspace(3) @s, i32 256), !dbg !7")
    });
    let read = "%y = load i32, ptr addrspace(3) %p\nstore i32 %y, ptr addrspace(1) %o";
    let write = "store i32 7, ptr addrspace(3) %p";
    for name in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
        assert_eq!(kinds(&of(name, "", read)), []);
        for last in [read, write] {
            let after = of(name, &ends, last);
            assert_eq!(kinds(&after), [FindingKind::UseAfterDealloc]);
            assert!(after.findings[0].message.contains("at kernel.py:42:7"));
            assert_eq!((after.findings[0].warp, after.findings[0].lane), (0, 0));
        }
        let both = format!("{ends}\n{begins}");
        assert_eq!(
            kinds(&of(name, &both, read)),
            [FindingKind::UninitializedRead]
        );
        assert_eq!(kinds(&of(name, &both, &format!("{write}\n{read}"))), []);
    }
}

#[test]
fn an_index_that_is_out_of_range() {
    let ir = |bound: u32| {
        kernel(
            "cuda:90",
            &format!("call void @llopt_expect_below(i32 %i, i32 {bound})"),
        ) + "declare void @llopt_expect_below(i32, i32)\n"
    };
    let of = |bound| {
        kinds(
            &run(
                "cuda:90",
                &ir(bound),
                32,
                vec![Argument::Buffer(vec![0; 64])],
            )
            .1,
        )
    };
    assert_eq!(of(32), []);
    assert_eq!(of(31), [FindingKind::IndexOutOfRange]);
}
