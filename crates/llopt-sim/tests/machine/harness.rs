//! Kernels from templates, and running them.

use llopt_sim::{Argument, Error, Launch, Machine, Options, Report};
use llopt_target::Target;

/// The target of a name.
pub fn target(name: &str) -> Target {
    Target::parse(name).unwrap()
}

/// Bytes of 32-bit numbers.
pub fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// 32-bit numbers of a buffer.
pub fn numbers(argument: &Argument) -> Vec<u32> {
    let Argument::Buffer(bytes) = argument else {
        panic!("a buffer is expected, not {argument:?}");
    };
    bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

/// Decodes a module that must be understood.
pub fn machine(name: &str, ir: &str) -> Machine {
    Machine::from_ir(ir.as_bytes(), target(name), None).unwrap_or_else(|e| panic!("{e}\n{ir}"))
}

/// Runs one block of `threads` threads.
pub fn run(
    name: &str,
    ir: &str,
    threads: u32,
    arguments: Vec<Argument>,
) -> (Vec<Argument>, Report) {
    let mut launch = Launch::new([1, 1, 1], threads, arguments);
    launch.dynamic_shared = 4096;
    let report = machine(name, ir)
        .run(&mut launch, &Options::default())
        .unwrap_or_else(|e| panic!("{e}\n{ir}"));
    (launch.arguments, report)
}

/// Runs one block that is expected to be stopped.
pub fn run_to_error(name: &str, ir: &str, threads: u32, arguments: Vec<Argument>) -> Error {
    let mut launch = Launch::new([1, 1, 1], threads, arguments);
    launch.dynamic_shared = 4096;
    let options = Options {
        instruction_limit: 100_000,
        ..Options::default()
    };
    machine(name, ir).run(&mut launch, &options).unwrap_err()
}

/// A kernel `out[i] = y` where the body computes `i32 %y` from `i32 %x = in[i]` and `i32 %i`, the thread's number.
pub fn lanewise(name: &str, body: &str) -> String {
    let (convention, id) = if name.starts_with("cuda") {
        ("ptx_kernel", "llvm.nvvm.read.ptx.sreg.tid.x")
    } else {
        ("amdgpu_kernel", "llvm.amdgcn.workitem.id.x")
    };
    format!(
        "{}
define {convention} void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
entry:
  %i = call i32 @{id}()
  %pi = getelementptr i32, ptr addrspace(1) %in, i32 %i
  %x = load i32, ptr addrspace(1) %pi
  {body}
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %y, ptr addrspace(1) %po
  ret void
}}
",
        data_layout(name)
    )
}

/// The data layout line that makes pointers to shared memory 32 bits wide, as in the compilers' output.
pub fn data_layout(name: &str) -> &'static str {
    if name.starts_with("cuda") {
        "target datalayout = \"e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64\""
    } else {
        "target datalayout = \"e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9\""
    }
}

/// Runs a [`lanewise`] kernel on one warp and returns its output.
pub fn lanes(name: &str, body: &str, input: &[u32]) -> Vec<u32> {
    let arguments = vec![
        Argument::Buffer(words(input)),
        Argument::Buffer(vec![0; 4 * input.len()]),
    ];
    let (arguments, report) = run(name, &lanewise(name, body), input.len() as u32, arguments);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    numbers(&arguments[1])
}

/// Numbers that look random and are the same every time.
pub fn noise(count: usize, seed: u32) -> Vec<u32> {
    let mut state = u64::from(seed) * 2 + 0x9e37_79b9_7f4a_7c15;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as u32
        })
        .collect()
}
