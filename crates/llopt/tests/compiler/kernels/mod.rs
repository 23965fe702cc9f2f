//! Kernels made with the builder, each with inputs and the expected contents of memory.

use llopt::build::{Argument, Axis, Context, Element, KernelBuilder, RmwOp, blocked};
use llopt::sim::Argument as Passed;
use llopt::{Error, Source, Target};

/// A kernel with one launch of it.
pub struct Case {
    pub name: &'static str,
    pub build: fn(Target) -> Result<Source, Error>,
    pub grid: u32,
    pub arguments: Vec<Passed>,
    /// The expected contents of the first argument, a buffer.
    pub expected: Vec<u8>,
}

pub trait Bytes {
    fn bytes(self) -> Vec<u8>;
}

impl<T: IntoIterator<Item = i32>> Bytes for T {
    fn bytes(self) -> Vec<u8> {
        self.into_iter().flat_map(i32::to_le_bytes).collect()
    }
}

fn float_bytes(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Numbers that repeat, soon enough for collisions.
fn numbers(count: i32) -> Vec<i32> {
    (0..count).map(|i| (i * i * 7 + i * 13) % 101).collect()
}

/// All of them.
pub fn all() -> Vec<Case> {
    let groups = [elements(), combinations(), control_flow()];
    groups.into_iter().flatten().collect()
}

/// Computations on each element, and their stores.
fn elements() -> Vec<Case> {
    vec![
        Case {
            name: "masked_add",
            build: masked_add,
            grid: 3,
            arguments: vec![
                Passed::Buffer(vec![0xee; 4 * 600]),
                Passed::Buffer(numbers(600).bytes()),
                Passed::Int(555),
            ],
            expected: {
                let sums = numbers(600).into_iter().map(|x| x * 2 + 1);
                let mut bytes = sums.take(555).bytes();
                bytes.resize(4 * 600, 0xee);
                bytes
            },
        },
        Case {
            name: "transpose",
            build: transpose,
            grid: 1,
            arguments: vec![
                Passed::Uninitialized(4 * 64 * 32),
                Passed::Buffer((0..64 * 32).bytes()),
            ],
            expected: (0..64 * 32).map(|i| i % 64 * 32 + i / 64).bytes(),
        },
        Case {
            name: "conversions",
            build: conversions,
            grid: 1,
            arguments: vec![
                Passed::Uninitialized(4 * 64),
                Passed::Buffer(float_bytes((0..64).map(|i| i as f32 * 0.75 - 20.0))),
            ],
            expected: (0..64)
                .map(|i| {
                    let x = i as f32 * 0.75 - 20.0;
                    let whole = x as i32;
                    let clipped = (whole as i8).unsigned_abs();
                    i32::from(clipped) + (whole << 1) - i32::from(x >= 0.0)
                })
                .bytes(),
        },
    ]
}

/// Computations on many elements.
fn combinations() -> Vec<Case> {
    vec![
        Case {
            name: "argmax",
            build: argmax,
            grid: 1,
            arguments: vec![
                Passed::Uninitialized(4 * 16),
                Passed::Buffer(float_bytes(numbers(16 * 128).into_iter().map(|x| x as f32))),
            ],
            expected: numbers(16 * 128)
                .chunks(128)
                .map(|row| {
                    let largest = row.iter().max().unwrap();
                    row.iter().position(|x| x == largest).unwrap() as i32
                })
                .bytes(),
        },
        Case {
            name: "histogram",
            build: histogram,
            grid: 4,
            arguments: vec![
                Passed::Buffer(vec![0; 4 * 16]),
                Passed::Buffer(numbers(1000).bytes()),
                Passed::Int(1000),
            ],
            expected: (0..16)
                .map(|bin| numbers(1000).into_iter().filter(|x| x % 16 == bin).count() as i32)
                .bytes(),
        },
        Case {
            name: "row_sums",
            build: row_sums,
            grid: 4,
            arguments: vec![
                Passed::Uninitialized(4 * 4),
                Passed::Buffer(numbers(4 * 300).bytes()),
                Passed::Int(300),
            ],
            expected: numbers(4 * 300)
                .chunks(300)
                .map(|row| row.iter().sum())
                .bytes(),
        },
        Case {
            name: "running_sums",
            build: running_sums,
            grid: 1,
            arguments: vec![
                Passed::Uninitialized(4 * 128),
                Passed::Buffer(numbers(128).bytes()),
            ],
            expected: {
                let mut sums = numbers(128);
                for i in 1..128 {
                    sums[i] += sums[i - 1];
                }
                // Even places first, then the odd ones.
                let (even, odd) = (sums.iter().step_by(2), sums.iter().skip(1).step_by(2));
                even.chain(odd).copied().bytes()
            },
        },
    ]
}

/// Calls and loops.
fn control_flow() -> Vec<Case> {
    vec![
        Case {
            name: "calls",
            build: calls,
            grid: 1,
            arguments: vec![
                Passed::Uninitialized(4 * 256),
                Passed::Buffer(numbers(256).bytes()),
                Passed::Int(40),
            ],
            expected: numbers(256)
                .into_iter()
                .zip(0..)
                .map(|(x, i)| x.clamp(3, 40) + i.clamp(3, 40))
                .bytes(),
        },
        Case {
            name: "collatz",
            build: collatz,
            grid: 30,
            arguments: vec![Passed::Uninitialized(4 * 30)],
            expected: (1..=30)
                .map(|start: i32| {
                    let (mut n, mut steps) = (start, 0);
                    while n != 1 {
                        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
                        steps += 1;
                    }
                    steps
                })
                .bytes(),
        },
    ]
}

/// A buffer of integers.
const INTEGERS: Argument = Argument::pointer(Element::I32).divisible_by(16);

fn masked_add(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "masked_add");
    let output = k.argument("output", INTEGERS);
    let input = k.argument("input", INTEGERS);
    let n = k.argument("n", Argument::scalar(Element::I32));
    let index = k.program_id(Axis::X) * 256 + k.range(0..256);
    let mask = index.lt(n);
    let x = (input + index).load_where(mask, 0);
    (output + index).store_where(x + x + 1, mask);
    k.finish()
}

fn calls(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "calls");
    let out = k.argument("out", Argument::pointer(Element::I32));
    let x = k.argument("x", Argument::pointer(Element::I32));
    let most = k.argument("most", Argument::scalar(Element::I32));
    let index = k.range(0..256);
    // A tensor, and a scalar.
    let clamp = k.function("clamp", [index, most], |[x, most]| {
        [x.minimum(most).maximum(3), most]
    });
    let [place, most] = clamp.call([index, most]);
    let [value, _] = clamp.call([(x + index).load(), most]);
    (out + index).store(value + place);
    k.finish()
}

/// Reads rows and writes columns, each in a suitable layout.
fn transpose(target: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::with_layouts(&context, "transpose", target, 4);
    let output = k.argument("output", INTEGERS);
    let input = k.argument("input", INTEGERS);
    let lanes = target.warp_size();
    let reads = blocked(&[1, 4], &[lanes / 8, 8], &[4, 1], &[1, 0])?;
    let writes = blocked(&[4, 1], &[16, lanes / 16], &[1, 4], &[0, 1])?;

    let [row, column] = k.indices_in([64, 32], &reads);
    let tile = (input + (row * 32 + column)).load();
    let [row, column] = k.indices_in([64, 32], &writes);
    (output + (column * 64 + row)).store(tile.with_layout(&writes));
    k.finish()
}

fn argmax(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "argmax");
    let output = k.argument("output", INTEGERS);
    let input = k.argument("input", Argument::pointer(Element::F32).divisible_by(16));
    let [row, column] = k.indices([16, 128]);
    let x = (input + (row * 128 + column)).load();
    // The first of equal ones.
    let [_, place] = k.reduce([x, column.broadcast(&[16, 128])], 1, |[a, i], [b, j]| {
        let first = a.gt(b) | (a.eq(b) & i.lt(j));
        [a.where_else(first, b), i.where_else(first, j)]
    });
    (output + k.range(0..16)).store(place);
    k.finish()
}

fn histogram(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "histogram");
    let bins = k.argument("bins", INTEGERS);
    let input = k.argument("input", INTEGERS);
    let n = k.argument("n", Argument::scalar(Element::I32));
    let index = k.program_id(Axis::X) * 256 + k.range(0..256);
    let mask = index.lt(n);
    let bin = (input + index).load_where(mask, 0) % 16;
    (bins + bin).atomic_where(RmwOp::Add, 1, mask);
    k.finish()
}

/// A loop over blocks of a row, with a block of sums.
fn row_sums(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "row_sums");
    let output = k.argument("output", INTEGERS);
    let input = k.argument("input", INTEGERS);
    let columns = k.argument("columns", Argument::scalar(Element::I32));
    let row = k.program_id(Axis::X);
    let zero = k.full(&[64], Element::I32, 0);
    let [sums] = k.for_range(0, columns, 64, [zero], |start, [sums]| {
        let column = start + k.range(0..64);
        let place = input + (row * columns + column);
        [sums + place.load_where(column.lt(columns), 0)]
    });
    (output + row).store(sums.sum(0));
    k.finish()
}

fn collatz(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "collatz");
    let output = k.argument("output", INTEGERS);
    let id = k.program_id(Axis::X);
    let zero = k.scalar(Element::I32, 0);
    let [_, steps] = k.while_loop(
        [id + 1, zero],
        |[n, _]| n.ne(1),
        |[n, steps]| {
            let [n] = k.if_else((n % 2).eq(0), || [n / 2], || [3 * n + 1]);
            [n, steps + 1]
        },
    );
    k.when(steps.ge(0), || (output + id).store(steps));
    k.finish()
}

/// Scans, and takes the result apart.
fn running_sums(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "running_sums");
    let output = k.argument("output", INTEGERS);
    let input = k.argument("input", INTEGERS);
    let index = k.range(0..128);
    let sums = (input + index).load().scan(0, false, |a, b| a + b);
    let [even, odd] = sums.reshape(&[64, 2]).split();
    let both = even.join(odd).trans(&[1, 0]).reshape(&[128]);
    (output + index).store(both);
    k.finish()
}

fn conversions(_: Target) -> Result<Source, Error> {
    let context = Context::new()?;
    let k = KernelBuilder::new(&context, "conversions");
    let output = k.argument("output", INTEGERS);
    let input = k.argument("input", Argument::pointer(Element::F32).divisible_by(16));
    let index = k.range(0..64);
    let x = (input + index).load();
    let whole = x.to(Element::I32);
    let clipped = whole.to(Element::I8).abs().to_unsigned(Element::I32);
    let sign = x.ge(0.0).to(Element::I32);
    // A round trip changes nothing.
    let same = x.to(Element::F64).to(Element::F32).bitcast(Element::I32);
    let zero = same ^ x.bitcast(Element::I32);
    (output + index).store(clipped + (whole << 1) - sign + zero);
    k.finish()
}
