//! Lane instructions per second of one core, on elementwise code: the figure that determines how large a simulated
//! kernel can be.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use llopt_sim::{Argument, Launch, Machine, Options};
use llopt_target::Target;

/// `out[i] = polynomial(in[i])`, four elements per thread, as a compiled elementwise kernel looks.
fn kernel(vendor: &str) -> String {
    let (convention, thread, block) = match vendor {
        "cuda" => (
            "ptx_kernel",
            "llvm.nvvm.read.ptx.sreg.tid.x",
            "llvm.nvvm.read.ptx.sreg.ctaid.x",
        ),
        _ => (
            "amdgpu_kernel",
            "llvm.amdgcn.workitem.id.x",
            "llvm.amdgcn.workgroup.id.x",
        ),
    };
    let mut body = String::new();
    for element in 0..4 {
        body += &format!("%v{element}.0 = extractelement <4 x float> %v, i32 {element}\n");
        for step in 0..8 {
            let next = step + 1;
            body += &format!(
                "%m{element}.{next} = fmul float %v{element}.{step}, 0x3FEF5C2900000000\n"
            );
            body += &format!("%v{element}.{next} = fadd float %m{element}.{next}, {step}.0\n");
        }
    }
    format!(
        "define {convention} void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %t = call i32 @{thread}()
  %b = call i32 @{block}()
  %s = shl i32 %b, 7
  %i = add i32 %s, %t
  %p = getelementptr <4 x float>, ptr addrspace(1) %in, i32 %i
  %v = load <4 x float>, ptr addrspace(1) %p, align 16
  {body}
  %w0 = insertelement <4 x float> poison, float %v0.8, i32 0
  %w1 = insertelement <4 x float> %w0, float %v1.8, i32 1
  %w2 = insertelement <4 x float> %w1, float %v2.8, i32 2
  %w3 = insertelement <4 x float> %w2, float %v3.8, i32 3
  %q = getelementptr <4 x float>, ptr addrspace(1) %out, i32 %i
  store <4 x float> %w3, ptr addrspace(1) %q, align 16
  ret void
}}"
    )
}

fn elementwise(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("elementwise, one core");
    for name in ["cuda:90", "hip:gfx942"] {
        let Ok(target) = Target::parse(name) else {
            continue;
        };
        let vendor = name.split(':').next().unwrap_or_default();
        let machine = match Machine::from_ir(kernel(vendor).as_bytes(), target, None) {
            Ok(machine) => machine,
            Err(error) => panic!("{error}"),
        };
        let blocks = 64;
        let bytes = blocks * 128 * 16;
        let mut launch = Launch::new(
            [blocks as u32, 1, 1],
            128,
            vec![
                Argument::Buffer(vec![1; bytes]),
                Argument::Buffer(vec![0; bytes]),
            ],
        );
        let options = Options {
            threads: Some(1),
            ..Options::default()
        };
        let lanes = machine
            .run(&mut launch, &options)
            .map_or(1, |report| report.lane_instructions);
        group.throughput(Throughput::Elements(lanes));
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(machine.run(&mut launch, &options).is_ok()));
        });
    }
    group.finish();
}

criterion_group!(benches, elementwise);
criterion_main!(benches);
