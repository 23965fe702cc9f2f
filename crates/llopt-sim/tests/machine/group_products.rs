//! Warp-group products compared with three loops: every type, both orders of memory, every swizzle, A in registers.

use llopt_dialects::layout::encoding::{CgaLayout, Encoding, NvmmaShared};
use llopt_sim::{Argument, FindingKind, Launch, Machine, Options, Report};
use llopt_target::Target;

/// One operand: `outer` rows of A or columns of B, each with `depth` elements, in shared memory.
struct Operand {
    ty: &'static str,
    outer: usize,
    depth: usize,
    /// Bytes of the swizzle.
    swizzle: u32,
    k_contiguous: bool,
}

fn bits(ty: &str) -> usize {
    match ty {
        "f16" | "bf16" => 16,
        "tf32" => 32,
        _ => 8,
    }
}

/// A small whole number in a format.
fn encode(ty: &str, value: i32) -> u64 {
    let magnitude = value.unsigned_abs() as usize;
    let sign = |bit: u32| if value < 0 { 1u64 << bit } else { 0 };
    match ty {
        "f16" => [0, 0x3c00, 0x4000, 0x4200][magnitude] | sign(15),
        "bf16" => u64::from((value as f32).to_bits() >> 16),
        "tf32" => u64::from((value as f32).to_bits()),
        "e4m3" => [0, 0x38, 0x40, 0x44][magnitude] | sign(7),
        "e5m2" => [0, 0x3c, 0x40, 0x42][magnitude] | sign(7),
        "s8" => value as u8 as u64,
        _ => magnitude as u64,
    }
}

/// The number at (x, k), as the format holds it.
fn number(ty: &str, salt: usize, x: usize, k: usize) -> i32 {
    let value = ((x * 31 + k * 17 + salt * 7 + x * k) % 7) as i32 - 3;
    if ty == "u8" { value.abs() } else { value }
}

impl Operand {
    fn bytes(&self) -> usize {
        self.outer * self.depth * bits(self.ty) / 8
    }

    /// The memory, in the layout that the compiler uses for such buffers.
    fn image(&self, salt: usize) -> Vec<u8> {
        let (rows, columns) = if self.k_contiguous {
            (self.outer, self.depth)
        } else {
            (self.depth, self.outer)
        };
        let encoding = Encoding::NvmmaShared(NvmmaShared {
            swizzling_byte_width: self.swizzle,
            transposed: false,
            element_bit_width: bits(self.ty) as u32,
            fp4_padded: false,
            cga_layout: CgaLayout::single(2),
        });
        let layout = encoding
            .linear_layout(&[rows as u64, columns as u64])
            .unwrap();
        let mut image = vec![0; self.bytes()];
        let width = bits(self.ty) / 8;
        for (offset, bytes) in image.chunks_exact_mut(width).enumerate() {
            let place = layout.apply_flat(offset as u32) as usize;
            let (row, column) = (place % rows, place / rows);
            let (x, k) = if self.k_contiguous {
                (row, column)
            } else {
                (column, row)
            };
            let value = encode(self.ty, number(self.ty, salt, x, k));
            bytes.copy_from_slice(&value.to_le_bytes()[..width]);
        }
        image
    }

    /// The descriptor for the step that starts at depth `k`, of a buffer at `base`.
    fn descriptor(&self, base: usize, k: usize) -> u64 {
        let span = self.swizzle as usize;
        let mode = [(0, 0), (128, 1), (64, 2), (32, 3)]
            .iter()
            .find(|(bytes, _)| *bytes == span)
            .unwrap()
            .1;
        let (start, leading, stride) = if self.k_contiguous {
            (base + k * bits(self.ty) / 8, 16, 8 * span)
        } else {
            (base + k * span, self.depth * span, 8 * span)
        };
        let field = |bytes: usize| (bytes as u64 & 0x3_ffff) >> 4;
        field(start) | field(leading) << 16 | field(stride) << 32 | mode << 62
    }
}

struct Product {
    a: Operand,
    b: Operand,
    d: &'static str,
    a_in_registers: bool,
}

impl Product {
    fn new(d: &'static str, a: &'static str, b: &'static str, n: usize, swizzle: u32) -> Self {
        let depth = swizzle as usize * 8 / bits(a);
        let operand = |ty, outer| Operand {
            ty,
            outer,
            depth,
            swizzle,
            k_contiguous: true,
        };
        Self {
            a: operand(a, 64),
            b: operand(b, n),
            d,
            a_in_registers: false,
        }
    }

    fn registers(&self) -> usize {
        match self.d {
            "f16" => self.b.outer / 4,
            _ => self.b.outer / 2,
        }
    }

    /// One instruction, for the columns from `k` on, with the registers of its result before and after it.
    fn product(&self, number: usize, k: usize, old: &mut [String], body: &mut String) {
        let (n, step) = (self.b.outer, 256 / bits(self.a.ty));
        let (count, b_base) = (self.registers(), self.a.bytes().next_multiple_of(1024));
        let results = vec!["i32"; count].join(", ");
        let list = |from: usize, count: usize| {
            let names: Vec<String> = (from..from + count).map(|i| format!("$${i}")).collect();
            names.join(", ").replace("$$", "$")
        };
        let halves = bits(self.a.ty) == 16;
        let b_order = u8::from(!self.b.k_contiguous);
        let a_order = u8::from(!self.a.k_contiguous);
        let immediates = match (self.d, halves, self.a_in_registers) {
            ("s32", ..) => String::new(),
            (_, false, _) => ", 1, 1".to_owned(),
            (_, true, true) => format!(", 1, 1, {b_order}"),
            (_, true, false) => format!(", 1, 1, {a_order}, {b_order}"),
        };
        let inputs = 2 * count;
        let a = if self.a_in_registers {
            format!("{{{}}}", list(inputs + 2, 4))
        } else {
            format!("${}", inputs + 2)
        };
        let text = format!(
            "{{ .reg .pred p; setp.ne.b32 p, ${}, 0; wgmma.mma_async.sync.aligned.\
             m64n{n}k{step}.{}.{}.{} {{{}}}, {a}, ${}, p{immediates}; }}",
            inputs,
            self.d,
            self.a.ty,
            self.b.ty,
            list(0, count),
            inputs + 1,
        );
        let tied: Vec<String> = (0..count).map(|i| i.to_string()).collect();
        let mut constraints = vec!["=r"; count].join(",");
        constraints.push_str(&format!(",{},r,l", tied.join(",")));
        let mut arguments: Vec<String> = old.iter().map(|o| format!("i32 {o}")).collect();
        arguments.push(format!("i32 {}", u8::from(number > 0)));
        arguments.push(format!("i64 {}", self.b.descriptor(b_base, k) as i64));
        if self.a_in_registers {
            constraints.push_str(",r,r,r,r");
            for register in 0..4 {
                let name = format!("%a{number}_{register}");
                body.push_str(&format!(
                    "  %p{number}_{register} = getelementptr i32, ptr addrspace(1) %r, i32 {}\n  \
                     {name} = load i32, ptr addrspace(1) %p{number}_{register}\n",
                    number * 4 + register,
                ));
                arguments.push(format!("i32 {name}"));
            }
            // The product reads registers that were written since the last fence.
            body.push_str("  call void asm sideeffect \"wgmma.fence.sync.aligned;\", \"\"()\n");
        } else {
            constraints.push_str(",l");
            arguments.push(format!("i64 {}", self.a.descriptor(0, k) as i64));
        }
        let all = if count == 1 {
            "i32".to_owned()
        } else {
            format!("{{ {results} }}")
        };
        body.push_str(&format!(
            "  %d{number} = call {all} asm sideeffect \"{text}\", \"{constraints}\"({})\n",
            arguments.join(", ")
        ));
        for (i, old) in old.iter_mut().enumerate() {
            *old = format!("%d{number}_{i}");
            body.push_str(&format!("  {old} = extractvalue {all} %d{number}, {i}\n"));
        }
    }

    fn kernel(&self, prologue: &str, epilogue: &str) -> String {
        let step = 256 / bits(self.a.ty);
        let (count, b_base) = (self.registers(), self.a.bytes().next_multiple_of(1024));
        let mut body = String::new();
        let mut old: Vec<String> = vec!["0".to_owned(); count];
        for (number, k) in (0..self.a.depth).step_by(step).enumerate() {
            self.product(number, k, &mut old, &mut body);
        }
        let mut stores = String::new();
        for (i, value) in old.iter().enumerate() {
            stores.push_str(&format!(
                "  %q{i} = getelementptr i32, ptr addrspace(1) %o, i32 {i}\n  \
                 store i32 {value}, ptr addrspace(1) %q{i}\n"
            ));
        }
        let bytes = b_base + self.b.bytes();
        format!(
            r#"
target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [{bytes} x i8] undef, align 1024
define ptx_kernel void @kernel(ptr addrspace(1) %x, ptr addrspace(1) %fragments, ptr addrspace(1) %out) {{
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %begin = shl i32 %i, 4
  %row = mul i32 %i, {count}
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %row
  %fragment = mul i32 %i, {fragment}
  %r = getelementptr i32, ptr addrspace(1) %fragments, i32 %fragment
  br label %loop
loop:
  %at = phi i32 [ %begin, %entry ], [ %next, %copy ]
  %more = icmp ult i32 %at, {bytes}
  br i1 %more, label %copy, label %done
copy:
  %from = getelementptr i8, ptr addrspace(1) %x, i32 %at
  %to = getelementptr i8, ptr addrspace(3) @s, i32 %at
  %v = load <4 x i32>, ptr addrspace(1) %from
  store <4 x i32> %v, ptr addrspace(3) %to
  %next = add i32 %at, 2048
  br label %loop
done:
{prologue}
{body}
{epilogue}
{stores}
  ret void
}}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
"#,
            fragment = 4 * self.a.depth / step,
        )
    }

    fn run(&self, prologue: &str, epilogue: &str) -> (Vec<u32>, Report) {
        let target = Target::parse("cuda:90").unwrap();
        let text = self.kernel(prologue, epilogue);
        let machine = Machine::from_ir(text.as_bytes(), target, None)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut image = self.a.image(0);
        image.resize(self.a.bytes().next_multiple_of(1024), 0);
        image.extend(self.b.image(1));
        let count = 4 * 128 * self.registers();
        let arguments = vec![
            Argument::Buffer(image),
            Argument::Buffer(self.fragments()),
            Argument::Buffer(vec![0; count]),
        ];
        let mut launch = Launch::new([1, 1, 1], 128, arguments);
        let report = machine.run(&mut launch, &Options::default()).unwrap();
        let Argument::Buffer(bytes) = &launch.arguments[2] else {
            unreachable!()
        };
        let words = bytes
            .chunks_exact(4)
            .map(|c| u32::from_le_bytes(c.try_into().unwrap()));
        (words.collect(), report)
    }

    /// A in the registers of all threads, step by step (PTX ISA, "Register Fragments for wgmma").
    fn fragments(&self) -> Vec<u8> {
        let step = 256 / bits(self.a.ty);
        let per = 32 / bits(self.a.ty);
        let mut bytes = Vec::new();
        for thread in 0..128 {
            let (warp, lane) = (thread / 32, thread % 32);
            for begin in (0..self.a.depth).step_by(step) {
                for register in 0..4 {
                    let row = 16 * warp + lane / 4 + 8 * (register % 2);
                    let k = begin + lane % 4 * per + 4 * per * (register / 2);
                    let word = (0..per).fold(0u64, |word, i| {
                        let value = encode(self.a.ty, number(self.a.ty, 0, row, k + i));
                        word | value << (i * bits(self.a.ty))
                    });
                    bytes.extend((word as u32).to_le_bytes());
                }
            }
        }
        bytes
    }

    fn check(&self) {
        let (words, report) = self.run(PROLOGUE, EPILOGUE);
        assert_eq!(report.findings, []);
        for thread in 0..128 {
            let (warp, lane) = (thread / 32, thread % 32);
            for element in 0..self.b.outer / 2 {
                let row = 16 * warp + lane / 4 + 8 * (element / 2 % 2);
                let column = 8 * (element / 4) + 2 * (lane % 4) + element % 2;
                let expected: i32 = (0..self.a.depth)
                    .map(|k| number(self.a.ty, 0, row, k) * number(self.b.ty, 1, column, k))
                    .sum();
                let first = thread * self.registers();
                let got = match self.d {
                    "f32" => f32::from_bits(words[first + element]) as i32,
                    "s32" => words[first + element] as i32,
                    _ => {
                        let word = words[first + element / 2] >> (16 * (element % 2)) & 0xffff;
                        half(word as u16)
                    }
                };
                assert_eq!(
                    got, expected,
                    "{} {} {} n{} swizzle {} row {row} column {column}",
                    self.d, self.a.ty, self.b.ty, self.b.outer, self.b.swizzle
                );
            }
        }
    }
}

/// A whole number in half precision.
fn half(bits: u16) -> i32 {
    let (exponent, mantissa) = (bits >> 10 & 31, i64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => 0,
        exponent => ((1024 + mantissa) << exponent >> 25) as i32,
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

const PROLOGUE: &str = r#"  call void asm sideeffect "fence.proxy.async.shared::cta;", ""()
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  call void asm sideeffect "wgmma.fence.sync.aligned;", ""()"#;
const EPILOGUE: &str = r#"  call void asm sideeffect "wgmma.commit_group.sync.aligned;", ""()
  call void asm sideeffect "wgmma.wait_group.sync.aligned 0;", ""()"#;

#[test]
fn every_type_with_k_contiguous() {
    for (d, a, b) in [
        ("f32", "f16", "f16"),
        ("f16", "f16", "f16"),
        ("f32", "bf16", "bf16"),
        ("f32", "tf32", "tf32"),
        ("f32", "e4m3", "e5m2"),
        ("f16", "e5m2", "e4m3"),
        ("s32", "s8", "u8"),
        ("s32", "u8", "s8"),
    ] {
        for (n, swizzle) in [(8, 128), (64, 32), (16, 64)] {
            Product::new(d, a, b, n, swizzle).check();
        }
    }
}

#[test]
fn results_of_every_width_agree() {
    for n in [8, 32, 128, 256] {
        Product::new("f32", "f16", "f16", n, 32).check();
    }
}

#[test]
fn rows_and_columns_contiguous() {
    for swizzle in [32, 64, 128] {
        for (a, b) in [(false, true), (true, false), (false, false)] {
            let mut product = Product::new("f32", "bf16", "bf16", 128, 128);
            product.a.k_contiguous = a;
            product.b.k_contiguous = b;
            if !a {
                product.a.swizzle = swizzle;
            }
            if !b {
                product.b.swizzle = swizzle;
            }
            product.check();
        }
    }
}

#[test]
fn the_first_operand_may_be_in_registers() {
    for (d, a, b) in [
        ("f32", "f16", "f16"),
        ("f32", "tf32", "tf32"),
        ("f32", "e4m3", "e4m3"),
        ("s32", "s8", "s8"),
    ] {
        let mut product = Product::new(d, a, b, 24, 64);
        product.b.outer = 32;
        product.a_in_registers = true;
        product.check();
    }
}

#[test]
fn what_is_forgotten_is_found() {
    let product = Product::new("f32", "f16", "f16", 16, 32);
    let kinds = |prologue: &str, epilogue: &str| -> Vec<FindingKind> {
        let (_, report) = product.run(prologue, epilogue);
        report.findings.iter().map(|f| f.kind).collect()
    };
    let without = |text: &str, part: &str| -> String {
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains(part)).collect();
        lines.join("\n")
    };
    assert_eq!(kinds(PROLOGUE, EPILOGUE), []);
    assert_eq!(
        kinds(&without(PROLOGUE, "proxy"), EPILOGUE),
        [FindingKind::MissingProxyFence]
    );
    assert_eq!(
        kinds(&without(PROLOGUE, "wgmma"), EPILOGUE),
        [FindingKind::MissingProductFence]
    );
    assert_eq!(
        kinds(PROLOGUE, &without(EPILOGUE, "wait_group")),
        [FindingKind::UnwaitedProduct, FindingKind::UnwaitedCopy]
    );
}
