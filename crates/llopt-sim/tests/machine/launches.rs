//! Launching: arguments, grids, determinism, errors.

use llopt_sim::{
    Argument, Error, FindingKind, Launch, LaunchError, Machine, Options, TensorArgument,
};

use crate::harness::{data_layout, lanewise, machine, numbers, target, words};

#[test]
fn grids_of_three_dimensions() {
    let ir = format!(
        "{}
define ptx_kernel void @k(ptr addrspace(1) %out) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %x = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %nx = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %ny = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %a = mul i32 %z, %ny
  %b = add i32 %a, %y
  %c = mul i32 %b, %nx
  %d = add i32 %c, %x
  %e = shl i32 %d, 5
  %f = add i32 %e, %t
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %f
  store i32 %f, ptr addrspace(1) %p
  ret void
}}",
        data_layout("cuda:90")
    );
    let mut launch = Launch::new(
        [3, 2, 4],
        32,
        vec![Argument::Buffer(vec![0xff; 4 * 32 * 24])],
    );
    let report = machine("cuda:90", &ir)
        .run(&mut launch, &Options::default())
        .unwrap();
    assert_eq!(
        numbers(&launch.arguments[0]),
        (0..24 * 32).collect::<Vec<u32>>()
    );
    assert!(report.findings.is_empty());
}

#[test]
fn sums_over_blocks_repeat_exactly() {
    // Floating-point atomics: the order of blocks shows in the result, so it must be fixed.
    let ir = lanewise(
        "hip:gfx942",
        "%f = bitcast i32 %x to float\n %old = atomicrmw fadd ptr addrspace(1) %out, float %f monotonic\n %y = bitcast float %old to i32\n %g = call i32 @llvm.amdgcn.workgroup.id.x()",
    );
    let input: Vec<u32> = (0..64)
        .map(|i| (1.0f32 / (i as f32 + 0.3)).to_bits())
        .collect();
    let results: Vec<Vec<u32>> = [None, Some(1), Some(4)]
        .into_iter()
        .map(|threads| {
            let arguments = vec![
                Argument::Buffer(words(&input)),
                Argument::Buffer(vec![0; 256]),
            ];
            let mut launch = Launch::new([16, 1, 1], 64, arguments);
            let options = Options {
                threads,
                ..Options::default()
            };
            machine("hip:gfx942", &ir)
                .run(&mut launch, &options)
                .unwrap();
            numbers(&launch.arguments[1])
        })
        .collect();
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_block_may_wait_for_a_later_one() {
    // Block 0 spins until block 1 has raised the flag.
    let ir = format!(
        "{}
define ptx_kernel void @k(ptr addrspace(1) %flag) {{
entry:
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = icmp eq i32 %b, 0
  br i1 %first, label %spin, label %raise
spin:
  %v = atomicrmw or ptr addrspace(1) %flag, i32 0 acquire
  %zero = icmp eq i32 %v, 0
  br i1 %zero, label %spin, label %done
raise:
  %old = atomicrmw xchg ptr addrspace(1) %flag, i32 1 release
  br label %done
done:
  ret void
}}",
        data_layout("cuda:90")
    );
    let mut launch = Launch::new([2, 1, 1], 1, vec![Argument::Buffer(vec![0; 4])]);
    machine("cuda:90", &ir)
        .run(&mut launch, &Options::default())
        .unwrap();
    assert_eq!(numbers(&launch.arguments[0]), [1]);
}

#[test]
fn parallel_blocks_report_the_first_failure_and_all_findings_in_order() {
    let ir = lanewise(
        "cuda:90",
        "%b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %bad = icmp uge i32 %b, 5
  br i1 %bad, label %trap, label %fine
trap:
  call void @llvm.trap()
  unreachable
fine:
  %s = shl i32 %b, 16
  %q = getelementptr i32, ptr addrspace(1) %in, i32 %s
  %l = load i32, ptr addrspace(1) %q
  %y = add i32 %l, 0",
    );
    for threads in [1, 3] {
        let arguments = vec![Argument::Buffer(vec![0; 4]), Argument::Buffer(vec![0; 4])];
        let mut launch = Launch::new([64, 1, 1], 1, arguments);
        let options = Options {
            threads: Some(threads),
            ..Options::default()
        };
        let error = machine("cuda:90", &ir)
            .run(&mut launch, &options)
            .unwrap_err();
        let Error::Stopped { block, report, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(block, [5, 0, 0]);
        assert_eq!(report.findings.len(), 1);
        assert_eq!(report.findings[0].block, [1, 0, 0]);
        assert_eq!(report.findings[0].occurrences, 4);
    }
}

#[test]
fn progress_is_called() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let calls = AtomicU64::new(0);
    let progress = |_done: u64, total: u64| {
        assert_eq!(total, 7);
        calls.fetch_add(1, Ordering::Relaxed);
    };
    let ir = lanewise("cuda:90", "%y = add i32 %x, 1");
    let mut launch = Launch::new(
        [7, 1, 1],
        4,
        vec![Argument::Buffer(vec![0; 16]), Argument::Buffer(vec![0; 16])],
    );
    let options = Options {
        progress: Some(&progress),
        ..Options::default()
    };
    machine("cuda:90", &ir).run(&mut launch, &options).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 7);
}

#[test]
fn a_tensor_is_an_argument_for_its_parts() {
    let ir = format!(
        "{}
define amdgpu_kernel void @k(i32 %first, ptr addrspace(1) %x, i64 %rows, i64 %columns, i64 %pitch, i64 %step, i1 %nan, ptr addrspace(1) %out) {{
  %v = load i64, ptr addrspace(1) %x
  %wide = zext i1 %nan to i64
  %a = mul i64 %rows, 1000
  %b = add i64 %a, %columns
  %c = mul i64 %b, 1000
  %d = add i64 %c, %pitch
  %e = mul i64 %d, 10
  %f = add i64 %e, %step
  %g = mul i64 %f, 10
  %h = add i64 %g, %wide
  store i64 %h, ptr addrspace(1) %out
  store i64 7, ptr addrspace(1) %x
  %p = getelementptr i64, ptr addrspace(1) %out, i64 1
  store i64 %v, ptr addrspace(1) %p
  ret void
}}",
        data_layout("hip:gfx942")
    );
    let tensor = TensorArgument {
        contents: 5u64.to_le_bytes().repeat(12),
        shape: vec![2, 5],
        strides: vec![6, 1],
        element_bytes: 8,
        element_type: 0,
        swizzle_mode: 0,
        box_shape: vec![],
        fill_nan: true,
    };
    let arguments = vec![
        Argument::Int(3),
        Argument::Descriptor(tensor.clone()),
        Argument::Buffer(vec![0; 16]),
    ];
    let machine = machine("hip:gfx942", &ir);
    assert_eq!(machine.filled_by(&arguments), 8);
    let mut launch = Launch::new([1, 1, 1], 1, arguments);
    machine.run(&mut launch, &Options::default()).unwrap();
    let Argument::Buffer(after) = &launch.arguments[1] else {
        panic!("the tensor comes back");
    };
    assert_eq!(after[..16], [7u64, 5].map(u64::to_le_bytes).concat());
    let Argument::Buffer(out) = &launch.arguments[2] else {
        panic!("the buffer comes back");
    };
    let parts = 2_005_006u64 * 100 + 11;
    assert_eq!(out[..], [parts, 5].map(u64::to_le_bytes).concat());

    // A tensor of another rank is for another number of parameters.
    let line = TensorArgument {
        shape: vec![5],
        strides: vec![1],
        ..tensor
    };
    let arguments = vec![
        Argument::Int(3),
        Argument::Descriptor(line),
        Argument::Buffer(vec![0; 16]),
    ];
    let mut launch = Launch::new([1, 1, 1], 1, arguments);
    match machine.run(&mut launch, &Options::default()) {
        Err(Error::Launch(LaunchError::ArgumentCount { expected: 8, .. })) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_launches_are_explained() {
    let machine = machine("cuda:90", &lanewise("cuda:90", "%y = add i32 %x, 1"));
    assert_eq!(machine.kernel(), "k");
    assert_eq!(machine.parameters(), ["a buffer", "a buffer"]);
    let try_launch = |launch: &mut Launch| match machine.run(launch, &Options::default()) {
        Err(Error::Launch(error)) => error,
        other => panic!("{other:?}"),
    };
    let error = try_launch(&mut Launch::new([1, 1, 1], 32, vec![Argument::Null]));
    assert_eq!(
        error,
        LaunchError::ArgumentCount {
            expected: 2,
            given: 1
        }
    );
    let error = try_launch(&mut Launch::new(
        [1, 1, 1],
        32,
        vec![Argument::Null, Argument::Int(5)],
    ));
    assert_eq!(
        error.to_string(),
        "argument 1 is an integer, the kernel expects a buffer"
    );
    let error = try_launch(&mut Launch::new(
        [1, 1, 1],
        2048,
        vec![Argument::Null, Argument::Null],
    ));
    assert!(error.to_string().contains("2048 threads"), "{error}");
    let error = try_launch(&mut Launch::new(
        [0, 1, 1],
        32,
        vec![Argument::Null, Argument::Null],
    ));
    assert!(error.to_string().contains("at least one block"), "{error}");
}

#[test]
fn modules_that_cannot_be_run_are_explained() {
    let error = |ir: &str, kernel| {
        Machine::from_ir(ir.as_bytes(), target("cuda:90"), kernel)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(error("define nonsense", None).starts_with("invalid LLVM IR: "));
    assert!(
        error(&lanewise("cuda:90", "%y = add i32 %x, 1"), Some("other"))
            .contains("no kernel 'other'; the module defines: k")
    );
    let unknown = error(
        lanewise("cuda:90", "%y = call i32 @mystery(i32 %x)")
            .replace("@mystery", "@llvm.nvvm.mystery")
            .as_str(),
        None,
    );
    assert!(unknown.contains("mystery"), "{unknown}");
    let external = error(
        &(lanewise(
            "cuda:90",
            "%f = bitcast i32 %x to float\n %g = call float @__nv_sinf(float %f)\n %y = bitcast float %g to i32",
        ) + "declare float @__nv_sinf(float)"),
        None,
    );
    assert!(
        external.contains("@__nv_sinf") && external.contains("link the library"),
        "{external}"
    );
}

#[test]
fn prints_come_back() {
    let ir = lanewise(
        "cuda:90",
        "%a = alloca { i32, double }
  store i32 %i, ptr %a
  %d = getelementptr { i32, double }, ptr %a, i32 0, i32 1
  store double 2.5, ptr %d
  %n = call i32 @vprintf(ptr addrspacecast (ptr addrspace(4) @format to ptr), ptr %a)
  %y = add i32 %x, 1",
    ) + "declare i32 @vprintf(ptr, ptr)
@format = addrspace(4) constant [12 x i8] c\"i=%d d=%.1f\\00\"";
    let (_, report) = crate::harness::run(
        "cuda:90",
        &ir,
        2,
        vec![Argument::Buffer(vec![0; 8]), Argument::Buffer(vec![0; 8])],
    );
    assert_eq!(report.output, ["i=0 d=2.5", "i=1 d=2.5"]);
}

#[test]
fn a_launch_that_overlaps_waits_for_the_kernel_before() {
    const STORE: &str = "store i32 7, ptr addrspace(1) %out";
    const WAIT: &str = r#"call void asm sideeffect "griddepcontrol.wait;", "~{memory}"()"#;
    for (steps, overlaps, found) in [
        ([WAIT, STORE], true, &[][..]),
        ([STORE, WAIT], true, &[FindingKind::EarlyAccess]),
        ([STORE, WAIT], false, &[]),
    ] {
        let ir = format!(
            "{}
define ptx_kernel void @k(ptr addrspace(1) %out) {{
  {}
  {}
  ret void
}}",
            data_layout("cuda:90"),
            steps[0],
            steps[1]
        );
        let mut launch = Launch::new([1, 1, 1], 32, vec![Argument::Buffer(vec![0; 4])]);
        launch.overlaps = overlaps;
        let report = machine("cuda:90", &ir)
            .run(&mut launch, &Options::default())
            .unwrap();
        let kinds: Vec<FindingKind> = report.findings.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, found, "{:?}", report.findings);
    }
}
