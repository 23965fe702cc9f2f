//! Bulk copies of boxes: places, elements outside, and the sanitizer's findings on a forgotten wait or fence.

use llopt_sim::{Argument, Error, FindingKind, Launch, Machine, Options, Report, TensorArgument};
use llopt_target::Target;

/// A kernel of one warp: it makes a barrier, copies one box of 8 rows of 64 bytes to shared memory, waits, and stores
/// the block in the order of shared memory to the second parameter; or in the other direction.
fn kernel(body: &str) -> String {
    format!(
        r#"
target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [4096 x i8] undef, align 1024
define ptx_kernel void @kernel(ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %d, ptr addrspace(1) %o) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %i, 0
  %bar = getelementptr i8, ptr addrspace(3) @s, i32 2048
  %at = shl i32 %i, 4
  %p = getelementptr i8, ptr addrspace(3) @s, i32 %at
  %q = getelementptr i8, ptr addrspace(1) %o, i32 %at
  {body}
  ret void
}}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.cp.async.bulk.commit.group()
declare void @llvm.nvvm.cp.async.bulk.wait.group.read(i32)
"#
    )
}

const INIT: &str = r#"call void asm sideeffect "@$1 mbarrier.init.shared::cta.b64 [$0], 1;", "r,b"(ptr addrspace(3) %bar, i1 %first)
  call void asm sideeffect "fence.proxy.async.shared::cta;", ""()"#;
const EXPECT: &str = r#"call void asm sideeffect "@$1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 512;", "r,b"(ptr addrspace(3) %bar, i1 %first)"#;
const LOAD: &str = r#"call void asm sideeffect "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$1], [$2, {$4, $5}], [$3];", "b,r,l,r,r,r"(i1 %first, ptr addrspace(3) @s, ptr %d, ptr addrspace(3) %bar, i32 X, i32 Y)"#;
const WAIT: &str = r#"call void asm sideeffect "{ .reg .pred complete; WAIT: mbarrier.try_wait.parity.shared::cta.b64 complete, [$0], $1; @!complete bra.uni WAIT; }", "r,r"(ptr addrspace(3) %bar, i32 0)"#;
const BARRIER: &str = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";
const OUT: &str =
    "%v = load <4 x i32>, ptr addrspace(3) %p\n  store <4 x i32> %v, ptr addrspace(1) %q";
const IN: &str =
    "%v = load <4 x i32>, ptr addrspace(1) %q\n  store <4 x i32> %v, ptr addrspace(3) %p";
const FENCE: &str = r#"call void asm sideeffect "fence.proxy.async.shared::cta;", ""()"#;
const STORE: &str = r#"call void asm sideeffect "@$0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [$2, {$3, $4}], [$1];", "b,r,l,r,r"(i1 %first, ptr addrspace(3) @s, ptr %d, i32 X, i32 Y)"#;
const COMMIT: &str = "call void @llvm.nvvm.cp.async.bulk.commit.group()";
const STORED: &str = "call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)";

/// The warp makes a copy of the object in the block's part of global memory.
const MAKE: &str = r#"%word = shl i32 %i, 2
  %mine = getelementptr i8, ptr %d, i32 %word
  %object = load i32, ptr %mine
  %there = getelementptr i8, ptr addrspace(3) @s, i32 3072
  %here = getelementptr i8, ptr addrspace(3) %there, i32 %word
  store i32 %object, ptr addrspace(3) %here
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  call void asm sideeffect "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;", "l,r"(ptr addrspace(1) %o, ptr addrspace(3) %there)"#;
const ACQUIRE: &str = r#"call void asm sideeffect "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l"(ptr addrspace(1) %o)"#;

/// A tensor of 10 rows of 48 singles in boxes of 8 x 16, its elements numbered.
fn tensor(swizzle_mode: u32) -> TensorArgument {
    TensorArgument {
        contents: (0..480u32).flat_map(|i| (i as f32).to_le_bytes()).collect(),
        shape: vec![10, 48],
        strides: vec![48, 1],
        element_bytes: 4,
        element_type: 7,
        swizzle_mode,
        box_shape: vec![8, 16],
        fill_nan: false,
    }
}

fn run(steps: &[&str], at: (i32, i32), tensor: TensorArgument) -> (Vec<f32>, Vec<f32>, Report) {
    let body = steps
        .join("\n  ")
        .replace("i32 X", &format!("i32 {}", at.0))
        .replace("i32 Y", &format!("i32 {}", at.1));
    let target = Target::parse("cuda:90").unwrap();
    let machine = Machine::from_ir(kernel(&body).as_bytes(), target, None).unwrap();
    let block: Vec<u8> = (0..128u32)
        .flat_map(|i| (-1.0 - i as f32).to_le_bytes())
        .collect();
    let arguments = vec![Argument::Descriptor(tensor), Argument::Buffer(block)];
    let mut launch = Launch::new([1, 1, 1], 32, arguments);
    let report = machine.run(&mut launch, &Options::default()).unwrap();
    let singles = |argument: &Argument| -> Vec<f32> {
        let Argument::Buffer(bytes) = argument else {
            panic!("buffers come back");
        };
        bytes
            .chunks_exact(4)
            .map(|c| f32::from_le_bytes(c.try_into().unwrap()))
            .collect()
    };
    let tensor = singles(&launch.arguments[0]);
    (tensor, singles(&launch.arguments[1]), report)
}

fn kinds(report: &Report) -> Vec<FindingKind> {
    report.findings.iter().map(|f| f.kind).collect()
}

#[test]
fn a_box_arrives_swizzled_with_zeros_outside() {
    for mode in 0..3 {
        let mut map = tensor(mode);
        if mode == 1 {
            map.box_shape = vec![16, 8];
        }
        let [rows, columns] = map.box_shape[..] else {
            unreachable!()
        };
        let steps = [INIT, BARRIER, EXPECT, LOAD, WAIT, OUT];
        let (_, block, report) = run(&steps, (40, -2), map);
        assert_eq!(kinds(&report), [], "{:?}", report.findings);
        for row in 0..rows as i64 {
            for column in 0..i64::from(columns) {
                let (y, x) = (row - 2, column + 40);
                let inside = (0..10).contains(&y) && x < 48;
                let expected = if inside { (y * 48 + x) as f32 } else { 0.0 };
                let bytes = 4 * (row * i64::from(columns) + column) as u64;
                // PTX ISA: groups of 16 bytes are exchanged by the number of the 128 bytes they are in.
                let place = bytes ^ ((bytes / 128 % (1 << mode)) * 16);
                assert_eq!(block[place as usize / 4], expected, "{mode} {row} {column}");
            }
        }
    }
}

#[test]
fn outside_is_nan_if_the_object_says_so() {
    let mut map = tensor(0);
    map.fill_nan = true;
    let steps = [INIT, BARRIER, EXPECT, LOAD, WAIT, OUT];
    let (_, block, _) = run(&steps, (0, 9), map);
    assert_eq!(block[0], 432.0);
    assert!(block[16..].iter().all(|x| x.is_nan()));
}

#[test]
fn a_box_is_stored_where_the_tensor_is() {
    let steps = [IN, FENCE, BARRIER, STORE, COMMIT, STORED];
    let (written, block, report) = run(&steps, (40, 8), tensor(0));
    assert_eq!(kinds(&report), [], "{:?}", report.findings);
    for (i, value) in written.iter().enumerate() {
        let (y, x) = (i / 48, i % 48);
        let expected = if y >= 8 && x >= 40 {
            block[(y - 8) * 16 + x - 40]
        } else {
            i as f32
        };
        assert_eq!(*value, expected, "{y} {x}");
    }
}

#[test]
fn a_reduction_adds_to_what_is_there() {
    let add = STORE
        .replace("cp.async", "cp.reduce.async")
        .replace("shared::cta", "shared::cta.add");
    let steps = [IN, FENCE, BARRIER, &add, COMMIT, STORED];
    let (written, _, report) = run(&steps, (0, 0), tensor(0));
    assert_eq!(kinds(&report), []);
    assert_eq!(written[..3], [-1.0, -1.0, -1.0]);
    assert_eq!(written[16], 16.0);
}

#[test]
fn a_read_before_the_copy_has_arrived() {
    let (_, _, report) = run(&[INIT, BARRIER, EXPECT, LOAD, OUT], (0, 0), tensor(0));
    assert_eq!(kinds(&report), [FindingKind::SharedReadWriteRace]);
    assert!(report.findings[0].message.contains("the copy"));
}

#[test]
fn a_copy_may_overtake_a_read() {
    let other = LOAD.replace("i32 X", "i32 16");
    let again = WAIT.replace("i32 0)", "i32 1)").replace("WAIT", "AGAIN");
    let made = r#"%free = getelementptr i8, ptr addrspace(3) @s, i32 2056
  call void asm sideeffect "@$1 mbarrier.init.shared::cta.b64 [$0], 32;", "r,b"(ptr addrspace(3) %free, i1 %first)"#;
    let arrive = r#"call void asm sideeffect "mbarrier.arrive.shared::cta.b64 _, [$0];", "r"(ptr addrspace(3) %free)"#;
    let all_arrived = WAIT.replace("%bar", "%free").replace("WAIT", "FREE");
    for (between, found) in [
        // A barrier does not wait for the data of the read, nor does an arrival that nobody waits for.
        (&[BARRIER][..], &[FindingKind::MissingProxyFence][..]),
        (&[arrive, BARRIER], &[FindingKind::MissingProxyFence]),
        (&[FENCE, BARRIER], &[]),
        (&[arrive, &all_arrived], &[]),
    ] {
        let before = [made, INIT, BARRIER, EXPECT, LOAD, WAIT, OUT];
        let steps = [&before, between, &[EXPECT, &other, &again]].concat();
        let (_, block, report) = run(&steps, (0, 0), tensor(0));
        assert_eq!(kinds(&report), found, "{between:?}: {:?}", report.findings);
        assert_eq!(block[1], 1.0);
    }
}

#[test]
fn a_descriptor_of_the_kernel_is_acquired_after_it_was_written() {
    let load = LOAD.replace("ptr %d", "ptr addrspace(1) %o");
    for (made, found) in [
        (&[MAKE, ACQUIRE][..], &[][..]),
        (&[MAKE], &[FindingKind::MissingProxyFence]),
        (&[ACQUIRE, MAKE], &[FindingKind::MissingProxyFence]),
    ] {
        let steps = [made, &[INIT, BARRIER, EXPECT, &load, WAIT, OUT]].concat();
        let (_, block, report) = run(&steps, (0, 0), tensor(0));
        assert_eq!(kinds(&report), found, "{made:?}: {:?}", report.findings);
        assert_eq!(block[1], 1.0);
    }
}

#[test]
fn a_store_without_proxy_fence() {
    let steps = [IN, BARRIER, STORE, COMMIT, STORED];
    let (_, _, report) = run(&steps, (0, 0), tensor(0));
    assert_eq!(kinds(&report), [FindingKind::MissingProxyFence]);
}

#[test]
fn a_fence_without_barrier_between_the_writers_and_the_issuer() {
    // The fence does not order the lanes of one warp.
    let steps = [IN, STORE, COMMIT, STORED];
    let (_, _, report) = run(&steps, (0, 0), tensor(0));
    assert!(!report.findings.is_empty());
}

#[test]
fn an_overwrite_of_what_a_copy_still_reads() {
    let again = "store i32 7, ptr addrspace(3) %p";
    for (steps, expected) in [
        (
            &[IN, FENCE, BARRIER, STORE, COMMIT, BARRIER, again, STORED][..],
            &[FindingKind::SharedReadWriteRace][..],
        ),
        (
            &[IN, FENCE, BARRIER, STORE, COMMIT, STORED, BARRIER, again],
            &[],
        ),
        // A wait for a group that was never committed.
        (
            &[IN, FENCE, BARRIER, STORE, STORED, BARRIER, again, COMMIT],
            &[FindingKind::SharedReadWriteRace, FindingKind::UnwaitedCopy],
        ),
    ] {
        let (_, _, report) = run(steps, (0, 0), tensor(0));
        assert_eq!(kinds(&report), expected, "{:?}", report.findings);
    }
}

#[test]
fn a_kernel_that_ends_before_its_copies() {
    let steps = [IN, FENCE, BARRIER, STORE, COMMIT];
    let (_, _, report) = run(&steps, (0, 0), tensor(0));
    assert_eq!(kinds(&report), [FindingKind::UnwaitedCopy]);
}

#[test]
fn memory_that_is_no_descriptor() {
    let target = Target::parse("cuda:90").unwrap();
    let body = [INIT, EXPECT, LOAD]
        .join("\n  ")
        .replace(" X", " 0")
        .replace(" Y", " 0");
    let machine = Machine::from_ir(kernel(&body).as_bytes(), target, None).unwrap();
    let arguments = vec![
        Argument::Bytes(vec![0; 128]),
        Argument::Buffer(vec![0; 512]),
    ];
    let mut launch = Launch::new([1, 1, 1], 32, arguments);
    let error = machine.run(&mut launch, &Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("no descriptor object"),
        "{error}"
    );
}

/// The error of a run that cannot finish, and its findings.
fn stopped(steps: &[&str]) -> (String, Vec<FindingKind>) {
    let body = steps
        .join("\n  ")
        .replace("i32 X", "i32 0")
        .replace("i32 Y", "i32 0");
    let target = Target::parse("cuda:90").unwrap();
    let machine = Machine::from_ir(kernel(&body).as_bytes(), target, None).unwrap();
    let arguments = vec![
        Argument::Descriptor(tensor(0)),
        Argument::Buffer(vec![0; 512]),
    ];
    let mut launch = Launch::new([1, 1, 1], 32, arguments);
    match machine.run(&mut launch, &Options::default()) {
        Err(Error::Stopped {
            message, report, ..
        }) => (message, kinds(&report)),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it ends"),
    }
}

#[test]
fn waits_that_cannot_end_are_named() {
    let missing = |text: &str, steps: &[&str]| {
        let (message, kinds) = stopped(steps);
        assert!(message.contains(text), "{message}");
        assert_eq!(kinds, [FindingKind::EndlessWait]);
    };
    // The bytes are not announced, so the arrival is missing; and they are not copied.
    missing(
        "phase 0, in which 0 of 1 arrivals have come",
        &[INIT, BARRIER, WAIT, OUT],
    );
    missing("512 bytes are missing", &[INIT, BARRIER, EXPECT, WAIT, OUT]);
    // One arrival too many is expected.
    let two = INIT.replace(", 1;", ", 2;");
    missing(
        "1 of 2 arrivals have come",
        &[&two, BARRIER, EXPECT, LOAD, WAIT, OUT],
    );
    // The second phase, which never starts.
    let next = WAIT.replace("i32 0)", "i32 1)").replace("WAIT", "AGAIN");
    missing(
        "phase 1, in which 0 of 1",
        &[INIT, BARRIER, EXPECT, LOAD, WAIT, &next, OUT],
    );
}

#[test]
fn a_wait_for_the_phase_before_is_over_at_once() {
    let early = WAIT.replace("i32 0)", "i32 1)");
    let steps = [INIT, BARRIER, EXPECT, &early, LOAD, OUT];
    let (_, _, report) = run(&steps, (0, 0), tensor(0));
    assert_eq!(kinds(&report), [FindingKind::SharedReadWriteRace]);
}
