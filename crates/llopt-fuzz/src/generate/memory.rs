//! Gathers, histograms, shared memory with views, copies to it, atomics, tensors of pointers.

use std::rc::Rc;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_target::Vendor;

use crate::element::{Data, Element, Number};
use crate::facts::Facts;
use crate::layouts;
use crate::program::{Type, Value};

use super::{Generator, MOST_ELEMENTS_LOG2, extents, signed};

/// Whether a buffer of this layout cannot be sliced at every position.
fn swizzles(layout: &Encoding) -> bool {
    match layout {
        Encoding::SwizzledShared(swizzled) => swizzled.max_phase > 1,
        Encoding::PaddedShared(_) => false,
        _ => true,
    }
}

impl Generator {
    pub(super) fn gather(&mut self) -> Option<()> {
        let source = self.choose_numbers()?;
        let shape = self.shape_of(source);
        let axis = self.rng.usize(0..shape.len());
        let mut wanted = shape.clone();
        if self.once_in(3) {
            let others: u32 = shape.iter().product::<u32>() / shape[axis];
            let room = MOST_ELEMENTS_LOG2.saturating_sub(others.trailing_zeros());
            wanted[axis] = 1 << self.rng.u32(0..=room.min(6));
        }
        let indices = self.integers(&wanted);
        if self.once_in(2) {
            let layout = self.layout(&wanted);
            let moved = self.in_layout(indices, &layout);
            return self.gather_at(source, moved, axis, shape[axis]);
        }
        self.gather_at(source, indices, axis, shape[axis])
    }

    fn gather_at(&mut self, source: Value, indices: Value, axis: usize, end: u32) -> Option<()> {
        let indices = self.below(indices, end);
        let of = self.with_element(indices, self.element_of(source));
        let facts = self.facts[source];
        let template = format!("$r = tt.gather $0[$1] {{axis = {axis} : i32}} : ($t0, $t1) -> $T0");
        self.add(&template, &[source, indices], of, facts);
        Some(())
    }

    pub(super) fn histogram(&mut self) -> Option<()> {
        let source = self.choose(|of, _| {
            of.is_numbers()
                && of.shape().len() == 1
                && of.element().number().is_some_and(Number::is_integer)
        })?;
        let bins = 1u32 << self.rng.u32(0..7);
        let source = self.below(source, bins);
        let layout = self.layout(&[bins]);
        let of = self.tensor(&[bins], Number::I32, &layout);
        let (template, operands) = if self.once_in(3) {
            let same = self.layout_of(source)?;
            let mask = self.like(&self.shape_of(source), Number::I1);
            let mask = self.in_layout(mask, &same);
            ("$r = tt.histogram $0, $1 : $t0 -> $T0", vec![source, mask])
        } else {
            ("$r = tt.histogram $0 : $t0 -> $T0", vec![source])
        };
        self.add(template, &operands, of, Facts::BITS);
        Some(())
    }

    /// Stores a tensor to shared memory, loads it through another view.
    pub(super) fn through_shared_memory(&mut self) -> Option<()> {
        let value = self.choose(|of, _| {
            of.is_numbers() && of.element() != Element::Number(Number::I1) && of.shape().len() < 5
        })?;
        let (shape, number) = (self.shape_of(value), self.element_of(value).number()?);
        let facts = self.facts[value];
        let layout = layouts::shared(&mut self.rng, self.machine, &shape, number.bits());
        let memory = |shape: &[u32], layout: &Rc<_>, is_mutable| Type::Memory {
            shape: shape.to_vec(),
            element: number,
            layout: Rc::clone(layout),
            is_mutable,
            whole: Vec::new(),
        };
        let view = match self.rng.u8(0..4) {
            0 | 1 => {
                let is_mutable = self.rng.bool();
                let of = memory(&shape, &layout, is_mutable);
                self.add(
                    "$r = ttg.local_alloc $0 : ($t0) -> $T0",
                    &[value],
                    of,
                    facts,
                )
            }
            2 => {
                // Two tensors, one after the other in the same buffer.
                let of = memory(&shape, &layout, true);
                let buffer = self.add("$r = ttg.local_alloc : () -> $T0", &[], of, facts);
                let other = self.like(&shape, number);
                self.store_local(other, buffer);
                self.load_local(buffer, other);
                self.store_local(value, buffer);
                buffer
            }
            _ => {
                // Several buffers at once.
                let buffers = 1u32 << self.rng.u32(0..2);
                let mut whole = shape.clone();
                whole.insert(0, buffers);
                let of = memory(&whole, &layout, true);
                let all = self.add("$r = ttg.local_alloc : () -> $T0", &[], of, facts);
                let mut last = all;
                for index in 0..buffers {
                    let of = memory(&shape, &layout, true);
                    let template = format!(
                        "%i$u = arith.constant {index} : i32\n\
                         $r = ttg.memdesc_index $0[%i$u] : $t0 -> $T0"
                    );
                    last = self.add(&template, &[all], of, facts);
                    let stored = if index + 1 == buffers {
                        value
                    } else {
                        self.like(&shape, number)
                    };
                    self.store_local(stored, last);
                }
                last
            }
        };
        let view = self.viewed(view).unwrap_or(view);
        self.load_local(view, value);
        Some(())
    }

    /// Copies tensors to shared memory asynchronously, several at once, and loads them one after the other while the
    /// others may still be outstanding.
    pub(super) fn copied_to_shared_memory(&mut self) -> Option<()> {
        let number = self.number();
        // With 4 or 16 bytes per lane, as in real programs, or any number.
        let bytes = self.pick(&[0, 4, 16]);
        let elements = (bytes * 8 / number.bits()).max(1);
        let shape = match bytes {
            0 => self.shape(),
            _ => self.rows_of(elements)?,
        };
        if shape.len() > 4 {
            return None;
        }
        let in_order = match bytes {
            0 => None,
            _ => Some(layouts::in_order(self.machine, &shape, elements)?),
        };
        let stages = 1u32 << self.rng.u32(0..3);
        let memory = match bytes {
            4 | 16 if self.rng.bool() => layouts::rows(&mut self.rng, shape.len(), elements),
            _ => layouts::shared(&mut self.rng, self.machine, &shape, number.bits()),
        };
        let mutable = |shape: &[u32]| Type::Memory {
            shape: shape.to_vec(),
            element: number,
            layout: Rc::clone(&memory),
            is_mutable: true,
            whole: Vec::new(),
        };
        let whole = [&[stages], &shape[..]].concat();
        let all = self.add(
            "$r = ttg.local_alloc : () -> $T0",
            &[],
            mutable(&whole),
            Facts::BITS,
        );
        let mut views = Vec::new();
        for stage in 0..stages {
            let template = format!(
                "%i$u = arith.constant {stage} : i32\n\
                 $r = ttg.memdesc_index $0[%i$u] : $t0 -> $T0"
            );
            views.push(self.add(&template, &[all], mutable(&shape), Facts::BITS));
        }
        let mut groups = 0;
        let mut group_of = Vec::new();
        for (stage, view) in views.iter().enumerate() {
            let layout = match &in_order {
                Some(layout) => Rc::clone(layout),
                None => self.layout(&shape),
            };
            self.copy(&shape, number, &layout, &memory, *view);
            group_of.push(groups);
            if stage + 1 == views.len() || self.rng.bool() {
                self.effect("%group$u = ttg.async_commit_group", &[]);
                groups += 1;
            }
        }
        for (view, group) in views.into_iter().zip(group_of) {
            let pending = groups - 1 - group;
            self.effect(
                &format!("%wait$u = ttg.async_wait {{num = {pending} : i32}}"),
                &[],
            );
            let layout = self.layout(&shape);
            let of = self.tensor(&shape, number, &layout);
            let template = "$r = ttg.local_load $0 : $t0 -> $T0";
            self.add(template, &[view], of, Facts::BITS);
        }
        Some(())
    }

    /// A shape with that many elements for each thread, once or twice, if it is not too large.
    fn rows_of(&mut self, elements: u32) -> Option<Vec<u32>> {
        let threads = self.machine.warps * self.machine.target.warp_size();
        let total = (threads * elements).trailing_zeros() + self.rng.u32(0..2);
        let columns = self.rng.u32(elements.trailing_zeros()..=total);
        let shape = match self.rng.bool() {
            true => vec![1 << total],
            false => vec![1 << (total - columns), 1 << columns],
        };
        (total <= MOST_ELEMENTS_LOG2 + 2).then_some(shape)
    }

    /// One such copy, masked or not, from pointers or, on AMD, from a buffer.
    fn copy(
        &mut self,
        shape: &[u32],
        number: Number,
        layout: &Rc<Encoding>,
        memory: &Rc<Encoding>,
        view: Value,
    ) {
        let (seed, length) = (self.rng.u64(..), shape.iter().product::<u32>());
        let buffer = self.buffer(number, length as usize, Data::Bits(seed));
        let (mut template, address) = self.addresses(shape, layout);
        let (layout, memory, extents) = (self.spell(layout), self.spell(memory), extents(shape));
        let to = format!("<{extents}$p, {memory}, #smem, mutable>");
        let places = format!("tensor<{extents}i32, {layout}>");
        let is_masked = self.once_in(3);
        if is_masked {
            // Vectors are masked as a whole if their length divides the bound.
            let bound = self.rng.u32(0..=length) >> self.rng.u32(0..3) << 2;
            let is_real = number.is_real() || matches!(number, Number::F8E5M2 | Number::F8E4M3);
            let other = match (is_real, self.once_in(4)) {
                (true, true) => "1.0",
                (true, false) => "0.0",
                (false, true) => "1",
                (false, false) => "0",
            };
            template.push_str(&format!(
                "%bound$u = arith.constant dense<{bound}> : {places}\n\
                 %mask$u = arith.cmpi slt, {address}, %bound$u : {places}\n\
                 %other$u = arith.constant dense<{other}> : tensor<{extents}$p, {layout}>\n"
            ));
        }
        if self.machine.target.vendor() == Vendor::Amdgpu && number.bits() >= 8 && self.rng.bool() {
            let (masked, other) = match is_masked {
                true => (
                    " mask = %mask$u other = %other$u",
                    format!(" tensor<{extents}$p, {layout}>"),
                ),
                false => ("", String::new()),
            };
            template.push_str(&format!(
                "%copy$u = amdg.buffer_load_to_local $b[{address}]{masked} into $0 : \
                 <$p>[{places}]{other} -> {to}"
            ));
        } else {
            let pointers = format!("tensor<{extents}!tt.ptr<$p>, {layout}>");
            let masked = if is_masked {
                " mask %mask$u other %other$u"
            } else {
                ""
            };
            template.push_str(&format!(
                "%base$u = tt.splat $b : !tt.ptr<$p> -> {pointers}\n\
                 %ptr$u = tt.addptr %base$u, {address} : {pointers}, {places}\n\
                 %copy$u = ttg.async_copy_global_to_local %ptr$u, $0{masked} : {pointers} -> {to}"
            ));
        }
        self.add_all(&template, &[view], Vec::new(), Some(buffer), Vec::new());
    }

    /// An operation without results that are used.
    fn effect(&mut self, template: &str, operands: &[Value]) {
        self.add_all(template, operands, Vec::new(), None, Vec::new());
    }

    fn store_local(&mut self, value: Value, buffer: Value) {
        self.effect("ttg.local_store $0, $1 : $t0 -> $t1", &[value, buffer]);
    }

    /// Loads a view with the facts of `like`.
    fn load_local(&mut self, view: Value, like: Value) {
        let shape = self.shape_of(view);
        let layout = self.layout(&shape);
        let of = self.tensor(&shape, self.element_of(view), &layout);
        let facts = self.facts[like];
        self.add("$r = ttg.local_load $0 : $t0 -> $T0", &[view], of, facts);
    }

    /// Another view of a buffer.
    fn viewed(&mut self, view: Value) -> Option<Value> {
        let Type::Memory {
            shape,
            element,
            layout,
            is_mutable,
            ..
        } = self.of(view)
        else {
            return None;
        };
        let facts = self.facts[view];
        let of = |shape: &[u32], layout, whole: &[u32]| Type::Memory {
            shape: shape.to_vec(),
            element,
            layout,
            is_mutable,
            whole: whole.to_vec(),
        };
        match self.rng.u8(0..5) {
            0 => {
                let mut order: Vec<i32> = (0..shape.len() as i32).collect();
                self.rng.shuffle(&mut order);
                let moved = transfer::trans(&layout, &signed(&shape), &order).ok()?;
                let permuted: Vec<u32> = order.iter().map(|&from| shape[from as usize]).collect();
                let list: Vec<String> = order.iter().map(ToString::to_string).collect();
                let template = format!(
                    "$r = ttg.memdesc_trans $0 {{order = array<i32: {}>}} : $t0 -> $T0",
                    list.join(", ")
                );
                let of = of(&permuted, Rc::new(moved), &[]);
                Some(self.add(&template, &[view], of, facts))
            }
            1 => {
                let other = self.reshaped(&shape);
                let moved = transfer::reshape(&layout, &signed(&shape), &signed(&other)).ok()?;
                let of = of(&other, Rc::new(moved), &[]);
                let template = "$r = ttg.memdesc_reshape $0 : $t0 -> $T0";
                Some(self.add(template, &[view], of, facts))
            }
            2 if !swizzles(&layout) => {
                let part: Vec<u32> = shape
                    .iter()
                    .map(|&extent| extent >> self.rng.u32(0..=extent.trailing_zeros().min(2)))
                    .collect();
                let offsets: Vec<String> = shape
                    .iter()
                    .zip(&part)
                    .map(|(extent, part)| (self.rng.u32(0..extent / part) * part).to_string())
                    .collect();
                let of = of(&part, layout, &shape);
                let template = format!(
                    "$r = ttg.memdesc_subslice $0[{}] : $t0 -> $T0",
                    offsets.join(", ")
                );
                Some(self.add(&template, &[view], of, facts))
            }
            _ => None,
        }
    }

    pub(super) fn atomic(&mut self) -> Option<()> {
        let value = self.choose(|of, _| {
            of.is_numbers()
                && matches!(
                    of.element().number(),
                    Some(Number::I32 | Number::I64 | Number::F32 | Number::F16 | Number::BF16)
                )
        })?;
        let number = self.element_of(value).number()?;
        let (shape, layout) = (self.shape_of(value), self.layout_of(value)?);
        let length = shape.iter().product::<u32>() as usize;
        let seed = self.rng.u64(..);
        let meet = number.is_integer() && self.once_in(3);
        // Hardware without atomics of 16 bits performs them on words.
        let buffer = self.buffer(number, length.max(2), Data::Bits(seed));
        let (mut template, address) = self.addresses(&shape, &layout);
        let (spelled, extents) = (self.spell(&layout), extents(&shape));
        let pointers = format!("tensor<{extents}!tt.ptr<$p>, {spelled}>");
        let address = if meet {
            let most = length / 2;
            template.push_str(&format!(
                "%few$u = arith.constant dense<{}> : tensor<{extents}i32, {spelled}>\n\
                 %place$u = arith.andi {address}, %few$u : tensor<{extents}i32, {spelled}>\n",
                most.next_power_of_two() - 1
            ));
            "%place$u".to_owned()
        } else {
            address
        };
        template.push_str(&format!(
            "%base$u = tt.splat $b : !tt.ptr<$p> -> {pointers}\n\
             %ptr$u = tt.addptr %base$u, {address} : {pointers}, tensor<{extents}i32, {spelled}>\n"
        ));
        let order = self.pick(&["relaxed", "acquire", "release", "acq_rel"]);
        let scope = match self.machine.blocks {
            1 => self.pick(&["cta", "gpu", "sys"]),
            _ => self.pick(&["gpu", "sys"]),
        };
        if !meet && number.is_integer() && self.once_in(4) {
            let other = self.like(&shape, number);
            let other = self.in_layout(other, &layout);
            template.push_str(&format!(
                "$r = tt.atomic_cas {order}, {scope}, %ptr$u, $0, $1 : ({pointers}, $t0, $t1) -> $T0"
            ));
            let of = self.of(value);
            self.add_atomic(&template, &[value, other], of, buffer);
            return Some(());
        }
        let op = if number.is_real() {
            "fadd"
        } else if meet {
            self.pick(&["add", "and", "or", "xor", "max", "umin"])
        } else {
            self.pick(&[
                "add", "and", "or", "xor", "max", "umin", "min", "umax", "exch",
            ])
        };
        let mut operands = vec![value];
        let (tail, types) = if self.once_in(3) {
            let mask = self.like(&shape, Number::I1);
            operands.push(self.in_layout(mask, &layout));
            (", $1", ", $t1")
        } else {
            ("", "")
        };
        if meet || (number.is_real() && self.rng.bool()) || !tail.is_empty() {
            // The old values are not determined where several elements share an address, or where an element is
            // masked.
            template.push_str(&format!(
                "%old$u = tt.atomic_rmw {op}, {order}, {scope}, %ptr$u, $0{tail} : \
                 ({pointers}, $t0{types}) -> $t0"
            ));
            self.add_all(&template, &operands, Vec::new(), Some(buffer), Vec::new());
        } else {
            template.push_str(&format!(
                "$r = tt.atomic_rmw {op}, {order}, {scope}, %ptr$u, $0{tail} : \
                 ({pointers}, $t0{types}) -> $T0"
            ));
            let of = self.of(value);
            self.add_atomic(&template, &operands, of, buffer);
        }
        Some(())
    }

    fn add_atomic(&mut self, template: &str, operands: &[Value], of: Type, buffer: usize) {
        let results = vec![(of, Facts::BITS)];
        self.add_all(template, operands, results, Some(buffer), Vec::new());
        if let Some(node) = self.body.last_mut() {
            node.has_effect = true;
        }
    }

    /// Pointers into a buffer, moved between layouts, and the values that they point to.
    pub(super) fn pointers(&mut self) -> Option<()> {
        let source = self.choose(|of, _| {
            of.is_numbers() && of.element().number().is_some_and(Number::is_integer)
        })?;
        let number = self.number();
        let length = 1u32 << self.rng.u32(0..7);
        let indices = self.below(source, length);
        let seed = self.rng.u64(..);
        let buffer = self.buffer(number, length as usize, Data::Bits(seed));
        let of = self.with_element(indices, Element::Pointer(number));
        let template = "%base$u = tt.splat $b : !tt.ptr<$p> -> $T0\n\
                        $r = tt.addptr %base$u, $0 : $T0, $t0";
        let results = vec![(of, Facts::BITS)];
        let pointers = self.add_all(template, &[indices], results, Some(buffer), Vec::new())[0];
        let layout = self.layout(&self.shape_of(pointers));
        let pointers = self.in_layout(pointers, &layout);
        let of = self.with_element(pointers, number);
        self.add("$r = tt.load $0 : $t0", &[pointers], of, Facts::BITS);
        Some(())
    }
}
