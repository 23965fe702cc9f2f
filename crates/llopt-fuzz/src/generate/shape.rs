//! Operations that rearrange elements: transposition, reshape, join, split, cat, broadcast.

use std::rc::Rc;

use llopt_dialects::layout::transfer;

use crate::element::Number;
use crate::program::Type;

use super::{Generator, MOST_ELEMENTS_LOG2, signed};

fn count(shape: &[u32]) -> u32 {
    shape.iter().product()
}

impl Generator {
    pub(super) fn trans(&mut self) -> Option<()> {
        let value = self.choose(|of, _| matches!(of, Type::Tensor { .. }))?;
        let shape = self.shape_of(value);
        let mut order: Vec<i32> = (0..shape.len() as i32).collect();
        self.rng.shuffle(&mut order);
        let layout = self.layout_of(value)?;
        let moved = transfer::trans(&layout, &signed(&shape), &order).ok()?;
        let permuted: Vec<u32> = order.iter().map(|&from| shape[from as usize]).collect();
        let of = self.tensor(&permuted, self.element_of(value), &Rc::new(moved));
        let list: Vec<String> = order.iter().map(ToString::to_string).collect();
        let template = format!(
            "$r = tt.trans $0 {{order = array<i32: {}>}} : $t0 -> $T0",
            list.join(", ")
        );
        let facts = self.facts[value];
        self.add(&template, &[value], of, facts);
        Some(())
    }

    /// Another shape with the same number of elements.
    pub(super) fn reshaped(&mut self, shape: &[u32]) -> Vec<u32> {
        let rank = self.pick(&[1, 2, 2, 3, 4, 5]);
        let mut other = vec![1u32; rank];
        for _ in 0..count(shape).trailing_zeros() {
            other[self.rng.usize(0..rank)] <<= 1;
        }
        other
    }

    pub(super) fn reshape(&mut self) -> Option<()> {
        let value = self.choose(|of, _| matches!(of, Type::Tensor { .. }))?;
        let shape = self.shape_of(value);
        let other = self.reshaped(&shape);
        let layout = self.layout_of(value)?;
        let moved = transfer::reshape(&layout, &signed(&shape), &signed(&other)).ok()?;
        let of = self.tensor(&other, self.element_of(value), &Rc::new(moved));
        let facts = self.facts[value];
        self.add("$r = tt.reshape $0 : $t0 -> $T0", &[value], of, facts);
        Some(())
    }

    pub(super) fn join(&mut self) -> Option<()> {
        let value = self.choose(|of, _| {
            of.is_numbers() && of.shape().len() < 5 && count(of.shape()) < 1 << MOST_ELEMENTS_LOG2
        })?;
        let (shape, number) = (self.shape_of(value), self.element_of(value).number()?);
        let layout = self.layout_of(value)?;
        let other = self.like(&shape, number);
        let other = self.in_layout(other, &layout);
        let joined = transfer::join(&layout, &signed(&shape)).ok()?;
        let mut longer = shape;
        longer.push(2);
        let of = self.tensor(&longer, number, &Rc::new(joined));
        let facts = self.facts[value].join(self.facts[other]);
        self.add(
            "$r = tt.join $0, $1 : $t0 -> $T0",
            &[value, other],
            of,
            facts,
        );
        Some(())
    }

    pub(super) fn split(&mut self) -> Option<()> {
        let value = self.choose(|of, _| {
            of.is_numbers() && of.shape().len() > 1 && of.shape().last() == Some(&2)
        })?;
        let mut half = self.shape_of(value);
        half.pop();
        let number = self.element_of(value).number()?;
        let part = self.layout(&half);
        let whole = transfer::join(&part, &signed(&half)).ok()?;
        let value = self.in_layout(value, &Rc::new(whole));
        let of = self.tensor(&half, number, &part);
        let facts = self.facts[value];
        self.add_all(
            "$r = tt.split $0 : $t0 -> $T0",
            &[value],
            vec![(of.clone(), facts), (of, facts)],
            None,
            Vec::new(),
        );
        Some(())
    }

    /// Adds a dimension of extent one, which is then broadcast.
    pub(super) fn expand_and_broadcast(&mut self) -> Option<()> {
        let value = self.choose(|of, _| {
            matches!(of, Type::Tensor { .. })
                && of.shape().len() < 5
                && count(of.shape()) < 1 << MOST_ELEMENTS_LOG2
        })?;
        let shape = self.shape_of(value);
        let axis = self.rng.usize(0..=shape.len());
        let mut wider = shape.clone();
        wider.insert(axis, 1);
        let room = MOST_ELEMENTS_LOG2 - count(&shape).trailing_zeros();
        let extent = 1u32 << self.rng.u32(0..=room.min(5));
        let mut broadcast = wider.clone();
        broadcast[axis] = extent;
        let layout = self.layout(&broadcast);
        let sliced = transfer::slice(&layout, axis as i64).ok()?;
        let value = self.in_layout(value, &Rc::new(sliced));
        let (element, facts) = (self.element_of(value), self.facts[value]);
        let of = self.tensor(&wider, element, &layout);
        let template = format!("$r = tt.expand_dims $0 {{axis = {axis} : i32}} : $t0 -> $T0");
        let expanded = self.add(&template, &[value], of, facts);
        if extent > 1 {
            let of = self.tensor(&broadcast, element, &layout);
            self.add("$r = tt.broadcast $0 : $t0 -> $T0", &[expanded], of, facts);
        }
        Some(())
    }

    /// Concatenates two tensors, whose order is not defined, and computes a value that does not depend on it.
    pub(super) fn cat(&mut self) -> Option<()> {
        let value = self.choose(|of, _| {
            of.is_numbers()
                && of.shape().len() == 1
                && of.element().number().is_some_and(Number::is_integer)
                && of.shape()[0] < 1 << MOST_ELEMENTS_LOG2
        })?;
        let number = self.element_of(value).number()?;
        let layout = self.layout_of(value)?;
        let shape = self.shape_of(value);
        let other = self.like(&shape, number);
        let other = self.in_layout(other, &layout);
        let longer = [shape[0] * 2];
        let result = self.layout(&longer);
        let of = self.tensor(&longer, number, &result);
        let facts = self.facts[value].join(self.facts[other]);
        let joined = self.add(
            "$r = tt.cat $0, $1 : $t0 -> $T0",
            &[value, other],
            of,
            facts,
        );
        self.scope.retain(|&one| one != joined);
        let alone = Type::Scalar(number.into());
        let name = number.name();
        let template = format!(
            "$r = \"tt.reduce\"($0) <{{axis = 0 : i32}}> ({{\n^bb0(%a: {name}, %b: {name}):\n  \
             %r = arith.addi %a, %b : {name}\n  tt.reduce.return %r : {name}\n}}) : ($t0) -> $T0"
        );
        self.add(&template, &[joined], alone, crate::facts::Facts::BITS);
        Some(())
    }
}
