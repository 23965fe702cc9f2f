//! Makes a failing program smaller.
//!
//! A step removes an operation with an effect, or cuts the program at an operation, whose results are then loaded
//! from memory or, where an operand has the same type, replaced by that operand. Operations that become unused are
//! removed as well. A step is kept if the program still fails in the same way; steps are tried from the last
//! operation to the first, repeatedly, until none is kept.

use std::collections::HashSet;

use crate::case::Case;
use crate::check::{Verdict, check};
use crate::element::{Data, Element};
use crate::program::{Buffer, Node, Program, Region, Speller, Type, Value};

/// The smallest program found that fails with the same kind as `program`.
#[must_use]
pub fn shrink(program: &Program, kind: &str, speller: &Speller, mut budget: usize) -> Program {
    let mut best = program.clone();
    loop {
        let mut improved = false;
        let mut index = best.size();
        while index > 0 {
            index -= 1;
            for step in [Step::Remove, Step::Forward, Step::Inline, Step::Load] {
                if budget == 0 {
                    return best;
                }
                let Some(smaller) = apply(&best, index, step) else {
                    continue;
                };
                budget -= 1;
                if fails(&smaller, kind, speller) {
                    index = index.min(smaller.size());
                    best = smaller;
                    improved = true;
                    break;
                }
            }
        }
        if !improved {
            return best;
        }
    }
}

fn fails(program: &Program, kind: &str, speller: &Speller) -> bool {
    matches!(
        check(&Case::of(program, speller)),
        Verdict::Failed(failure) if failure.kind() == kind
    )
}

/// A way to remove an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Remove it: it has no results.
    Remove,
    /// Use operands as results.
    Forward,
    /// Replace the operation by one execution of its region.
    Inline,
    /// Load the results.
    Load,
}

/// The program without operation `index`, if that makes it smaller.
fn apply(program: &Program, index: usize, step: Step) -> Option<Program> {
    let mut changed = program.clone();
    let mut editor = Editor {
        index,
        step,
        types: &program.types,
        buffers: std::mem::take(&mut changed.buffers),
        renamed: Vec::new(),
        done: false,
    };
    editor.nodes(&mut changed.body);
    if !editor.done {
        return None;
    }
    let renamed = std::mem::take(&mut editor.renamed);
    changed.buffers = editor.buffers;
    rename(&mut changed.body, &renamed);
    drop_unused(&mut changed.body);
    let weight = |program: &Program| {
        let mut text = 0;
        crate::program::visit(&program.body, &mut |node| text += node.template.len());
        (program.size(), text)
    };
    (weight(&changed) < weight(program)).then_some(changed)
}

struct Editor<'a> {
    index: usize,
    step: Step,
    types: &'a [Type],
    buffers: Vec<Buffer>,
    renamed: Vec<(Value, Value)>,
    done: bool,
}

impl Editor<'_> {
    fn nodes(&mut self, nodes: &mut Vec<Node>) {
        let mut place = 0;
        while place < nodes.len() && !self.done {
            if self.index == 0 {
                let node = nodes[place].clone();
                if let Some(replacement) = self.replacement(&node) {
                    nodes.splice(place..=place, replacement);
                    self.done = true;
                }
                self.index = usize::MAX;
                return;
            }
            self.index -= 1;
            for region in &mut nodes[place].regions {
                self.nodes(&mut region.body);
                if self.done || self.index == usize::MAX {
                    return;
                }
            }
            place += 1;
        }
    }

    fn replacement(&mut self, node: &Node) -> Option<Vec<Node>> {
        match self.step {
            Step::Remove => node.results.is_empty().then(Vec::new),
            Step::Forward => {
                if node.results.is_empty() {
                    return None;
                }
                for &result in &node.results {
                    let same = |&&operand: &&Value| self.types[operand] == self.types[result];
                    let operand = *node.operands.iter().find(same)?;
                    self.renamed.push((result, operand));
                }
                Some(Vec::new())
            }
            Step::Inline => {
                let region: &Region = node.regions.first()?;
                let inits = region.arguments.iter().zip(&node.operands);
                self.renamed
                    .extend(inits.map(|(&argument, &operand)| (argument, operand)));
                let results = node.results.iter().zip(&region.yields);
                self.renamed
                    .extend(results.map(|(&result, &value)| (result, value)));
                Some(region.body.clone())
            }
            Step::Load => {
                if node.results.is_empty() || (node.operands.is_empty() && node.regions.is_empty())
                {
                    return None;
                }
                node.results
                    .iter()
                    .map(|&result| self.loaded(result))
                    .collect()
            }
        }
    }

    /// A load that replaces a value.
    fn loaded(&mut self, result: Value) -> Option<Node> {
        let of = &self.types[result];
        let Element::Number(number) = of.element() else {
            return None;
        };
        if number.bits() < 8 {
            return None;
        }
        let count: u32 = of.shape().iter().product();
        let template = match of {
            Type::Memory { .. } => return None,
            Type::Scalar(_) => "$r = tt.load $b : !tt.ptr<$p>".to_owned(),
            Type::Tensor { shape, .. } => {
                // The range needs its own layout, which the result determines only if it has one dimension.
                if shape.len() != 1 {
                    return None;
                }
                format!(
                    "%at$u = tt.make_range {{end = {count} : i32, start = 0 : i32}} : \
                     tensor<{count}xi32, $L{result}>\n\
                     %base$u = tt.splat $b : !tt.ptr<$p> -> tensor<{count}x!tt.ptr<$p>, $L{result}>\n\
                     %ptr$u = tt.addptr %base$u, %at$u : tensor<{count}x!tt.ptr<$p>, $L{result}>, \
                     tensor<{count}xi32, $L{result}>\n\
                     $r = tt.load %ptr$u : tensor<{count}x!tt.ptr<$p>, $L{result}>"
                )
            }
        };
        self.buffers.push(Buffer {
            number,
            length: count as usize,
            data: Data::Small(3, result as u64),
        });
        Some(Node {
            template,
            operands: Vec::new(),
            results: vec![result],
            buffer: Some(self.buffers.len() - 1),
            has_effect: false,
            regions: Vec::new(),
        })
    }
}

fn rename(nodes: &mut [Node], renamed: &[(Value, Value)]) {
    let of = |mut value: Value| {
        // The replacement of a value may be replaced itself.
        for _ in 0..=renamed.len() {
            match renamed.iter().find(|(from, _)| *from == value) {
                Some(&(_, to)) if to != value => value = to,
                _ => break,
            }
        }
        value
    };
    for node in nodes {
        node.operands.iter_mut().for_each(|one| *one = of(*one));
        for region in &mut node.regions {
            region.yields.iter_mut().for_each(|one| *one = of(*one));
            rename(&mut region.body, renamed);
        }
    }
}

/// Drops operations without an effect whose results nothing uses.
fn drop_unused(nodes: &mut Vec<Node>) {
    loop {
        let mut used = HashSet::new();
        crate::program::visit(nodes, &mut |node| {
            used.extend(&node.operands);
            for region in &node.regions {
                used.extend(&region.yields);
            }
        });
        let mut dropped = false;
        retain(nodes, &used, &mut dropped);
        if !dropped {
            return;
        }
    }
}

fn retain(nodes: &mut Vec<Node>, used: &HashSet<Value>, dropped: &mut bool) {
    nodes.retain(|node| {
        let keep = node.has_effect || node.results.iter().any(|result| used.contains(result));
        *dropped |= !keep;
        keep
    });
    for node in nodes {
        for region in &mut node.regions {
            retain(&mut region.body, used, dropped);
        }
    }
}
