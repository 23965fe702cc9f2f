//! Which matrix instruction computes a product, and which registers each execution of it takes.
//!
//! Whether an instruction can compute the product of three layouts is a question of left division of the layouts by
//! its fragments ([`llopt_layout::matrix_product`]). It can also compute the transposed product, with its operands
//! exchanged: then the transposed layouts are divided, and its first operand is the product's second. Among the
//! instructions that fit, the one is taken that keeps the matrix unit busy for the shortest time, and among these the
//! one with the fewest executions.
//!
//! A fragment fits most layouts of few rows if zeros and copies fill what is missing. Where each thread has the rows and
//! columns of its own elements, as in operand layouts of a blocked layout, multiply-adds take less time than an
//! instruction that is full of them: 1,024 cycles for 32x32x32 numbers with a row in each lane of CDNA, whose unit
//! would be busy for 16,384. So units have to be faster than threads, where threads can.

use llopt_dialects::tt::{DotOp, DotScaledOp, InputPrecision, ScaleDotElemType};
use llopt_layout::matrix_product::{
    Division, Matrices, NotDivisible, divide, divide_among_threads,
};
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;
use llopt_target::matrix::{MatrixElement, MatrixInstruction, instructions_for};
use melior::ir::{OperationRef, Value, ValueLike};

use crate::element::{Element, Float8};
use crate::types::Types;

/// Parts of a multiprocessor that have a matrix unit each; a warp uses one of them.
pub const UNITS: f32 = 4.0;

/// The type in which a matrix unit takes a scaled operand, and how many elements of it an element of the tensor holds.
#[must_use]
pub fn scaled_element(kind: ScaleDotElemType) -> Option<(MatrixElement, u32)> {
    use ScaleDotElemType as Kind;
    match kind {
        Kind::E4m3 => Some((MatrixElement::E4m3, 1)),
        Kind::E5m2 => Some((MatrixElement::E5m2, 1)),
        Kind::E2m1 => Some((MatrixElement::E2m1, 2)),
        Kind::E2m3 | Kind::E3m2 | Kind::Bf16 | Kind::Fp16 => None,
    }
}

/// The op of a product `c + a b` of matrices whose result is in registers: `tt.dot`, or with scales `tt.dot_scaled`.
#[derive(Clone, Copy, Debug)]
pub enum MatrixProduct<'c, 'a> {
    /// A product of numbers.
    Plain(DotOp<'c, 'a>),
    /// A product of numbers with scales.
    Scaled(DotScaledOp<'c, 'a>),
}

impl<'c: 'a, 'a> MatrixProduct<'c, 'a> {
    /// The product that an op computes, if it is one of these.
    #[must_use]
    pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let plain = DotOp::of(operation).map(Self::Plain);
        plain.or_else(|| DotScaledOp::of(operation).map(Self::Scaled))
    }

    /// The op.
    #[must_use]
    pub fn operation(self) -> OperationRef<'c, 'a> {
        match self {
            Self::Plain(dot) => dot.operation(),
            Self::Scaled(dot) => dot.operation(),
        }
    }

    /// The first factor.
    #[must_use]
    pub fn a(self) -> Value<'c, 'a> {
        match self {
            Self::Plain(dot) => dot.a(),
            Self::Scaled(dot) => dot.a(),
        }
    }

    /// The second factor.
    #[must_use]
    pub fn b(self) -> Value<'c, 'a> {
        match self {
            Self::Plain(dot) => dot.b(),
            Self::Scaled(dot) => dot.b(),
        }
    }

    /// What is added.
    #[must_use]
    pub fn c(self) -> Value<'c, 'a> {
        match self {
            Self::Plain(dot) => dot.c(),
            Self::Scaled(dot) => dot.c(),
        }
    }
}

/// The layouts of a product `c[.., m, n] += a[.., m, k] * b[.., k, n]`, and the element types that a matrix unit may
/// use for them.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'p> {
    /// The layouts.
    pub layouts: Matrices<'p>,
    /// The types that the first operand may have.
    pub a: &'p [MatrixElement],
    /// The types that the second operand may have.
    pub b: &'p [MatrixElement],
    /// The types that the accumulator may have.
    pub c: &'p [MatrixElement],
}

/// A product as executions of one instruction.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The instruction.
    pub instruction: &'static MatrixInstruction,
    /// Whether the product's second matrix is the instruction's first operand, and the other way round.
    pub exchanged: bool,
    /// The executions; `a` is the instruction's first operand.
    pub division: Division,
}

impl Selection {
    /// Cycles for which a warp keeps the matrix unit busy.
    pub fn cycles(&self) -> u64 {
        self.division.steps.len() as u64 * u64::from(self.instruction.issue_cycles)
    }
}

impl Problem<'_> {
    /// The instruction of `target` that makes the product in the shortest time, among those that `allowed` lets pass.
    /// If there is none, the error says why the last candidate with the right element types does not fit.
    pub fn select(
        &self,
        target: Target,
        allowed: impl Fn(&MatrixInstruction) -> bool,
    ) -> Result<Selection, Option<NotDivisible>> {
        let transposed = |layout: &LinearLayout| {
            let rank = layout.out_dims().len();
            let mut order: Vec<usize> = (0..rank).collect();
            if rank >= 2 {
                order.swap(rank - 2, rank - 1);
            }
            let dims: Vec<Dim> = (0..rank).map(Dim::tensor).collect();
            layout.transpose_outs(&dims)?.permute_axes(&order)
        };
        let Matrices { a, b, c } = self.layouts;
        let (Ok(a_transposed), Ok(b_transposed), Ok(c_transposed)) =
            (transposed(a), transposed(b), transposed(c))
        else {
            return Err(Some(NotDivisible::Shapes));
        };
        let exchanged_layouts = Matrices {
            a: &b_transposed,
            b: &a_transposed,
            c: &c_transposed,
        };
        let mut best: Option<Selection> = None;
        let mut reason = None;
        for (exchanged, layouts, first, second) in [
            (false, self.layouts, self.a, self.b),
            (true, exchanged_layouts, self.b, self.a),
        ] {
            let pairs = first
                .iter()
                .flat_map(|x| second.iter().map(move |y| (*x, *y)));
            let rows = pairs.flat_map(|(x, y)| {
                let sums = self.c.iter();
                sums.flat_map(move |z| instructions_for(target, x, y, *z))
            });
            for instruction in rows.filter(|row| allowed(row)) {
                let Some([a, b, c]) = instruction.layouts() else {
                    continue;
                };
                let fragments = Matrices {
                    a: &a,
                    b: &b,
                    c: &c,
                };
                match divide(&layouts, &fragments) {
                    Ok(division) => {
                        let found = Selection {
                            instruction,
                            exchanged,
                            division,
                        };
                        let rank = |one: &Selection| (one.cycles(), one.division.steps.len());
                        if best.as_ref().is_none_or(|best| rank(&found) < rank(best)) {
                            best = Some(found);
                        }
                    }
                    Err(why) => reason = Some(why),
                }
            }
        }
        best.ok_or(reason)
    }

    /// As [`Problem::select`], for factors without scales. No instruction is selected if each thread computes its part
    /// of the result by itself, and in less time; then there is no error.
    pub fn select_unless_by_threads(
        &self,
        target: Target,
    ) -> Result<Selection, Option<NotDivisible>> {
        let selection = self.select(target, |row| row.scale.is_none())?;
        let unit = selection.cycles() as f32 * selection.instruction.warps as f32 / UNITS;
        match self.time_of_threads(target) {
            Some(threads) if threads < unit => Err(None),
            _ => Ok(selection),
        }
    }

    /// The cycles of a multiprocessor for the multiply-adds of a warp; `None` where threads lack what they need, and for
    /// sums whose multiply-adds have no price.
    fn time_of_threads(&self, target: Target) -> Option<f32> {
        let has_price = self.c == [MatrixElement::F32];
        let division = has_price
            .then(|| divide_among_threads(&self.layouts))?
            .ok()?;
        Some(division.steps.len() as f32 * target.movement_costs().arithmetic)
    }
}

/// The types in which a matrix unit may take these elements. `rounds` says whether `f32` may lose precision.
#[must_use]
pub fn unit_elements(element: Element, rounds: bool) -> &'static [MatrixElement] {
    match element {
        Element::F16 => &[MatrixElement::F16],
        Element::Bf16 => &[MatrixElement::Bf16],
        Element::F32 if rounds => &[MatrixElement::Tf32, MatrixElement::F32],
        Element::F32 => &[MatrixElement::F32],
        Element::F64 => &[MatrixElement::F64],
        Element::Int(8) => &[MatrixElement::S8],
        Element::Int(32) => &[MatrixElement::I32],
        Element::Float8(Float8::E4M3FN) => &[MatrixElement::E4m3],
        Element::Float8(Float8::E5M2) => &[MatrixElement::E5m2],
        Element::Float8(Float8::E4M3FNUZ) => &[MatrixElement::E4m3Fnuz],
        Element::Float8(Float8::E5M2FNUZ) => &[MatrixElement::E5m2Fnuz],
        Element::Int(_) | Element::Pointer { .. } => &[],
    }
}

/// Whether every number of one type is one of the other, among the types of operands; in `f32` also of `tf32`.
fn holds(wide: Element, narrow: Element) -> bool {
    match (wide, narrow) {
        (Element::F16 | Element::Bf16 | Element::F32, Element::Float8(_))
        | (Element::F32, Element::F16 | Element::Bf16) => true,
        _ => wide == narrow && wide != Element::F32,
    }
}

/// The wider type in which a matrix unit multiplies operands of few bits exactly, and how; `None` if it does not.
#[must_use]
pub fn widened(
    layouts: Matrices<'_>,
    narrow: [Element; 2],
    sum: Element,
    target: Target,
) -> Option<(Element, Selection)> {
    let wider = [Element::F16, Element::Bf16, Element::F32].into_iter();
    let mut exact = wider.filter(|wide| {
        narrow.iter().any(|element| element != wide)
            && narrow.iter().all(|element| holds(*wide, *element))
    });
    exact.find_map(|wide| {
        let problem = Problem {
            layouts,
            a: unit_elements(wide, true),
            b: unit_elements(wide, true),
            c: unit_elements(sum, false),
        };
        let selection = problem.select_unless_by_threads(target).ok()?;
        Some((wide, selection))
    })
}

/// The executions of a matrix instruction that compute a product, if one takes its elements in these layouts, as they
/// are or widened.
#[must_use]
pub fn selection(dot: DotOp<'_, '_>, types: &Types, target: Target) -> Option<Selection> {
    let tensor = |value: Value<'_, '_>| types.resolve(value.r#type()).ok()?.tensor().cloned();
    let (a, b, c) = (tensor(dot.a())?, tensor(dot.b())?, tensor(dot.c())?);
    let layouts = Matrices {
        a: a.layout(),
        b: b.layout(),
        c: c.layout(),
    };
    let rounds = dot.input_precision() == InputPrecision::Tf32;
    let problem = Problem {
        layouts,
        a: unit_elements(a.element, rounds),
        b: unit_elements(b.element, rounds),
        c: unit_elements(c.element, false),
    };
    let found = problem.select_unless_by_threads(target).ok();
    let wider = || widened(layouts, [a.element, b.element], c.element, target);
    found.or_else(|| wider().map(|(_, selection)| selection))
}

/// Whether threads compute a product by multiply-adds, as no matrix unit takes its elements in these layouts, or as that
/// takes less time.
#[must_use]
pub fn is_by_threads(product: MatrixProduct<'_, '_>, types: &Types, target: Target) -> bool {
    match product {
        MatrixProduct::Plain(dot) => selection(dot, types, target).is_none(),
        MatrixProduct::Scaled(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: [u32; 2], bases: &[(Dim, &[[u32; 2]])]) -> LinearLayout {
        let bases: Vec<(Dim, Vec<Vec<u32>>)> = [Dim::REGISTER, Dim::LANE, Dim::WARP]
            .into_iter()
            .map(|dim| {
                let given = bases.iter().find(|(name, _)| *name == dim);
                (
                    dim,
                    given.map_or(Vec::new(), |(_, of)| {
                        of.iter().map(|v| v.to_vec()).collect()
                    }),
                )
            })
            .collect();
        let bases: Vec<(Dim, &[Vec<u32>])> = bases.iter().map(|(d, v)| (*d, &v[..])).collect();
        let outs = [(Dim::tensor(0), shape[0]), (Dim::tensor(1), shape[1])];
        LinearLayout::from_bases(&bases, &outs).unwrap()
    }

    /// The first operand of a 32x32 MFMA: rows over lanes, then `width` elements and the halves of a warp along k.
    fn operand(width: u32, depth: u32) -> LinearLayout {
        let registers = (0..depth.trailing_zeros()).map(|bit| [0, 1 << bit]);
        let registers: Vec<[u32; 2]> = registers.filter(|basis| basis[1] != width).collect();
        let lanes = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, width]];
        layout(
            [32, depth],
            &[(Dim::REGISTER, &registers), (Dim::LANE, &lanes)],
        )
    }

    fn result() -> LinearLayout {
        let registers = [[1, 0], [2, 0], [8, 0], [16, 0]];
        let lanes = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]];
        layout(
            [32, 32],
            &[(Dim::REGISTER, &registers), (Dim::LANE, &lanes)],
        )
    }

    fn select(target: &str, width: u32, transposed: bool) -> Selection {
        let (a, b) = (
            operand(width, 32),
            operand(width, 32).permute_axes(&[1, 0]).unwrap(),
        );
        let c = result();
        let c = if transposed {
            c.permute_axes(&[1, 0]).unwrap()
        } else {
            c
        };
        let problem = Problem {
            layouts: Matrices {
                a: &a,
                b: &b,
                c: &c,
            },
            a: &[MatrixElement::F16],
            b: &[MatrixElement::F16],
            c: &[MatrixElement::F32],
        };
        problem
            .select(Target::parse(target).unwrap(), |_| true)
            .unwrap()
    }

    #[test]
    fn the_shortest_time_of_the_unit_decides() {
        for (target, name, executions) in [
            ("hip:gfx942", "v_mfma_f32_32x32x8_f16", 4),
            ("hip:gfx950", "v_mfma_f32_32x32x16_f16", 2),
        ] {
            let found = select(target, 8, false);
            assert_eq!(
                (found.instruction.name, found.division.steps.len()),
                (name, executions)
            );
        }
        // Vectors of 4 do not fill an operand lane of the longer instruction, whose registers may lie anywhere in k.
        assert_eq!(select("hip:gfx950", 4, false).instruction.k, 16);
    }

    #[test]
    fn threads_multiply_what_would_fill_a_unit_with_zeros() {
        let of = |registers: &[[u32; 2]], lanes: &[[u32; 2]]| {
            layout([32, 32], &[(Dim::REGISTER, registers), (Dim::LANE, lanes)])
        };
        let (row, column) = (
            [1, 2, 4, 8, 16].map(|bit| [bit, 0]),
            [1, 2, 4, 8, 16].map(|bit| [0, bit]),
        );
        // A row for each lane, and the other half of the wave has them too.
        let rows = [&row[..], &[[0, 0]]].concat();
        let (a, b) = (
            of(&column, &rows),
            of(&[row, column].concat(), &[[0, 0]; 6]),
        );
        let problem = |a, b, c| Problem {
            layouts: Matrices { a, b, c },
            a: &[MatrixElement::F32],
            b: &[MatrixElement::F32],
            c: &[MatrixElement::F32],
        };
        let target = Target::parse("hip:gfx950").unwrap();
        let of_threads = problem(&a, &b, &a);
        assert!(of_threads.select(target, |_| true).is_ok());
        assert!(matches!(
            of_threads.select_unless_by_threads(target),
            Err(None)
        ));
        // Fragments have no row or column of their own in a thread.
        let (a, b) = (
            operand(1, 32),
            operand(1, 32).permute_axes(&[1, 0]).unwrap(),
        );
        assert!(
            problem(&a, &b, &result())
                .select_unless_by_threads(target)
                .is_ok()
        );
    }

    #[test]
    fn a_transposed_result_exchanges_the_operands() {
        assert!(!select("hip:gfx942", 4, false).exchanged);
        assert!(select("hip:gfx942", 4, true).exchanged);
    }

    #[test]
    fn layouts_of_another_instruction_give_a_reason() {
        let (a, b) = (
            operand(4, 32),
            operand(8, 32).permute_axes(&[1, 0]).unwrap(),
        );
        let c = result();
        let problem = Problem {
            layouts: Matrices {
                a: &a,
                b: &b,
                c: &c,
            },
            a: &[MatrixElement::F16],
            b: &[MatrixElement::F16],
            c: &[MatrixElement::F32],
        };
        let target = Target::parse("hip:gfx942").unwrap();
        assert!(matches!(
            problem.select(target, |_| true),
            Err(Some(NotDivisible::Lane { .. }))
        ));
    }
}
