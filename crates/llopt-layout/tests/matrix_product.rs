//! Products divided into instructions, executed lane by lane with whole numbers.

use std::collections::HashMap;

use llopt_layout::matrix_product::{
    Division, Matrices, NotDivisible, divide, divide_among_threads,
};
use llopt_layout::{Dim, LinearLayout};

/// A generator of numbers that are random enough and the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % u64::from(n.max(1))) as u32
    }
}

type Bases = Vec<(Dim, Vec<Vec<u32>>)>;

fn layout(bases: &Bases, shape: &[u32]) -> LinearLayout {
    let outs: Vec<_> = shape
        .iter()
        .enumerate()
        .map(|(i, size)| (Dim::tensor(i), *size))
        .collect();
    let named: Vec<_> = bases
        .iter()
        .map(|(dim, vectors)| (*dim, &vectors[..]))
        .collect();
    LinearLayout::from_bases(&named, &outs).unwrap()
}

/// A fragment: the dimension and the bit that each register and lane bit stands for.
fn fragment(shape: [u32; 2], registers: &[[u32; 2]], lanes: &[[u32; 2]]) -> LinearLayout {
    let vectors = |of: &[[u32; 2]]| of.iter().map(|v| v.to_vec()).collect();
    layout(
        &vec![
            (Dim::REGISTER, vectors(registers)),
            (Dim::LANE, vectors(lanes)),
        ],
        &shape,
    )
}

/// An instruction's fragments.
struct Instruction {
    a: LinearLayout,
    b: LinearLayout,
    c: LinearLayout,
}

impl Instruction {
    fn matrices(&self) -> Matrices<'_> {
        Matrices {
            a: &self.a,
            b: &self.b,
            c: &self.c,
        }
    }
}

/// 16x8xk with two elements of k in a register: quads of lanes along the contiguous index.
fn quads(depth: u32) -> Instruction {
    let mut a = vec![[0, 1], [8, 0]];
    let mut b = vec![[1, 0]];
    if depth == 16 {
        a.push([0, 8]);
        b.push([8, 0]);
    }
    let rows = [[1, 0], [2, 0], [4, 0]];
    Instruction {
        a: fragment([16, depth], &a, &[&[[0, 2], [0, 4]][..], &rows].concat()),
        b: fragment([depth, 8], &b, &[[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]),
        c: fragment(
            [16, 8],
            &[[0, 1], [8, 0]],
            &[&[[0, 2], [0, 4]][..], &rows].concat(),
        ),
    }
}

/// A multiply-add of each thread.
fn thread() -> Instruction {
    let one = || fragment([1, 1], &[], &[]);
    Instruction {
        a: one(),
        b: one(),
        c: one(),
    }
}

/// A random product that an instruction of 16x8 can make: shapes, and layouts of a, b and c.
struct Case {
    shapes: [Vec<u32>; 3],
    bases: [Bases; 3],
}

/// A permutation of an index that is linear: units, mixed.
fn mixed(random: &mut Random, bits: u32) -> Vec<u32> {
    let mut vectors: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
    for _ in 0..2 * bits {
        let (i, j) = (random.below(bits) as usize, random.below(bits) as usize);
        if i != j {
            vectors[i] ^= vectors[j];
        }
    }
    vectors
}

/// Bases of registers, which have everything, whatever lanes and warps hold too, in any order and mixed.
fn registers(random: &mut Random, shape: &[u32], held: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut registers: Vec<Vec<u32>> = Vec::new();
    for (dim, extent) in shape.iter().enumerate() {
        for bit in 0..extent.trailing_zeros() {
            let mut vector = vec![0; 3];
            vector[dim] = 1 << bit;
            registers.push(vector);
        }
    }
    registers.retain(|vector| !held.contains(vector) || random.below(4) == 0);
    for i in (1..registers.len()).rev() {
        registers.swap(i, random.below(i as u32 + 1) as usize);
    }
    for _ in 0..random.below(4) {
        let (i, j) = (
            random.below(registers.len() as u32) as usize,
            random.below(registers.len() as u32) as usize,
        );
        if registers.len() > 1 && i != j {
            let other = registers[j].clone();
            registers[i]
                .iter_mut()
                .zip(other)
                .for_each(|(x, y)| *x ^= y);
        }
    }
    registers
}

/// Builds the three layouts as Triton's are built, then permutes rows, columns and k and mixes registers.
fn case(random: &mut Random, by_lane: bool) -> Case {
    let log2 = [random.below(6), random.below(5), random.below(6)];
    let batch = random.below(3);
    let [m, n, k] = log2;
    let shapes = [
        vec![1u32 << batch, 1 << m, 1 << k],
        vec![1 << batch, 1 << k, 1 << n],
        vec![1 << batch, 1 << m, 1 << n],
    ];
    let (rows, columns, depths) = (mixed(random, m), mixed(random, n), mixed(random, k));
    let at = |of: &[u32], bit: u32| of.get(bit as usize).copied().unwrap_or(0);
    let mut bases: [Bases; 3] = Default::default();
    let mut lanes: [Vec<Vec<u32>>; 3] = Default::default();
    let mut warps: [Vec<Vec<u32>>; 3] = Default::default();
    // What the next lane or warp takes of m, n and k.
    let (mut next_m, mut next_n) = (0, 0);
    let give = |places: &mut [Vec<Vec<u32>>; 3], of: [[u32; 3]; 3]| {
        for (matrix, vector) in places.iter_mut().zip(of) {
            matrix.push(vector.to_vec());
        }
    };
    if by_lane {
        // Registers have the lowest bits of n and k; lanes follow.
        for next in 1..3 {
            let (column, depth) = (at(&columns, next), at(&depths, next));
            give(&mut lanes, [[0, 0, depth], [0, depth, 0], [0, 0, column]]);
        }
        next_n = 3;
        for bit in 0..3 {
            let (row, column) = (at(&rows, next_m), at(&columns, bit));
            give(&mut lanes, [[0, row, 0], [0, 0, column], [0, row, 0]]);
            next_m += 1;
        }
    } else {
        for _ in 0..5 {
            let (row, column) = (at(&rows, next_m), at(&columns, next_n));
            if random.below(2) == 0 {
                give(&mut lanes, [[0, row, 0], [0, 0, 0], [0, row, 0]]);
                next_m += 1;
            } else {
                give(&mut lanes, [[0, 0, 0], [0, 0, column], [0, 0, column]]);
                next_n += 1;
            }
        }
    }
    for _ in 0..random.below(3) {
        let (row, column) = (at(&rows, next_m + 1), at(&columns, next_n));
        match random.below(3) {
            0 => give(&mut warps, [[0, row, 0], [0, 0, 0], [0, row, 0]]),
            1 => give(&mut warps, [[0, 0, 0], [0, 0, column], [0, 0, column]]),
            _ => give(
                &mut warps,
                [[1, 0, 0], [1, 0, 0], [1, 0, 0]].map(|v| v.map(|x| x * u32::from(batch > 0))),
            ),
        }
    }
    for matrix in 0..3 {
        let held: Vec<Vec<u32>> = lanes[matrix]
            .iter()
            .chain(&warps[matrix])
            .cloned()
            .collect();
        let registers = registers(random, &shapes[matrix], &held);
        bases[matrix] = vec![
            (Dim::REGISTER, registers),
            (Dim::LANE, lanes[matrix].clone()),
            (Dim::WARP, warps[matrix].clone()),
        ];
    }
    Case { shapes, bases }
}

/// What lies at a place: batch, row, column.
fn element(of: &LinearLayout, register: u32, lane: u32, warp: u32) -> [u32; 3] {
    let found = of
        .apply(&[
            (Dim::REGISTER, register),
            (Dim::LANE, lane),
            (Dim::WARP, warp),
        ])
        .unwrap();
    [0, 1, 2].map(|dim| {
        found
            .iter()
            .find(|(d, _)| *d == Dim::tensor(dim))
            .map_or(0, |(_, i)| *i)
    })
}

/// Follows a division in every warp; the result by element, as all places that hold it have it.
fn execute(
    division: &Division,
    layouts: [&LinearLayout; 3],
    instruction: &Instruction,
    a: &dyn Fn([u32; 3]) -> u64,
    b: &dyn Fn([u32; 3]) -> u64,
) -> Vec<([u32; 3], u64)> {
    let lanes = 1u32 << layouts[2].in_dim_size_log2(Dim::LANE);
    let warps = 1u32 << layouts[2].in_dim_size_log2(Dim::WARP);
    let group = 1u32 << instruction.c.in_dim_size_log2(Dim::LANE);
    let index = |fragment: &LinearLayout, register: u32, lane: u32| -> [u32; 2] {
        let found = fragment
            .apply(&[(Dim::REGISTER, register), (Dim::LANE, lane)])
            .unwrap();
        [0, 1].map(|dim| {
            found
                .iter()
                .find(|(d, _)| *d == Dim::tensor(dim))
                .map_or(0, |(_, i)| *i)
        })
    };
    let mut all = Vec::new();
    for warp in 0..warps {
        for first in (0..lanes).step_by(group as usize) {
            let mut sums: HashMap<(u32, u32, u32), u64> = HashMap::new();
            for step in &division.steps {
                let gather = |parts: &[Vec<Option<u32>>],
                              part: u32,
                              of: &LinearLayout,
                              fragment: &LinearLayout,
                              values: &dyn Fn([u32; 3]) -> u64| {
                    let mut matrix: HashMap<[u32; 2], u64> = HashMap::new();
                    for lane in 0..group {
                        for (slot, register) in (0u32..).zip(&parts[part as usize]) {
                            let counts = (first + lane) & division.repeating_lanes == 0;
                            let value = register.filter(|_| counts).map_or(0, |register| {
                                values(element(of, register, first + lane, warp))
                            });
                            matrix.insert(index(fragment, slot, lane), value);
                        }
                    }
                    matrix
                };
                let x = gather(&division.a, step.a, layouts[0], &instruction.a, a);
                let y = gather(&division.b, step.b, layouts[1], &instruction.b, b);
                for lane in 0..group {
                    for slot in 0..division.tiles[step.tile as usize].len() as u32 {
                        let [i, j] = index(&instruction.c, slot, lane);
                        let depth = instruction.a.out_dim_size(Dim::tensor(1)) as u32;
                        let sum: u64 = (0..depth).map(|l| x[&[i, l]] * y[&[l, j]]).sum();
                        *sums.entry((step.tile, slot, lane)).or_default() += sum;
                    }
                }
            }
            for lane in 0..group {
                for (register, (tile, slot)) in (0u32..).zip(&division.results) {
                    all.push((
                        element(layouts[2], register, first + lane, warp),
                        sums[&(*tile, *slot, lane)],
                    ));
                }
            }
        }
    }
    all
}

fn check(case: &Case, instruction: &Instruction) -> Result<(), NotDivisible> {
    let [a, b, c] = [0, 1, 2].map(|i| layout(&case.bases[i], &case.shapes[i]));
    let division = divide(
        &Matrices {
            a: &a,
            b: &b,
            c: &c,
        },
        &instruction.matrices(),
    )?;
    let left = |[b, m, k]: [u32; 3]| u64::from(1 + 7 * b + 3 * m * m + 5 * k + m * k);
    let right = |[b, k, n]: [u32; 3]| u64::from(2 + 3 * b + 11 * n + k * k + 2 * n * k);
    let depth = case.shapes[0][2];
    for ([b_, m, n], found) in execute(&division, [&a, &b, &c], instruction, &left, &right) {
        let expected: u64 = (0..depth)
            .map(|k| left([b_, m, k]) * right([b_, k, n]))
            .sum();
        assert_eq!(
            found, expected,
            "batch {b_}, row {m}, column {n} of {:?}\n{:?}",
            case.shapes, case.bases
        );
    }
    Ok(())
}

#[test]
fn random_products_of_quads_are_whole() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut divided = 0;
    for i in 0..200 {
        let case = case(&mut random, true);
        let instruction = quads(if i % 2 == 0 { 16 } else { 8 });
        divided += u32::from(check(&case, &instruction).is_ok());
    }
    assert!(divided > 100, "{divided}");
}

#[test]
fn random_products_of_threads_are_whole() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut divided = 0;
    for _ in 0..100 {
        let case = case(&mut random, false);
        divided += u32::from(check(&case, &thread()).is_ok());
        let [a, b, c] = [0, 1, 2].map(|i| layout(&case.bases[i], &case.shapes[i]));
        let tensors = Matrices {
            a: &a,
            b: &b,
            c: &c,
        };
        assert_eq!(
            divide_among_threads(&tensors),
            divide(&tensors, &thread().matrices())
        );
    }
    assert!(divided > 60, "{divided}");
}

#[test]
fn what_an_instruction_cannot_read_is_named() {
    let c = quads(16);
    let vectors = |of: &[[u32; 2]]| of.iter().map(|v| v.to_vec()).collect::<Vec<_>>();
    // The first operand's rows and depths have changed places.
    let lanes = vectors(&[[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]);
    let a = layout(
        &vec![
            (Dim::REGISTER, vectors(&[[4, 0], [8, 0], [0, 8]])),
            (Dim::LANE, lanes),
        ],
        &[16, 16],
    );
    let found = divide(
        &Matrices {
            a: &a,
            b: &c.b,
            c: &c.c,
        },
        &c.matrices(),
    );
    assert_eq!(found, Err(NotDivisible::Lane { matrix: 0, bit: 0 }));
    assert_eq!(
        found.unwrap_err().to_string(),
        "bit 0 of the lane stands elsewhere in the first operand than in the instruction"
    );
    // Half of k is in no register.
    let lanes = vectors(&[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]);
    let half = layout(
        &vec![
            (Dim::REGISTER, vectors(&[[0, 1], [8, 0]])),
            (Dim::LANE, lanes),
        ],
        &[16, 16],
    );
    let found = divide(
        &Matrices {
            a: &half,
            b: &c.b,
            c: &c.c,
        },
        &c.matrices(),
    );
    assert_eq!(found, Err(NotDivisible::Missing { matrix: 0 }));
    // Shapes of other products.
    let found = divide(
        &Matrices {
            a: &c.b,
            b: &c.a,
            c: &c.c,
        },
        &c.matrices(),
    );
    assert_eq!(found, Err(NotDivisible::Shapes));
}
