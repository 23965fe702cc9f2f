//! Memory: spaces, sizes, globals, private memory, atomics, AMD's buffers.

use llopt_sim::{Argument, FindingKind};

use crate::harness::{data_layout, lanes, lanewise, noise, numbers, run, words};

#[test]
fn private_memory_and_generic_pointers() {
    let body = "%a = alloca [4 x i32], align 4
  %k = and i32 %i, 3
  %p0 = getelementptr [4 x i32], ptr %a, i32 0, i32 0
  %p1 = getelementptr [4 x i32], ptr %a, i32 0, i32 1
  %p2 = getelementptr [4 x i32], ptr %a, i32 0, i32 2
  %p3 = getelementptr [4 x i32], ptr %a, i32 0, i32 3
  store i32 %x, ptr %p0
  store i32 11, ptr %p1
  store i32 22, ptr %p2
  store i32 %i, ptr %p3
  %pk = getelementptr [4 x i32], ptr %a, i32 0, i32 %k
  %y = load i32, ptr %pk";
    let input = noise(32, 5);
    let output = lanes("cuda:90", body, &input);
    for lane in 0..32 {
        let expected = [input[lane], 11, 22, lane as u32][lane % 4];
        assert_eq!(output[lane], expected);
    }
    // AMD's private memory has its own address space.
    let body = body
        .replace(
            "alloca [4 x i32], align 4",
            "alloca [4 x i32], align 4, addrspace(5)",
        )
        .replace("ptr %", "ptr addrspace(5) %");
    let amd = lanes("hip:gfx942", &body, &input);
    assert_eq!(amd, output);
}

#[test]
fn globals_with_initialisers() {
    let ir = lanewise(
        "cuda:90",
        "%k = and i32 %i, 3
  %p = getelementptr [4 x { i8, i32 }], ptr addrspace(4) @table, i32 0, i32 %k, i32 1
  %t = load i32, ptr addrspace(4) %p
  %q = load ptr addrspace(4), ptr addrspace(1) @pointer
  %f = load i32, ptr addrspace(4) %q
  %y = add i32 %t, %f",
    ) + "
@table = constant [4 x { i8, i32 }] [{ i8, i32 } { i8 1, i32 10 }, { i8, i32 } { i8 2, i32 20 }, { i8, i32 } { i8 3, i32 30 }, { i8, i32 } { i8 4, i32 40 }]
@pointer = addrspace(1) global ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @table, i64 12)
";
    let ir = ir.replace("@table = constant", "@table = addrspace(4) constant");
    let arguments = vec![Argument::Buffer(vec![0; 32]), Argument::Buffer(vec![0; 32])];
    let (arguments, report) = run("cuda:90", &ir, 8, arguments);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(numbers(&arguments[1]), [30, 40, 50, 60, 30, 40, 50, 60]);
}

#[test]
fn shared_memory_static_and_dynamic() {
    let ir = format!(
        "{}
@fixed = internal addrspace(3) global [32 x i32] poison, align 4
@dynamic = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @k(ptr addrspace(1) %out) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %a = getelementptr i32, ptr addrspace(3) @fixed, i32 %i
  store i32 %i, ptr addrspace(3) %a
  %d = getelementptr i32, ptr addrspace(3) @dynamic, i32 %i
  %i10 = mul i32 %i, 10
  store i32 %i10, ptr addrspace(3) %d
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %r = sub i32 31, %i
  %b = getelementptr i32, ptr addrspace(3) @fixed, i32 %r
  %g = addrspacecast ptr addrspace(3) %b to ptr
  %x = load i32, ptr %g
  %e = getelementptr i32, ptr addrspace(3) @dynamic, i32 %r
  %z = load i32, ptr addrspace(3) %e
  %y = add i32 %x, %z
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %y, ptr addrspace(1) %o
  ret void
}}",
        data_layout("cuda:90")
    );
    let (arguments, report) = run("cuda:90", &ir, 32, vec![Argument::Buffer(vec![0; 128])]);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let expected: Vec<u32> = (0..32).map(|i| 11 * (31 - i)).collect();
    assert_eq!(numbers(&arguments[0]), expected);
}

#[test]
fn memory_blocks_are_copied_and_set() {
    let body = "%a = alloca [16 x i8], align 4
  %b = alloca [16 x i8], align 4
  call void @llvm.memset.p0.i64(ptr %a, i8 7, i64 16, i1 false)
  %a4 = getelementptr i8, ptr %a, i32 4
  store i32 %x, ptr %a4
  %n = and i32 %i, 7
  %n1 = add i32 %n, 4
  %n64 = zext i32 %n1 to i64
  call void @llvm.memset.p0.i64(ptr %b, i8 0, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 %n64, i1 false)
  %b4 = getelementptr i8, ptr %b, i32 4
  %y = load i32, ptr %b4";
    let input = noise(16, 6);
    let output = lanes("cuda:80", body, &input);
    for (lane, (&x, y)) in input.iter().zip(output).enumerate() {
        let bytes = lane & 7;
        let mask = if bytes >= 4 {
            u32::MAX
        } else {
            (1u32 << (8 * bytes)) - 1
        };
        assert_eq!(y, x & mask);
    }
}

#[test]
fn atomics_return_old_values() {
    for (name, space) in [
        ("cuda:90", "llvm.nvvm.read.ptx.sreg.tid.x"),
        ("hip:gfx942", "llvm.amdgcn.workitem.id.x"),
    ] {
        let convention = if name.starts_with("cuda") {
            "ptx_kernel"
        } else {
            "amdgpu_kernel"
        };
        let ir = format!(
            "{}
define {convention} void @k(ptr addrspace(1) %counter, ptr addrspace(1) %out) {{
  %i = call i32 @{space}()
  %old = atomicrmw add ptr addrspace(1) %counter, i32 2 syncscope(\"agent\") monotonic
  %m = getelementptr i32, ptr addrspace(1) %counter, i32 1
  %_ = atomicrmw umax ptr addrspace(1) %m, i32 %i monotonic
  %f = getelementptr i32, ptr addrspace(1) %counter, i32 2
  %__ = atomicrmw fadd ptr addrspace(1) %f, float 0.5 monotonic
  %c = getelementptr i32, ptr addrspace(1) %counter, i32 3
  %x = cmpxchg ptr addrspace(1) %c, i32 0, i32 77 acq_rel monotonic
  %won = extractvalue {{ i32, i1 }} %x, 1
  %w = zext i1 %won to i32
  %h = getelementptr i32, ptr addrspace(1) %counter, i32 4
  %___ = atomicrmw fadd ptr addrspace(1) %h, <2 x half> <half 1.0, half 2.0> monotonic
  %y = add i32 %old, %w
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %y, ptr addrspace(1) %o
  ret void
}}",
            data_layout(name)
        );
        let arguments = vec![
            Argument::Buffer(vec![0; 20]),
            Argument::Buffer(vec![0; 128]),
        ];
        let (arguments, report) = run(name, &ir, 32, arguments);
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let state = numbers(&arguments[0]);
        assert_eq!(state, [64, 31, 16f32.to_bits(), 77, 0x5400_5000], "{name}");
        let mut expected: Vec<u32> = (0..32).map(|i| 2 * i).collect();
        expected[0] += 1;
        assert_eq!(numbers(&arguments[1]), expected, "{name}");
    }
}

#[test]
fn buffers_obey_their_bounds() {
    let ir = format!(
        "{}
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 0, i64 40, i32 159744)
  %w = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %out, i16 0, i64 128, i32 159744)
  %b = shl i32 %i, 3
  %v = call <2 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v2i32(ptr addrspace(8) %r, i32 %b, i32 0, i32 0)
  %x = extractelement <2 x i32> %v, i32 1
  %odd = trunc i32 %i to i1
  %o4 = shl i32 %i, 2
  %o = select i1 %odd, i32 -2147483648, i32 %o4
  call void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32 %x, ptr addrspace(8) %w, i32 %o, i32 0, i32 0)
  ret void
}}",
        data_layout("hip:gfx942")
    );
    let input: Vec<u32> = (100..116).collect();
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(words(&[9; 8])),
    ];
    let (arguments, report) = run("hip:gfx942", &ir, 8, arguments);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    // 40 bytes hold the pairs of lanes 0 to 4; odd lanes store nowhere.
    assert_eq!(numbers(&arguments[1]), [101, 9, 105, 9, 109, 9, 0, 9]);
}

#[test]
fn vectors_of_bits_pack_in_memory() {
    let body = "%a = alloca i8
  %t = trunc i32 %x to i8
  %v = bitcast i8 %t to <8 x i1>
  store <8 x i1> %v, ptr %a
  %l = load i8, ptr %a
  %y = zext i8 %l to i32";
    let input = noise(32, 8);
    let output = lanes("cuda:90", body, &input);
    assert!(input.iter().zip(output).all(|(&x, y)| y == x & 255));
}

#[test]
fn packed_vectors_need_not_fill_their_last_byte() {
    let body = "%a = alloca i16
  store i16 -1, ptr %a
  %t = trunc i32 %x to i16
  %v = bitcast i16 %t to <16 x i1>
  %w = shufflevector <16 x i1> %v, <16 x i1> poison, <9 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>
  store <9 x i1> %w, ptr %a
  %l = load <9 x i1>, ptr %a
  %m = shufflevector <9 x i1> %l, <9 x i1> zeroinitializer, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %b = bitcast <16 x i1> %m to i16
  %y = zext i16 %b to i32";
    let input = noise(32, 9);
    let output = lanes("cuda:90", body, &input);
    assert!(input.iter().zip(output).all(|(&x, y)| y == x & 511));
}

#[test]
fn constant_vectors_are_numbers_with_their_first_element_lowest() {
    let body = "%y = add i32 %x, bitcast (<4 x i8> <i8 1, i8 2, i8 3, i8 4> to i32)";
    let input = noise(32, 10);
    let output = lanes("hip:gfx942", body, &input);
    let number = 0x0403_0201;
    assert!(
        input
            .iter()
            .zip(output)
            .all(|(&x, y)| y == x.wrapping_add(number))
    );
}

#[test]
fn constants_are_taken_from_vectors_and_put_into_them() {
    // LLVM folds none of these without a data layout.
    let bytes = "<4 x i8> bitcast (<1 x i32> splat (i32 67305985) to <4 x i8>)";
    let taken = format!("extractelement ({bytes}, i32 2)");
    let put = format!("insertelement ({bytes}, i8 7, i32 1)");
    let turned =
        format!("shufflevector ({bytes}, <4 x i8> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>)");
    let body = format!(
        "%e = xor i8 {taken}, 0
  %w = zext i8 %e to i32
  %p = add i32 %w, bitcast (<4 x i8> {put} to i32)
  %t = add i32 %p, bitcast (<4 x i8> {turned} to i32)
  %y = add i32 %x, %t"
    );
    let input = noise(32, 11);
    let output = lanes("cuda:90", &body, &input);
    let number = 3 + 0x0403_0701 + 0x0102_0304;
    assert!(
        input
            .iter()
            .zip(output)
            .all(|(&x, y)| y == x.wrapping_add(number))
    );
}

#[test]
fn stores_to_constants_are_found() {
    let ir = lanewise(
        "cuda:90",
        "store i32 1, ptr addrspace(4) @c\n %y = load i32, ptr addrspace(4) @c",
    ) + "@c = addrspace(4) constant i32 5";
    let arguments = vec![Argument::Buffer(vec![0; 4]), Argument::Buffer(vec![0; 4])];
    let (arguments, report) = run("cuda:90", &ir, 1, arguments);
    assert_eq!(report.findings[0].kind, FindingKind::ConstantWrite);
    assert_eq!(numbers(&arguments[1]), [5]);
}
