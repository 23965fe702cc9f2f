//! Exact instructions compared with the results of an H200 (`instructions_h200.txt`), NaN's bits included.

use llopt_sim::Argument;

use crate::harness::{data_layout, run};

const MEASURED: &str = include_str!("../instructions_h200.txt");

/// LLVM's type, the register's letter, and the bytes of an operand.
fn operand(ty: &str) -> (&'static str, char, usize) {
    match ty {
        "fp32" => ("float", 'f', 4),
        "fp64" => ("double", 'd', 8),
        "fp16" | "bf16" | "i16" => ("i16", 'h', 2),
        "i32" => ("i32", 'r', 4),
        "i64" => ("i64", 'l', 8),
        _ => panic!("the type '{ty}' in the table"),
    }
}

/// A kernel that applies one instruction to an element of each buffer and stores into the last.
fn kernel(opcode: &str, types: &[&str]) -> String {
    let names: Vec<String> = (0..types.len()).map(|i| format!("%p{i}")).collect();
    let inputs = types.len() - 1;
    let mut body = String::new();
    for (i, ty) in types.iter().enumerate() {
        let llvm = operand(ty).0;
        body += &format!("%q{i} = getelementptr {llvm}, ptr addrspace(1) %p{i}, i32 %i\n");
        if i < inputs {
            body += &format!("%x{i} = load {llvm}, ptr addrspace(1) %q{i}\n");
        }
    }
    let list = |f: &dyn Fn(usize) -> String| (0..inputs).map(f).collect::<Vec<_>>().join(", ");
    let (result, letter, _) = operand(types[inputs]);
    let letters: String = (0..inputs)
        .map(|i| format!(",{}", operand(types[i]).1))
        .collect();
    format!(
        "{}
define ptx_kernel void @k({}) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  {body}
  %r = call {result} asm \"{opcode} $0, {};\", \"={letter}{letters}\"({})
  store {result} %r, ptr addrspace(1) %q{inputs}
  ret void
}}",
        data_layout("cuda:90"),
        names
            .iter()
            .map(|n| format!("ptr addrspace(1) {n}"))
            .collect::<Vec<_>>()
            .join(", "),
        list(&|i| format!("${}", i + 1)),
        list(&|i| format!("{} %x{i}", operand(types[i]).0)),
    )
}

#[test]
fn exact_instructions_give_the_bits_of_an_h200() {
    let lines: Vec<Vec<&str>> = MEASURED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect())
        .collect();
    // A name has a dot, a number has none.
    let mut sections = lines.chunk_by(|_, next| !next[0].contains('.')).peekable();
    assert!(sections.peek().is_some());
    for section in sections {
        let (opcode, types) = (section[0][0], &section[0][1..]);
        let rows: Vec<Vec<u64>> = section[1..]
            .iter()
            .map(|row| {
                let number = |word: &&str| u64::from_str_radix(word, 16).expect("a number");
                row.iter().map(number).collect()
            })
            .collect();
        let column = |i: usize| -> Vec<u8> {
            let bytes = operand(types[i]).2;
            rows.iter()
                .flat_map(|row| row[i].to_le_bytes()[..bytes].to_vec())
                .collect()
        };
        let mut arguments: Vec<Argument> = (0..types.len())
            .map(|i| Argument::Buffer(column(i)))
            .collect();
        let last = arguments.len() - 1;
        let expected = arguments[last].clone();
        arguments[last] = Argument::Buffer(vec![0; column(last).len()]);
        let threads = rows.len() as u32;
        let (found, report) = run("cuda:90", &kernel(opcode, types), threads, arguments);
        assert!(report.findings.is_empty(), "{opcode}");
        let size = operand(types[last]).2;
        let pairs = bytes_of(&found[last])
            .chunks_exact(size)
            .zip(bytes_of(&expected).chunks_exact(size));
        for (row, (found, expected)) in section[1..].iter().zip(pairs) {
            assert_eq!(found, expected, "{opcode} {row:?}, lowest byte first");
        }
    }
}

fn bytes_of(argument: &Argument) -> &[u8] {
    match argument {
        Argument::Buffer(bytes) => bytes,
        _ => &[],
    }
}
