//! Random programs.
//!
//! A `Generator` has a program and the values in scope. It adds one operation after another, each on existing values,
//! converted to the layout that the operation needs; where none fits, it loads one. At the end all unused values are
//! stored.

mod combine;
mod control;
mod dot;
mod elementwise;
mod memory;
mod product;
mod shape;

use std::rc::Rc;

use fastrand::Rng;
use llopt_dialects::layout::encoding::{Encoding, Slice};
use llopt_dialects::layout::transfer;
use llopt_target::{Feature, Target, Vendor};

use crate::element::{Data, Element, Number};
use crate::facts::Facts;
use crate::layouts::{self, Machine};
use crate::program::{Buffer, CONVERSION, Node, Program, Region, Type, Value};

/// A random program for a target; the same for the same seed.
#[must_use]
pub fn generate(target: Target, seed: u64) -> Program {
    program(target, seed, true)
}

/// A random program without layouts, for which the compiler chooses them.
#[must_use]
pub fn generate_without_layouts(target: Target, seed: u64) -> Program {
    program(target, seed, false)
}

fn program(target: Target, seed: u64, has_layouts: bool) -> Program {
    let mut rng = Rng::with_seed(seed);
    let warps = [1, 1, 2, 4, 4, 8][rng.usize(0..6)];
    // From a separate generator of numbers, so that the programs for one block are the same on all targets.
    let mut of_clusters = Rng::with_seed(!seed);
    let blocks = match of_clusters.u8(0..8) {
        0 if target.has(Feature::Cluster) => 2,
        1 if target.has(Feature::Cluster) => 4,
        _ => 1,
    };
    let mut generator = Generator {
        machine: Machine {
            target,
            warps,
            blocks,
        },
        program: Program {
            target,
            warps,
            blocks,
            has_layouts,
            types: Vec::new(),
            buffers: Vec::new(),
            body: Vec::new(),
        },
        facts: Vec::new(),
        used: Vec::new(),
        scope: Vec::new(),
        body: Vec::new(),
        depth: 0,
        rng,
    };
    let steps = 1 + generator.rng.usize(0..6);
    generator.first();
    generator.steps(steps);
    generator.store_unused();
    generator.program.body = generator.body;
    generator.program
}

/// A program under construction.
struct Generator {
    rng: Rng,
    machine: Machine,
    program: Program,
    /// The facts of each value.
    facts: Vec<Facts>,
    /// Whether something uses the value.
    used: Vec<bool>,
    /// Values that can be used here.
    scope: Vec<Value>,
    /// The block that is being filled.
    body: Vec<Node>,
    /// The number of regions around it.
    depth: u32,
}

/// Log2 of the most elements of a tensor.
const MOST_ELEMENTS_LOG2: u32 = 9;

impl Generator {
    /// A tensor or two to start with.
    fn first(&mut self) {
        let shape = self.shape();
        let number = self.number();
        for _ in 0..1 + self.rng.usize(0..2) {
            self.load(&shape, number);
        }
    }

    /// Adds that many operations, or tries to.
    fn steps(&mut self, count: usize) {
        let mut left = count * 4;
        let mut done = 0;
        while done < count && left > 0 {
            left -= 1;
            done += usize::from(self.step().is_some());
        }
    }

    fn step(&mut self) -> Option<()> {
        match self.rng.u8(0..48) {
            // Gathers, histograms and buffers stay within a block.
            20..22 | 29..34 | 39 | 40 if self.machine.blocks > 1 => self.reduce(),
            0..9 => self.convert_any(),
            9..13 => self.elementwise(),
            13..17 => self.reduce(),
            17..20 => self.scan(),
            20..22 => self.gather(),
            22 => self.trans(),
            23 | 24 => self.reshape(),
            25 => self.join(),
            26 => self.split(),
            27 => self.expand_and_broadcast(),
            28 => self.cat(),
            29 => self.histogram(),
            // Buffers exist only in programs with layouts.
            30..34 | 39 | 40 if !self.program.has_layouts => self.expand_and_broadcast(),
            30..34 => self.through_shared_memory(),
            34 => self.atomic(),
            35 => self.pointers(),
            36 => self.map_elementwise(),
            37 | 38 => self.repeat(),
            39 | 40 => self.copied_to_shared_memory(),
            42..45 => self.product(),
            45..48 if self.machine.blocks == 1 || !self.program.has_layouts => self.dot(),
            _ => self.branch(),
        }
    }

    // Choices.

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(0..from.len())]
    }

    /// True once in `n` times.
    fn once_in(&mut self, n: u32) -> bool {
        self.rng.u32(0..n) == 0
    }

    fn number(&mut self) -> Number {
        // `i1` cannot be loaded; comparisons make it.
        self.pick(&Number::ALL[1..])
    }

    fn shape(&mut self) -> Vec<u32> {
        let rank = self.pick(&[1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 4, 5]);
        let mut left = 2 + self.rng.u32(0..=MOST_ELEMENTS_LOG2 - 2);
        let mut shape = vec![1u32; rank];
        while left > 0 {
            let run = self.rng.u32(1..=left.min(6));
            let dim = self.rng.usize(0..rank);
            shape[dim] <<= run;
            left -= run;
        }
        shape
    }

    fn layout(&mut self, shape: &[u32]) -> Rc<Encoding> {
        layouts::distributed(&mut self.rng, self.machine, shape)
    }

    /// A value in scope for which `wanted` holds, recent ones more often.
    fn choose(&mut self, wanted: impl Fn(&Type, Facts) -> bool) -> Option<Value> {
        let fitting: Vec<Value> = self
            .scope
            .iter()
            .copied()
            .filter(|&value| wanted(&self.program.types[value], self.facts[value]))
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let (a, b) = (
            self.rng.usize(0..fitting.len()),
            self.rng.usize(0..fitting.len()),
        );
        Some(fitting[a.max(b)])
    }

    fn choose_numbers(&mut self) -> Option<Value> {
        self.choose(|of, _| of.is_numbers())
    }

    // Types.

    fn of(&self, value: Value) -> Type {
        self.program.types[value].clone()
    }

    fn shape_of(&self, value: Value) -> Vec<u32> {
        self.program.types[value].shape().to_vec()
    }

    fn element_of(&self, value: Value) -> Element {
        self.program.types[value].element()
    }

    fn layout_of(&self, value: Value) -> Option<Rc<Encoding>> {
        self.program.types[value].layout().cloned()
    }

    fn tensor(&self, shape: &[u32], element: impl Into<Element>, layout: &Rc<Encoding>) -> Type {
        Type::Tensor {
            shape: shape.to_vec(),
            element: element.into(),
            layout: layout.clone(),
        }
    }

    /// The type of a value with another element.
    fn with_element(&self, value: Value, element: impl Into<Element>) -> Type {
        match self.of(value) {
            Type::Tensor { shape, layout, .. } => self.tensor(&shape, element, &layout),
            Type::Memory { .. } | Type::Scalar(_) => Type::Scalar(element.into()),
        }
    }

    // Operations.

    fn value(&mut self, of: Type, facts: Facts) -> Value {
        self.program.types.push(of);
        self.facts.push(facts);
        self.used.push(false);
        self.program.types.len() - 1
    }

    /// Adds an operation with one result.
    fn add(&mut self, template: &str, operands: &[Value], of: Type, facts: Facts) -> Value {
        self.add_all(template, operands, vec![(of, facts)], None, Vec::new())[0]
    }

    /// Adds an operation.
    fn add_all(
        &mut self,
        template: &str,
        operands: &[Value],
        results: Vec<(Type, Facts)>,
        buffer: Option<usize>,
        regions: Vec<Region>,
    ) -> Vec<Value> {
        let results: Vec<Value> = results
            .into_iter()
            .map(|(of, facts)| self.value(of, facts))
            .collect();
        for &operand in operands {
            self.used[operand] = true;
        }
        self.scope.extend(&results);
        self.body.push(Node {
            template: template.to_owned(),
            operands: operands.to_vec(),
            results: results.clone(),
            buffer,
            has_effect: results.is_empty(),
            regions,
        });
        results
    }

    fn buffer(&mut self, number: Number, length: usize, data: Data) -> usize {
        self.program.buffers.push(Buffer {
            number,
            length,
            data,
        });
        self.program.buffers.len() - 1
    }

    /// A value in another layout.
    fn in_layout(&mut self, value: Value, layout: &Rc<Encoding>) -> Value {
        if self.layout_of(value).as_ref() == Some(layout) {
            return value;
        }
        let of = self.tensor(&self.shape_of(value), self.element_of(value), layout);
        let facts = self.facts[value];
        self.add(&format!("{CONVERSION} : $t0 -> $T0"), &[value], of, facts)
    }

    fn convert_any(&mut self) -> Option<()> {
        let value = self.choose(|of, _| matches!(of, Type::Tensor { .. }))?;
        let layout = self.layout(&self.shape_of(value));
        self.in_layout(value, &layout);
        Some(())
    }

    /// A tensor of that shape and element, in any layout: an existing one or a new one.
    fn like(&mut self, shape: &[u32], number: Number) -> Value {
        let found = self.choose(|of, _| {
            of.is_numbers() && of.shape() == shape && of.element() == number.into()
        });
        match found {
            Some(value) if !self.once_in(4) => value,
            _ if number == Number::I1 => {
                let bits = self.load(shape, Number::I8);
                self.add(
                    "$r = arith.trunci $0 : $t0 to $T0",
                    &[bits],
                    self.with_element(bits, Number::I1),
                    Facts::BITS,
                )
            }
            _ => self.load(shape, number),
        }
    }

    /// A loaded tensor in a new layout.
    fn load(&mut self, shape: &[u32], number: Number) -> Value {
        let layout = self.layout(shape);
        self.load_as(shape, number, &layout)
    }

    fn load_as(&mut self, shape: &[u32], number: Number, layout: &Rc<Encoding>) -> Value {
        let seed = self.rng.u64(..);
        let (data, facts) = if self.once_in(3) {
            (Data::Small(3, seed), Facts::small(3))
        } else {
            (Data::Bits(seed), Facts::BITS)
        };
        self.load_data(shape, number, layout, (data, facts))
    }

    /// A tensor of certain data in a layout.
    fn load_data(
        &mut self,
        shape: &[u32],
        number: Number,
        layout: &Rc<Encoding>,
        (data, facts): (Data, Facts),
    ) -> Value {
        let length = shape.iter().product::<u32>() as usize;
        let buffer = self.buffer(number, length, data);
        let of = self.tensor(shape, number, layout);
        let (prefix, address) = self.addresses(shape, layout);
        let tail = match self.rng.u8(0..4) {
            0 => ", %mask$u, %other$u",
            1 => ", %mask$u",
            _ => "",
        };
        let mut template = prefix;
        // The result of a masked load without `other` is not determined where the mask is off.
        let tail = if tail == ", %mask$u" { "" } else { tail };
        if !tail.is_empty() {
            let bound = self.rng.usize(0..=length);
            let layout = self.spell(layout);
            let extents = extents(shape);
            let zero = if number.is_real() || matches!(number, Number::F8E5M2 | Number::F8E4M3) {
                "0.0"
            } else {
                "0"
            };
            template.push_str(&format!(
                "%bound$u = arith.constant dense<{bound}> : tensor<{extents}i32, {layout}>\n\
                 %mask$u = arith.cmpi slt, {address}, %bound$u : tensor<{extents}i32, {layout}>\n\
                 %other$u = arith.constant dense<{zero}> : $T0\n"
            ));
        }
        template.push_str(&self.access(shape, layout, &address, number));
        let is_buffer = template.ends_with('[');
        if is_buffer {
            template.truncate(template.len() - 1);
            template.push_str(&format!("$r = amdg.buffer_load $b[{address}]{tail} : $T0"));
        } else {
            template.push_str(&format!(
                "$r = tt.load %ptr$u{tail} : tensor<{}!tt.ptr<$p>, {}>",
                extents(shape),
                self.spell(layout)
            ));
        }
        self.add_all(&template, &[], vec![(of, facts)], Some(buffer), Vec::new())[0]
    }

    /// Text that makes `%ptr$u`, pointers to the elements of the node's buffer; or, at random where the vendor has
    /// accesses by offset, nothing but a final `[`.
    fn access(
        &mut self,
        shape: &[u32],
        layout: &Rc<Encoding>,
        address: &str,
        number: Number,
    ) -> String {
        let is_narrow = number.bits() < 8;
        let may_offset = self.machine.target.vendor() == Vendor::Amdgpu && self.program.has_layouts;
        if may_offset && !is_narrow && self.once_in(4) {
            return "[".to_owned();
        }
        let (layout, extents) = (self.spell(layout), extents(shape));
        let pointers = format!("tensor<{extents}!tt.ptr<$p>, {layout}>");
        format!(
            "%base$u = tt.splat $b : !tt.ptr<$p> -> {pointers}\n\
             %ptr$u = tt.addptr %base$u, {address} : {pointers}, tensor<{extents}i32, {layout}>\n"
        )
    }

    /// Text that computes the row-major number of each element, and its name: from a range over all elements that is
    /// reshaped, or from the coordinates along each dimension as in Triton's front end.
    fn addresses(&mut self, shape: &[u32], layout: &Rc<Encoding>) -> (String, String) {
        let count: u32 = shape.iter().product();
        let spelled = self.spell(layout);
        let full = format!("tensor<{}i32, {spelled}>", extents(shape));
        if shape.len() > 1
            && self.rng.bool()
            && let Some(text) = self.by_coordinates(shape, layout)
        {
            return (text, "%at$u".to_owned());
        }
        let from = shape.iter().map(|&e| i64::from(e)).collect::<Vec<_>>();
        let flat = transfer::reshape(layout, &from, &[i64::from(count)]);
        let text = match flat {
            Ok(flat) if shape.len() > 1 => {
                let flat = self.spell(&Rc::new(flat));
                format!(
                    "%flat$u = tt.make_range {{end = {count} : i32, start = 0 : i32}} : \
                     tensor<{count}xi32, {flat}>\n\
                     %at$u = tt.reshape %flat$u : tensor<{count}xi32, {flat}> -> {full}\n"
                )
            }
            _ => {
                format!("%at$u = tt.make_range {{end = {count} : i32, start = 0 : i32}} : {full}\n")
            }
        };
        (text, "%at$u".to_owned())
    }

    fn by_coordinates(&mut self, shape: &[u32], layout: &Rc<Encoding>) -> Option<String> {
        let spelled = self.spell(layout);
        let full = format!("tensor<{}i32, {spelled}>", extents(shape));
        let mut text = String::new();
        let mut stride: u32 = shape.iter().product();
        let mut sum: Option<String> = None;
        for (dim, &extent) in shape.iter().enumerate() {
            stride /= extent;
            // The layouts of the coordinates: the other dimensions are sliced away one by one, the last first.
            let mut steps = vec![(layout.as_ref().clone(), vec![0usize; 0])];
            let mut kept: Vec<usize> = (0..shape.len()).collect();
            for axis in (0..shape.len()).rev().filter(|&axis| axis != dim) {
                let parent = steps.last()?.0.clone();
                let slice = Encoding::Slice(Slice {
                    dim: axis as u32,
                    parent: Box::new(parent),
                });
                kept.retain(|&one| one != axis);
                steps.push((slice, kept.clone()));
            }
            let width = |kept: &[usize]| -> Vec<u32> {
                kept.iter()
                    .map(|&one| if one == dim { extent } else { 1 })
                    .collect()
            };
            let last = self.spell(&Rc::new(steps.last()?.0.clone()));
            let mut name = format!("%c{dim}$u");
            let mut of = format!("tensor<{extent}xi32, {last}>");
            text.push_str(&format!(
                "{name} = tt.make_range {{end = {extent} : i32, start = 0 : i32}} : {of}\n"
            ));
            let axes: Vec<usize> = (0..shape.len()).filter(|&axis| axis != dim).collect();
            for (i, axis) in axes.into_iter().enumerate() {
                let (encoding, kept) = &steps[steps.len() - 2 - i];
                let shown = if kept.is_empty() {
                    (0..shape.len()).collect()
                } else {
                    kept.clone()
                };
                let wider = format!(
                    "tensor<{}i32, {}>",
                    extents(&width(&shown)),
                    self.spell(&Rc::new(encoding.clone()))
                );
                let next = format!("%e{dim}_{i}_$u");
                text.push_str(&format!(
                    "{next} = tt.expand_dims {name} {{axis = {axis} : i32}} : {of} -> {wider}\n"
                ));
                (name, of) = (next, wider);
            }
            let scaled = format!("%s{dim}$u");
            text.push_str(&format!(
                "%k{dim}$u = arith.constant dense<{stride}> : {of}\n\
                 {scaled} = arith.muli {name}, %k{dim}$u : {of}\n"
            ));
            let wide = if of == full {
                scaled
            } else {
                text.push_str(&format!(
                    "%w{dim}$u = tt.broadcast {scaled} : {of} -> {full}\n"
                ));
                format!("%w{dim}$u")
            };
            sum = Some(match sum {
                None => wide,
                Some(before) => {
                    let all = format!("%sum{dim}$u");
                    text.push_str(&format!("{all} = arith.addi {before}, {wide} : {full}\n"));
                    all
                }
            });
        }
        let zero = "%zero$u";
        text.push_str(&format!(
            "{zero} = arith.constant dense<0> : {full}\n%at$u = arith.addi {}, {zero} : {full}\n",
            sum?
        ));
        Some(text)
    }

    /// A layout in a template: a hole that printing fills.
    fn spell(&mut self, layout: &Rc<Encoding>) -> String {
        // Each layout gets a value of its type, which is neither defined nor used.
        let shape = vec![1; layout.rank()];
        let of = self.tensor(&shape, Number::I1, layout);
        let known = self.program.types.iter().position(|other| *other == of);
        let number = known.unwrap_or_else(|| self.value(of, Facts::BITS));
        format!("$L{number}")
    }

    // The end.

    /// Stores the unused values.
    fn store_unused(&mut self) {
        let unused: Vec<Value> = self
            .scope
            .iter()
            .copied()
            .filter(|&value| {
                !self.used[value]
                    && match &self.program.types[value] {
                        Type::Memory { .. } => false,
                        of => of.element().number().is_some(),
                    }
            })
            .collect();
        for value in unused {
            self.store(value);
        }
    }

    fn store(&mut self, value: Value) {
        let value = if self.element_of(value) == Number::I1.into() {
            let of = self.with_element(value, Number::I8);
            self.add(
                "$r = arith.extui $0 : $t0 to $T0",
                &[value],
                of,
                Facts::BITS,
            )
        } else {
            value
        };
        let Some(number) = self.element_of(value).number() else {
            return;
        };
        let shape = self.shape_of(value);
        let length = shape.iter().product::<u32>() as usize;
        let buffer = self.buffer(number, length, Data::Zero);
        let Some(layout) = self.layout_of(value) else {
            let template = "tt.store $b, $0 : !tt.ptr<$p>";
            self.add_all(template, &[value], Vec::new(), Some(buffer), Vec::new());
            return;
        };
        let (mut template, address) = self.addresses(&shape, &layout);
        template.push_str(&self.access(&shape, &layout, &address, number));
        if template.ends_with('[') {
            template.truncate(template.len() - 1);
            template.push_str(&format!("amdg.buffer_store $0, $b[{address}] : $t0"));
        } else {
            template.push_str(&format!(
                "tt.store %ptr$u, $0 : tensor<{}!tt.ptr<$p>, {}>",
                extents(&shape),
                self.spell(&layout)
            ));
        }
        self.add_all(&template, &[value], Vec::new(), Some(buffer), Vec::new());
    }
}

/// `16x32x`
fn extents(shape: &[u32]) -> String {
    shape.iter().map(|extent| format!("{extent}x")).collect()
}

/// Extents in the form of the dialects' transfer functions.
fn signed(shape: &[u32]) -> Vec<i64> {
    shape.iter().map(|&extent| extent.into()).collect()
}
