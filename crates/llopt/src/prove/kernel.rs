//! The text of the kernels in which one op is proven.

use std::fmt::Write as _;

use llopt_dialects::tables::module::{NUM_CTAS, NUM_WARPS};
use llopt_dialects::tables::types::{MemDesc, RankedTensor};
use llopt_dialects::{amdg, arith, tt, ttg, ttng};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use llopt_plan::request::{CONVERSION_PLAN, GATHER_PLAN, request_of};
use llopt_target::Target;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::fill::{FINGERPRINT_BITS, Fill, contents};
use super::product::Product;
use super::tensor::{Element, Kind, Tensor, extents};

/// Whether an op moves elements, in registers or in shared memory, or multiplies matrices.
pub(super) fn moves_data(op: OperationRef<'_, '_>) -> bool {
    ttg::ConvertLayoutOp::of(op).is_some()
        || tt::ReshapeOp::of(op).is_some_and(|reshape| !reshape.allow_reorder())
        || tt::TransOp::of(op).is_some()
        || tt::JoinOp::of(op).is_some()
        || tt::SplitOp::of(op).is_some()
        || tt::ReduceOp::of(op).is_some()
        || tt::ScanOp::of(op).is_some()
        || tt::GatherOp::of(op).is_some()
        || ttg::LocalLoadOp::of(op).is_some()
        || ttg::LocalStoreOp::of(op).is_some()
        || ttg::LocalAllocOp::of(op).is_some_and(|alloc| alloc.src().is_some())
        || amdg::LocalLoadPackedTransposedOp::of(op).is_some()
        || tt::DotOp::of(op).is_some()
        || tt::DotScaledOp::of(op).is_some()
        || ttng::WarpGroupDotOp::of(op).is_some()
}

/// The kernels for one op, and their inputs.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// Stores the results.
    pub(super) telling: String,
    /// Compares the results in every register of every thread.
    pub(super) checking: String,
    inputs: Vec<(u32, u64, Fill)>,
    outputs: Vec<(u32, u64)>,
}

impl Kernel {
    /// The kernels for an op that [moves data](moves_data).
    pub(super) fn of(op: OperationRef<'_, '_>, target: Target) -> Result<Self, String> {
        let mut maker = Maker::new(op, target)?;
        maker.op(op)?;
        Ok(maker.finish())
    }

    /// The contents of the input buffers, for each run.
    pub(super) fn inputs(&self) -> Vec<Vec<Vec<u8>>> {
        let runs = self.inputs.iter().map(|&(bits, count, fill)| match fill {
            Fill::Tags => count
                .next_power_of_two()
                .trailing_zeros()
                .div_ceil(bits)
                .max(1),
            Fill::Random => FINGERPRINT_BITS.div_ceil(bits),
            Fill::Indices(end) => end.next_power_of_two().trailing_zeros() + 4,
            Fill::Numbers { runs, .. } | Fill::Codes { runs, .. } => runs,
        });
        // Digits of tags and patterns of indices are combined in all pairs.
        let of = |is: fn(Fill) -> bool| {
            let all = self.inputs.iter().zip(runs.clone());
            all.filter(|((_, _, fill), _)| is(*fill))
                .map(|(_, runs)| runs)
                .max()
                .unwrap_or(1)
        };
        let digits = of(|fill| fill != Fill::Random && !matches!(fill, Fill::Indices(_)))
            .max(of(|fill| fill == Fill::Random));
        let patterns = of(|fill| matches!(fill, Fill::Indices(_)));
        let mut all = Vec::new();
        for pattern in 0..patterns {
            for digit in 0..digits {
                let buffers = self.inputs.iter().enumerate();
                all.push(
                    buffers
                        .map(|(i, &(bits, count, fill))| {
                            contents(bits, count, fill, digit, pattern, i as u64)
                        })
                        .collect(),
                );
            }
        }
        all
    }

    /// Buffers for the results.
    pub(super) fn empty_outputs(&self) -> Vec<Vec<u8>> {
        let bytes =
            |&(bits, count): &(u32, u64)| vec![0; (count * u64::from(bits.max(8) / 8)) as usize];
        self.outputs.iter().map(bytes).collect()
    }
}

/// A kernel being written.
struct Maker {
    target: Target,
    warps: u32,
    blocks: u32,
    attributes: String,
    body: String,
    names: usize,
    inputs: Vec<(u32, u64, Fill)>,
    results: Vec<(String, Tensor)>,
}

/// The names and the types of an op's operands.
#[derive(Default)]
struct Operands {
    names: Vec<String>,
    types: Vec<String>,
}

impl Operands {
    fn push(&mut self, name: String, r#type: String) {
        self.names.push(name);
        self.types.push(r#type);
    }
}

/// Whether a product adds to this operand: the constant if it is one, otherwise true.
fn is_true_or_unknown(value: Value<'_, '_>) -> bool {
    let known = arith::ConstantOp::defining(value);
    known.is_none_or(|constant| constant.value().and_then(AttributeExt::as_bits) != Some(0))
}

impl Maker {
    fn new(op: OperationRef<'_, '_>, target: Target) -> Result<Self, String> {
        let mut module = op;
        while let Some(parent) = module.parent_op() {
            module = parent;
        }
        let number = |name: &str, default: u64| {
            module
                .attr(name)
                .and_then(AttributeExt::as_bits)
                .unwrap_or(default)
        };
        let warps = number(NUM_WARPS, 4);
        let blocks = number(NUM_CTAS, 1);
        // The requested plans decide which code is proven.
        let requests: String = [CONVERSION_PLAN, GATHER_PLAN]
            .into_iter()
            .filter_map(|name| request_of(op, name).map(|plan| format!(", {name} = {plan:?}")))
            .collect();
        Ok(Self {
            target,
            warps: warps as u32,
            blocks: blocks as u32,
            attributes: format!(
                "\"ttg.num-ctas\" = {blocks} : i32, \"ttg.num-warps\" = {warps} : i32, \
                 ttg.target = \"{target}\", \"ttg.threads-per-warp\" = {} : i32{requests}",
                target.warp_size()
            ),
            body: String::new(),
            names: 0,
            inputs: Vec::new(),
            results: Vec::new(),
        })
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    fn line(&mut self, text: &str) {
        self.body.push_str("    ");
        self.body.push_str(text);
        self.body.push('\n');
    }

    /// `%v = <text>`
    fn make(&mut self, text: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = {text}"));
        name
    }

    /// The op, with its operands loaded and its results recorded.
    fn op(&mut self, op: OperationRef<'_, '_>) -> Result<(), String> {
        let is_fold = tt::ReduceOp::of(op).is_some() || tt::ScanOp::of(op).is_some();
        if let Some(alloc) = ttg::LocalAllocOp::of(op) {
            let buffer = self.store(alloc.src(), alloc.result())?;
            return self.read_back(&buffer, alloc.result());
        }
        if let Some(store) = ttg::LocalStoreOp::of(op) {
            let buffer = self.store(Some(store.src()), store.dst())?;
            return self.read_back(&buffer, store.dst());
        }
        let group_product = ttng::WarpGroupDotOp::of(op);
        let operands = self.operands(op, is_fold)?;
        if group_product.is_some() {
            // The unit reads the data that threads have stored through another proxy.
            self.line("ttng.fence_async_shared {bCluster = false}");
        }
        let mut results = self.results_of(op, is_fold)?;
        let attributes: Vec<String> = op
            .attrs()
            .into_iter()
            .filter(|(name, _)| {
                !name.contains('.')
                    && (*name != "operandSegmentSizes" || tt::DotScaledOp::of(op).is_some())
            })
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let region = if is_fold {
            addition(op.name_str(), &results)
        } else {
            String::new()
        };
        let text_of = |(_, tensor): &(String, Tensor)| match tensor.encoding.is_empty() {
            true => tensor.element.name.clone(),
            false => tensor.text(),
        };
        let names: Vec<String> = results.iter().map(|(name, _)| name.clone()).collect();
        let shown: Vec<String> = results.iter().map(text_of).collect();
        let line = format!(
            "{} = \"{}\"({}) <{{{}}}>{region} : ({}) -> ({})",
            names.join(", "),
            op.name_str(),
            operands.names.join(", "),
            attributes.join(", "),
            operands.types.join(", "),
            shown.join(", ")
        );
        self.line(&line);
        if group_product.is_some_and(|dot| dot.is_async()) {
            for (name, tensor) in &mut results {
                let of = tensor.text();
                *name = self.make(&format!(
                    "ttng.warp_group_dot_wait {name} {{pendings = 0 : i32}} : {of}"
                ));
            }
        }
        self.results = results;
        Ok(())
    }

    /// The operands of the op: tensors that are loaded, and buffers.
    fn operands(&mut self, op: OperationRef<'_, '_>, is_fold: bool) -> Result<Operands, String> {
        let axis_extent = tt::GatherOp::of(op).and_then(|gather| {
            let shape = RankedTensor::of(gather.src().r#type())?.shape();
            extents(&shape)
                .get(usize::try_from(gather.axis()).ok()?)
                .copied()
        });
        let token = ttg::LocalLoadOp::of(op)
            .and_then(|load| load.token())
            .or_else(|| amdg::LocalLoadPackedTransposedOp::of(op).and_then(|load| load.token()));
        let product = Product::of(op).transpose()?;
        let group_product = ttng::WarpGroupDotOp::of(op);
        let mut operands = Operands::default();
        for (i, value) in op.operand_values().enumerate() {
            let of_product = product.as_ref().and_then(|product| product.fill(i));
            if MemDesc::of(value.r#type()).is_some() {
                let (buffer, text) = self.views(value, Some(of_product.unwrap_or(Fill::Tags)))?;
                operands.push(buffer, text);
                continue;
            }
            if group_product.and_then(|dot| dot.use_c()) == Some(value) {
                let adds = is_true_or_unknown(value);
                let adds = self.make(&format!("arith.constant {adds}"));
                operands.push(adds, "i1".to_owned());
                continue;
            }
            // A token means that a copy is complete; here the buffer was stored to.
            if Some(value) == token {
                continue;
            }
            let mut tensor = Tensor::of(value.r#type())?;
            if is_fold {
                tensor.element = Element::integer(tensor.element.bits);
            }
            let fill = match (is_fold, axis_extent) {
                (true, _) => Fill::Random,
                (false, Some(extent)) if i == 1 => Fill::Indices(extent),
                _ => of_product.unwrap_or(Fill::Tags),
            };
            operands.push(self.load(&tensor, fill), tensor.text());
        }
        Ok(operands)
    }

    /// A name for each result of the op, and its tensor; a scalar has no shape.
    fn results_of(
        &mut self,
        op: OperationRef<'_, '_>,
        is_fold: bool,
    ) -> Result<Vec<(String, Tensor)>, String> {
        let mut results = Vec::new();
        for of in op.result_types() {
            let mut tensor = if RankedTensor::of(of).is_some() {
                Tensor::of(of)?
            } else {
                // A scalar, which every thread has.
                Tensor {
                    shape: Vec::new(),
                    element: Element::of(of)?,
                    encoding: String::new(),
                }
            };
            if is_fold {
                tensor.element = Element::integer(tensor.element.bits);
            }
            results.push((self.name(), tensor));
        }
        Ok(results)
    }

    /// A buffer to which the op's own store writes `source`.
    fn store(
        &mut self,
        source: Option<Value<'_, '_>>,
        buffer: Value<'_, '_>,
    ) -> Result<String, String> {
        let source = source.ok_or_else(|| "nothing that is stored".to_owned())?;
        let tensor = Tensor::of(source.r#type())?;
        let (buffer, text) = self.views(buffer, None)?;
        let value = self.load(&tensor, Fill::Tags);
        self.line(&format!(
            "ttg.local_store {value}, {buffer} : {} -> {text}",
            tensor.text()
        ));
        Ok(buffer)
    }

    /// Loads a buffer in a plain layout as the result.
    fn read_back(&mut self, buffer: &str, of: Value<'_, '_>) -> Result<(), String> {
        let plain = self.plain(of.r#type())?;
        let text = mutable(of.r#type())?;
        let name = self.make(&format!(
            "ttg.local_load {buffer} : {text} -> {}",
            plain.text()
        ));
        self.results = vec![(name, plain)];
        Ok(())
    }

    fn plain(&self, buffer: Type<'_>) -> Result<Tensor, String> {
        Tensor::plain(buffer, self.target, self.warps, self.blocks)
    }

    /// The view of a value, of a separate buffer, which is filled first if requested.
    fn views(&mut self, of: Value<'_, '_>, fill: Option<Fill>) -> Result<(String, String), String> {
        let text = mutable(of.r#type())?;
        let view = of.defining_op().filter(|op| {
            ttg::MemDescSubsliceOp::of(*op).is_some()
                || ttg::MemDescTransOp::of(*op).is_some()
                || ttg::MemDescReshapeOp::of(*op).is_some()
                || ttg::MemDescIndexOp::of(*op).is_some()
        });
        if let Some(op) = view {
            let source = op.operand_value(0).ok_or("a view of nothing")?;
            if ttg::MemDescIndexOp::of(op).is_none() {
                let (buffer, from) = self.views(source, fill)?;
                let attributes: Vec<String> = op
                    .attrs()
                    .into_iter()
                    .filter(|(name, _)| !name.contains('.'))
                    .map(|(name, value)| format!("{name} = {value}"))
                    .collect();
                let name = self.make(&format!(
                    "\"{}\"({buffer}) <{{{}}}> : ({from}) -> {text}",
                    op.name_str(),
                    attributes.join(", ")
                ));
                return Ok((name, text));
            }
        }
        let memory_type = MemDesc::of(of.r#type()).ok_or("no buffer")?;
        if !memory_type.alloc_shape().ends_with(&memory_type.shape()) {
            return Err("where in its buffer the view begins is not known here".to_owned());
        }
        let buffer = self.make(&format!("ttg.local_alloc : () -> {text}"));
        if let Some(fill) = fill {
            let plain = self.plain(of.r#type())?;
            let value = self.load(&plain, fill);
            self.line(&format!(
                "ttg.local_store {value}, {buffer} : {} -> {text}",
                plain.text()
            ));
        }
        Ok((buffer, text))
    }

    /// A tensor loaded from the next input buffer.
    fn load(&mut self, tensor: &Tensor, fill: Fill) -> String {
        let buffer = self.inputs.len();
        self.inputs
            .push((tensor.element.bits, tensor.count(), fill));
        let loaded = self.access(tensor, &format!("%in{buffer}"), None);
        self.decode(tensor, &loaded)
    }

    /// Converts a value of the integer type in memory to the type that it represents.
    fn decode(&mut self, tensor: &Tensor, value: &str) -> String {
        let (from, to) = (tensor.with(&tensor.element.in_memory()), tensor.text());
        match tensor.element.kind {
            Kind::Integer if tensor.element.bits < 8 => {
                self.make(&format!("arith.trunci {value} : {from} to {to}"))
            }
            Kind::Integer => value.to_owned(),
            Kind::Real => self.make(&format!("tt.bitcast {value} : {from} -> {to}")),
            Kind::Pointer => self.make(&format!("tt.int_to_ptr {value} : {from} -> {to}")),
        }
    }

    /// Converts a value to the integer type that represents it in memory.
    fn encode(&mut self, tensor: &Tensor, value: &str) -> String {
        let is_scalar = tensor.encoding.is_empty();
        let from = if is_scalar {
            tensor.element.name.clone()
        } else {
            tensor.text()
        };
        let to = if is_scalar {
            tensor.element.in_memory()
        } else {
            tensor.with(&tensor.element.in_memory())
        };
        match tensor.element.kind {
            Kind::Integer if tensor.element.bits < 8 => {
                self.make(&format!("arith.extui {value} : {from} to {to}"))
            }
            Kind::Integer => value.to_owned(),
            Kind::Real => self.make(&format!("tt.bitcast {value} : {from} -> {to}")),
            Kind::Pointer => self.make(&format!("tt.ptr_to_int {value} : {from} -> {to}")),
        }
    }

    /// Loads, or stores `value`, by the elements' numbers.
    fn access(&mut self, tensor: &Tensor, pointer: &str, value: Option<&str>) -> String {
        let memory = tensor.element.in_memory();
        if tensor.encoding.is_empty() {
            return match value {
                None => self.make(&format!("tt.load {pointer} : !tt.ptr<{memory}>")),
                Some(value) => {
                    self.line(&format!("tt.store {pointer}, {value} : !tt.ptr<{memory}>"));
                    String::new()
                }
            };
        }
        let number = self.numbers(tensor);
        let (index, pointers) = (
            tensor.with("i32"),
            tensor.with(&format!("!tt.ptr<{memory}>")),
        );
        let base = self.make(&format!(
            "tt.splat {pointer} : !tt.ptr<{memory}> -> {pointers}"
        ));
        let at = self.make(&format!("tt.addptr {base}, {number} : {pointers}, {index}"));
        match value {
            None => self.make(&format!("tt.load {at} : {pointers}")),
            Some(value) => {
                self.line(&format!("tt.store {at}, {value} : {pointers}"));
                String::new()
            }
        }
    }

    /// The row-major number of each element: the sum of coordinates times their strides.
    fn numbers(&mut self, tensor: &Tensor) -> String {
        let full = tensor.with("i32");
        let mut stride = tensor.count();
        let mut sum: Option<String> = None;
        for (dim, &extent) in tensor.shape.iter().enumerate() {
            stride /= extent.max(1);
            let mut steps = vec![(tensor.encoding.clone(), (0..tensor.shape.len()).collect())];
            let mut kept: Vec<usize> = (0..tensor.shape.len()).collect();
            for axis in (0..tensor.shape.len()).rev().filter(|&axis| axis != dim) {
                let parent = steps[steps.len() - 1].0.clone();
                kept.retain(|&one| one != axis);
                steps.push((
                    format!("#ttg.slice<{{dim = {axis}, parent = {parent}}}>"),
                    kept.clone(),
                ));
            }
            let of = |(encoding, kept): &(String, Vec<usize>)| -> String {
                let extents: String = kept
                    .iter()
                    .map(|&one| {
                        if one == dim {
                            format!("{extent}x")
                        } else {
                            "1x".to_owned()
                        }
                    })
                    .collect();
                format!("tensor<{extents}i32, {encoding}>")
            };
            let mut at = of(&steps[steps.len() - 1]);
            let mut name = self.make(&format!(
                "tt.make_range {{end = {extent} : i32, start = 0 : i32}} : {at}"
            ));
            let axes = (0..tensor.shape.len()).filter(|&axis| axis != dim);
            for (i, axis) in axes.enumerate() {
                let wider = of(&steps[steps.len() - 2 - i]);
                name = self.make(&format!(
                    "tt.expand_dims {name} {{axis = {axis} : i32}} : {at} -> {wider}"
                ));
                at = wider;
            }
            let factor = self.make(&format!("arith.constant dense<{stride}> : {at}"));
            name = self.make(&format!("arith.muli {name}, {factor} : {at}"));
            if at != full {
                name = self.make(&format!("tt.broadcast {name} : {at} -> {full}"));
            }
            sum = Some(match sum {
                None => name,
                Some(before) => self.make(&format!("arith.addi {before}, {name} : {full}")),
            });
        }
        sum.unwrap_or_default()
    }

    fn finish(mut self) -> Kernel {
        let results = std::mem::take(&mut self.results);
        let common = (std::mem::take(&mut self.body), self.names);
        let mut telling = String::new();
        let mut checking = String::new();
        for is_check in [false, true] {
            (self.body, self.names) = common.clone();
            for (i, (name, tensor)) in results.iter().enumerate() {
                let value = self.encode(tensor, name);
                let pointer = format!("%out{i}");
                if is_check {
                    self.check(tensor, &value, &pointer);
                } else {
                    self.access(tensor, &pointer, Some(&value));
                }
            }
            let text = self.text(&results);
            if is_check {
                checking = text;
            } else {
                telling = text;
            }
        }
        Kernel {
            telling,
            checking,
            inputs: self.inputs,
            outputs: results
                .iter()
                .map(|(_, tensor)| (tensor.element.bits, tensor.count()))
                .collect(),
        }
    }

    /// Every thread asserts the values of its registers.
    fn check(&mut self, tensor: &Tensor, value: &str, pointer: &str) {
        let expected = self.access(tensor, pointer, None);
        let memory = tensor.element.in_memory();
        let (of, condition) = if tensor.encoding.is_empty() {
            (memory, "i1".to_owned())
        } else {
            (tensor.with(&memory), tensor.with("i1"))
        };
        let same = self.make(&format!("arith.cmpi eq, {value}, {expected} : {of}"));
        self.line(&format!(
            "tt.assert {same}, \"an element is not where it belongs\" : {condition}"
        ));
    }

    fn text(&self, results: &[(String, Tensor)]) -> String {
        let inputs = self.inputs.iter().enumerate();
        let mut parameters: Vec<String> = inputs
            .map(|(i, (bits, _, _))| parameter(&format!("in{i}"), (*bits).max(8)))
            .collect();
        for (i, (_, tensor)) in results.iter().enumerate() {
            parameters.push(parameter(&format!("out{i}"), tensor.element.memory_bits()));
        }
        let mut text = String::new();
        let _ = write!(
            text,
            "module attributes {{{}}} {{\n  tt.func public @proof({}) {{\n{}    tt.return\n  }}\n}}\n",
            self.attributes,
            parameters.join(", "),
            self.body
        );
        text
    }
}

fn parameter(name: &str, bits: u32) -> String {
    format!("%{name}: !tt.ptr<i{bits}> {{tt.divisibility = 16 : i32}}")
}

/// A region that adds integers.
fn addition(op: &str, results: &[(String, Tensor)]) -> String {
    let named = |prefix: &str| -> Vec<String> {
        let all = results.iter().enumerate();
        all.map(|(i, (_, tensor))| format!("%{prefix}{i}: {}", tensor.element.name))
            .collect()
    };
    let mut arguments = named("a");
    arguments.extend(named("b"));
    let mut lines = String::new();
    for (i, (_, tensor)) in results.iter().enumerate() {
        let _ = writeln!(
            lines,
            "      %r{i} = arith.addi %a{i}, %b{i} : {}",
            tensor.element.name
        );
    }
    let returned: Vec<String> = (0..results.len()).map(|i| format!("%r{i}")).collect();
    let types: Vec<String> = results
        .iter()
        .map(|(_, tensor)| tensor.element.name.clone())
        .collect();
    format!(
        " ({{\n    ^bb0({}):\n{lines}      {op}.return {} : {}\n    }})",
        arguments.join(", "),
        returned.join(", "),
        types.join(", ")
    )
}

/// The type of a view that can be stored to.
fn mutable(of: Type<'_>) -> Result<String, String> {
    let memory = MemDesc::of(of).ok_or_else(|| format!("a value of type {of}"))?;
    let encoding = memory.encoding().ok_or("a buffer without a layout")?;
    let list = |shape: &[i64]| -> String {
        let all: Vec<String> = shape.iter().map(ToString::to_string).collect();
        all.join("x")
    };
    let (shape, whole) = (memory.shape(), memory.alloc_shape());
    let mut text = format!(
        "!ttg.memdesc<{}x{}, {encoding}, #ttg.shared_memory, mutable",
        list(&shape),
        memory.element()
    );
    if whole != shape && !whole.ends_with(&shape) {
        let _ = write!(text, ", {}", list(&whole));
    }
    text.push('>');
    Ok(text)
}
