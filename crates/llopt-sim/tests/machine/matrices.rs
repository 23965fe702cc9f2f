//! Matrix units compared with a plain product.

use llopt_sim::Argument;

use crate::harness::{data_layout, numbers, run, words};

/// A product of small integers that the units' formats represent exactly.
fn product(m: usize, n: usize, k: usize, a: &[i32], b: &[i32]) -> Vec<i32> {
    let mut c = vec![0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] =
                (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum::<i32>() + (i * n + j) as i32;
        }
    }
    c
}

fn small(count: usize, seed: i32) -> Vec<i32> {
    (0..count as i32)
        .map(|i| (i * 37 + seed * 11) % 7 - 3)
        .collect()
}

/// The half of a small integer.
fn half(value: i32) -> u16 {
    let sign = if value < 0 { 0x8000 } else { 0 };
    sign | match value.abs() {
        0 => 0,
        v => {
            let e = v.ilog2();
            ((e + 15) << 10 | ((v as u32) << (10 - e) & 0x3ff)) as u16
        }
    }
}

/// `mma.m16n8k16` on halves: the host writes fragments as the PTX ISA defines them.
#[test]
fn mma_multiplies_fragments_of_halves() {
    let (a, b) = (small(16 * 16, 1), small(8 * 16, 2));
    let c = product(16, 8, 16, &a, &b);
    let ir = format!(
        "{}
define ptx_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr [10 x i32], ptr addrspace(1) %in, i32 %i
  %v = load [10 x i32], ptr addrspace(1) %p
  %a0 = extractvalue [10 x i32] %v, 0
  %a1 = extractvalue [10 x i32] %v, 1
  %a2 = extractvalue [10 x i32] %v, 2
  %a3 = extractvalue [10 x i32] %v, 3
  %b0 = extractvalue [10 x i32] %v, 4
  %b1 = extractvalue [10 x i32] %v, 5
  %c0 = extractvalue [10 x i32] %v, 6
  %c1 = extractvalue [10 x i32] %v, 7
  %c2 = extractvalue [10 x i32] %v, 8
  %c3 = extractvalue [10 x i32] %v, 9
  %d = call {{ i32, i32, i32, i32 }} asm sideeffect \"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{ $0, $1, $2, $3 }}, {{ $4, $5, $6, $7 }}, {{ $8, $9 }}, {{ $10, $11, $12, $13 }};\", \"=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r\"(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, i32 %c0, i32 %c1, i32 %c2, i32 %c3)
  %o = getelementptr {{ i32, i32, i32, i32 }}, ptr addrspace(1) %out, i32 %i
  store {{ i32, i32, i32, i32 }} %d, ptr addrspace(1) %o
  ret void
}}",
        data_layout("cuda:90")
    );
    let mut input = Vec::new();
    for lane in 0..32usize {
        let (g, t) = (lane / 4, lane % 4);
        let pair = |m: &[i32], row: usize, col: usize| {
            u32::from(half(m[row * 16 + col])) | u32::from(half(m[row * 16 + col + 1])) << 16
        };
        for (row, col) in [
            (g, 2 * t),
            (g + 8, 2 * t),
            (g, 2 * t + 8),
            (g + 8, 2 * t + 8),
        ] {
            input.push(pair(&a, row, col));
        }
        input.extend([pair(&b, g, 2 * t), pair(&b, g, 2 * t + 8)]);
        for (row, col) in [
            (g, 2 * t),
            (g, 2 * t + 1),
            (g + 8, 2 * t),
            (g + 8, 2 * t + 1),
        ] {
            input.push(((row * 8 + col) as f32).to_bits());
        }
    }
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 512]),
    ];
    let (arguments, report) = run("cuda:90", &ir, 32, arguments);
    assert!(report.findings.is_empty());
    for (index, value) in numbers(&arguments[1]).into_iter().enumerate() {
        let (lane, r) = (index / 4, index % 4);
        let (row, col) = (lane / 4 + 8 * (r / 2), 2 * (lane % 4) + r % 2);
        assert_eq!(
            f32::from_bits(value),
            c[row * 8 + col] as f32,
            "({row}, {col})"
        );
    }
}

/// `mfma.i32.32x32x16.i8` and `mfma.f32.16x16x16f16`.
#[test]
fn mfma_of_bytes_and_halves() {
    let (a, b) = (small(32 * 16, 3), small(32 * 16, 4));
    let c = product(32, 32, 16, &a, &b);
    let ir = format!(
        "{}
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr i64, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr i64, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr <16 x i32>, ptr addrspace(1) %c, i32 %i
  %va = load i64, ptr addrspace(1) %pa
  %vb = load i64, ptr addrspace(1) %pb
  %vc = load <16 x i32>, ptr addrspace(1) %pc
  %d = call <16 x i32> @llvm.amdgcn.mfma.i32.32x32x16.i8(i64 %va, i64 %vb, <16 x i32> %vc, i32 0, i32 0, i32 0)
  %o = getelementptr <16 x i32>, ptr addrspace(1) %out, i32 %i
  store <16 x i32> %d, ptr addrspace(1) %o
  ret void
}}",
        data_layout("hip:gfx942")
    );
    let bytes = |m: &[i32]| -> Vec<u8> {
        (0..64)
            .flat_map(|lane| (0..8).map(move |e| (lane, e)))
            .map(|(lane, e)| m[lane % 32 * 16 + lane / 32 * 8 + e] as u8)
            .collect()
    };
    let place = |lane: usize, r: usize| (8 * (r / 4) + 4 * (lane / 32) + r % 4, lane % 32);
    let start: Vec<u32> = (0..64 * 16)
        .map(|index| {
            let (row, col) = place(index / 16, index % 16);
            (row * 32 + col) as u32
        })
        .collect();
    let arguments = vec![
        Argument::Buffer(bytes(&a)),
        Argument::Buffer(bytes(&b)),
        Argument::Buffer(words(&start)),
        Argument::Buffer(vec![0; 4096]),
    ];
    let (arguments, _) = run("hip:gfx942", &ir, 64, arguments);
    for (index, value) in numbers(&arguments[3]).into_iter().enumerate() {
        let (row, col) = place(index / 16, index % 16);
        assert_eq!(value as i32, c[row * 32 + col], "({row}, {col})");
    }
}

/// `wmma` on both RDNA generations, whose operands are distributed differently.
#[test]
fn wmma_multiplies_fragments_of_both_generations() {
    let (a, b) = (small(256, 5), small(256, 6));
    let c = product(16, 16, 16, &a, &b);
    for (name, width) in [("hip:gfx1100", 16), ("hip:gfx1200", 8)] {
        let ir = format!(
            "{}
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <{width} x half>, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr <{width} x half>, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr <8 x float>, ptr addrspace(1) %c, i32 %i
  %va = load <{width} x half>, ptr addrspace(1) %pa
  %vb = load <{width} x half>, ptr addrspace(1) %pb
  %vc = load <8 x float>, ptr addrspace(1) %pc
  %d = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v{width}f16(<{width} x half> %va, <{width} x half> %vb, <8 x float> %vc)
  %o = getelementptr <8 x float>, ptr addrspace(1) %out, i32 %i
  store <8 x float> %d, ptr addrspace(1) %o
  ret void
}}",
            data_layout(name)
        );
        let halves = |m: &[i32]| -> Vec<u8> {
            (0..32)
                .flat_map(|lane| (0..width).map(move |e| (lane, e)))
                .map(|(lane, e)| {
                    let k = if width == 16 { e } else { lane / 16 * 8 + e };
                    m[lane % 16 * 16 + k]
                })
                .flat_map(|v| half(v).to_le_bytes())
                .collect()
        };
        let place = |lane: usize, r: usize| {
            let row = if width == 16 {
                2 * r + lane / 16
            } else {
                8 * (lane / 16) + r
            };
            (row, lane % 16)
        };
        let start: Vec<u32> = (0..256)
            .map(|index| {
                let (row, col) = place(index / 8, index % 8);
                ((row * 16 + col) as f32).to_bits()
            })
            .collect();
        let arguments = vec![
            Argument::Buffer(halves(&a)),
            Argument::Buffer(halves(&b)),
            Argument::Buffer(words(&start)),
            Argument::Buffer(vec![0; 1024]),
        ];
        let (arguments, _) = run(name, &ir, 32, arguments);
        for (index, value) in numbers(&arguments[3]).into_iter().enumerate() {
            let (row, col) = place(index / 8, index % 8);
            assert_eq!(
                f32::from_bits(value),
                c[row * 16 + col] as f32,
                "{name} ({row}, {col})"
            );
        }
    }
}

/// `ldmatrix`, plain and transposed, and `stmatrix` back.
#[test]
fn tiles_of_shared_memory() {
    for transposed in [false, true] {
        let trans = if transposed { ".trans" } else { "" };
        let ir = format!(
            "{}
@s = internal addrspace(3) global [256 x i16] poison, align 16
define ptx_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %g = getelementptr <4 x i32>, ptr addrspace(1) %in, i32 %i
  %v = load <4 x i32>, ptr addrspace(1) %g
  %row = getelementptr <4 x i32>, ptr addrspace(3) @s, i32 %i
  store <4 x i32> %v, ptr addrspace(3) %row
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %d = call {{ i32, i32, i32, i32 }} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{trans}.b16.p3(ptr addrspace(3) %row)
  %o = getelementptr {{ i32, i32, i32, i32 }}, ptr addrspace(1) %out, i32 %i
  store {{ i32, i32, i32, i32 }} %d, ptr addrspace(1) %o
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %d0 = extractvalue {{ i32, i32, i32, i32 }} %d, 0
  %d1 = extractvalue {{ i32, i32, i32, i32 }} %d, 1
  %d2 = extractvalue {{ i32, i32, i32, i32 }} %d, 2
  %d3 = extractvalue {{ i32, i32, i32, i32 }} %d, 3
  call void asm sideeffect \"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [ $0 ], {{ $1, $2, $3, $4 }};\", \"r,r,r,r,r\"(ptr addrspace(3) %row, i32 %d0, i32 %d1, i32 %d2, i32 %d3)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %b = load <4 x i32>, ptr addrspace(3) %row
  store <4 x i32> %b, ptr addrspace(1) %g
  ret void
}}",
            data_layout("cuda:90")
        );
        // Element (tile, row, column) holds its own place.
        let input: Vec<u8> = (0..256u16).flat_map(u16::to_le_bytes).collect();
        let arguments = vec![
            Argument::Buffer(input.clone()),
            Argument::Buffer(vec![0; 512]),
        ];
        let (arguments, report) = run("cuda:90", &ir, 32, arguments);
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        for (index, value) in numbers(&arguments[1]).into_iter().enumerate() {
            let (lane, tile) = (index as u32 / 4, index as u32 % 4);
            let element = |half: u32| {
                let (row, column) = (lane / 4, 2 * (lane % 4) + half);
                let (row, column) = if transposed {
                    (column, row)
                } else {
                    (row, column)
                };
                tile * 64 + row * 8 + column
            };
            assert_eq!(value, element(0) | element(1) << 16);
        }
        assert_eq!(
            arguments[0],
            Argument::Buffer(input),
            "what was loaded is stored back"
        );
        let shared = report.shared;
        // One ldmatrix and the last load; the first store and one stmatrix; all without conflicts.
        assert_eq!(
            (
                shared.load_instructions,
                shared.load_wavefronts,
                shared.load_bound
            ),
            (2, 8, 8)
        );
        assert_eq!(
            (
                shared.store_instructions,
                shared.store_wavefronts,
                shared.store_bound
            ),
            (2, 8, 8)
        );
    }
}

/// AMD's transposing load: 16 lanes read four rows of sixteen halves, each lane gets a column.
#[test]
fn a_transposing_load_gives_each_lane_a_column() {
    let ir = format!(
        "{}
@s = internal addrspace(3) global [256 x i16] poison, align 16
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr i64, ptr addrspace(1) %in, i32 %i
  %v = load i64, ptr addrspace(1) %g
  %p = getelementptr i64, ptr addrspace(3) @s, i32 %i
  store i64 %v, ptr addrspace(3) %p
  call void @llvm.amdgcn.s.barrier()
  %d = call <4 x i16> @llvm.amdgcn.ds.read.tr16.b64.v4i16(ptr addrspace(3) %p)
  %o = getelementptr <4 x i16>, ptr addrspace(1) %out, i32 %i
  store <4 x i16> %d, ptr addrspace(1) %o
  ret void
}}",
        data_layout("hip:gfx950")
    );
    let input: Vec<u8> = (0..256u16).flat_map(u16::to_le_bytes).collect();
    let arguments = vec![Argument::Buffer(input), Argument::Buffer(vec![0; 512])];
    let (arguments, report) = run("hip:gfx950", &ir, 64, arguments);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let Argument::Buffer(bytes) = &arguments[1] else {
        panic!("a buffer comes back");
    };
    for (index, pair) in bytes.chunks(2).enumerate() {
        let (lane, element) = (index / 4, index % 4);
        let expected = lane / 16 * 64 + element * 16 + lane % 16;
        assert_eq!(u16::from_le_bytes([pair[0], pair[1]]), expected as u16);
    }
}
