//! Tensor descriptors that control flow hands on, as their parts.
//!
//! A descriptor is a record: the base address of a tensor, its extents and strides, and whether elements outside are
//! NaN. Only `tt.make_tensor_descriptor` makes one, so where a descriptor is known, its parts are. Where control flow
//! joins several (a block argument, the result of a loop or a choice, `arith.select`, a parameter), the join of the
//! records is the record of the joins of their parts. So the parts take the place of the descriptor there, and a new
//! one is made of them:
//!
//! ```text
//!   %x = scf.if %c -> tensordesc          %b = scf.if %c -> ptr
//!     scf.yield %of_p                       scf.yield %p
//!   else                                  else
//!     scf.yield %of_q                       scf.yield %q
//!   tt.descriptor_load %x                 %x = tt.make_tensor_descriptor %b, [%n], [%s]
//!                                         tt.descriptor_load %x
//! ```
//!
//! # Parts that do not differ
//!
//! A join of values is one of them, v, if only v and the join itself come in; then v dominates the join, as it is
//! defined on every way there (Braun et al., "Simple and Efficient Construction of Static Single Assignment Form",
//! 2013). So only parts that do differ are handed on. [`joins`] finds them by the optimistic iteration for such
//! equations: at first no join has a part of its own, and each takes the first that reaches it; where another one
//! comes in, or one that has no name there (from a region that has ended, from another function), the join gets a
//! part of its own, and the iteration begins again, until all agree. Every join that gets one needs it, since two parts
//! met there that are not copies of one.
//! Constants are made anew where they are needed.
//!
//! # Padding
//!
//! `tt.make_tensor_descriptor` knows the padding when the program is compiled. If it is known only when the program
//! runs, two descriptors are made, which differ in it, and one is selected. Elements that are integers are zero in
//! both, so that there is one.
//!
//! # Parameters
//!
//! A parameter of a kernel becomes the parameters that Triton's launchers pass where a descriptor has no encoding:
//! base, extents (64 bits), strides, padding, in this order. What Triton's frontend appends behind a descriptor,
//! extents of 32 bits and strides, stays; if it is there, the extents are taken from it, as the program computes with
//! these. They are below 2^31 in any case. `tt.make_tensor_descriptor`, and Triton's `TensorDescriptor` before a launch,
//! ask for an address and strides that are multiples of 16 bytes, and for a last stride of one: this is promised of the
//! parameters, and the last stride is not read.
//!
//! # Limits
//!
//! A descriptor that some other op makes, such as one that an object in memory contains, or that is handed on in a way
//! of which no edges are known (`cf.switch`, partitions of warps), is reported.

mod joins;
mod part;

use std::collections::HashMap;

use llopt_dialects::arith::{ExtSIOp, SelectOp, TruncIOp};
use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::TensorDesc;
use llopt_dialects::tt::{MakeTensorDescOp, PaddingOption};
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, TypeExt, ValueExt, Walk};
use llopt_mlir::ir::{attr, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::operation::OperationBuilder;
use melior::ir::r#type::IntegerType;
use melior::ir::{
    Attribute, BlockRef, Identifier, Location, OperationRef, Region, Type, Value, ValueLike,
};

pub use joins::Opaque;
use joins::{Feed, Joins, Origin, descriptor_of};
use part::{Known, Part};

use crate::layouts::retype_function;
use crate::loops::builder::{Arithmetic, IN_CONTEXT};

/// The attributes of a function's arguments, and the segments of an op's operands.
const ARGUMENTS: &str = "arg_attrs";
const SEGMENTS: &str = "operandSegmentSizes";

/// The flag of `arith.trunci` for numbers that fit.
const FITS: &str = "#arith.overflow<nsw>";

/// The number that was truncated to this one, if it is known to fit.
pub(crate) fn before_truncation<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
    let truncated = TruncIOp::defining(value)?;
    let fits = Attribute::parse(truncated.operation().ctx(), FITS);
    (truncated.overflow_flags() == fits).then(|| truncated.r#in())
}

/// The extents that launchers pass behind a parameter that is a descriptor, before its strides (Triton 3.6,
/// `make_tensordesc_arg` of `backends/nvidia/driver.py`).
pub(crate) fn passed_extents<'c: 'a, 'a>(parameter: Value<'c, 'a>) -> Option<Vec<Value<'c, 'a>>> {
    let rank = descriptor_of(parameter)?.block()?.rank();
    let (block, number) = parameter.argument_of()?;
    let behind = block.argument_values().skip(number + 1).take(2 * rank);
    let behind: Vec<Value> = behind.collect();
    let width = |position: usize| if position < rank { 32 } else { 64 };
    let mut widths = behind.iter().map(|value| value.r#type().bit_width());
    let are_passed = behind.len() == 2 * rank
        && (0..2 * rank).all(|position| widths.next() == Some(Some(width(position))));
    are_passed.then(|| behind[..rank].to_vec())
}

/// Makes every descriptor below an op anew where control flow hands it on or a function begins.
///
/// # Errors
/// The parts of one are not known. Nothing has changed then.
pub(crate) fn decompose<'c: 'a, 'a>(root: OperationRef<'c, 'a>) -> Result<(), Opaque<'c, 'a>> {
    let joins = Joins::of(root)?;
    if joins.all.is_empty() {
        return Ok(());
    }
    let mut rewriting = Rewriting {
        rewriter: Rewriter::new(root.ctx()),
        joins,
        own: HashMap::new(),
        anchors: HashMap::new(),
        rebuilt: Vec::new(),
    };
    let mut functions = Vec::new();
    let mut blocks = Vec::new();
    let mut makers_of_results = Vec::new();
    root.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function {
            functions.push(operation);
        }
        for block in operation.region_refs().flat_map(RegionExt::blocks) {
            if block
                .argument_values()
                .any(|of| descriptor_of(of).is_some())
            {
                blocks.push(block);
            }
        }
        let is_join = |value| rewriting.joins.join(value).is_some();
        if SelectOp::of(operation).is_none() && operation.result_values().any(is_join) {
            makers_of_results.push(operation);
        }
    });
    for &function in &functions {
        promise(function, &rewriting.joins);
    }
    for &block in &blocks {
        rewriting.add_arguments(block);
    }
    for operation in makers_of_results {
        rewriting.rebuild(operation);
    }
    rewriting.hand_on();
    rewriting.make_anew();
    rewriting.drop_old(&blocks);
    functions.into_iter().for_each(retype_function);
    Ok(())
}

/// Writes what is known of the parameters that take the place of descriptors.
fn promise<'c: 'a, 'a>(function: OperationRef<'c, 'a>, joins: &Joins<'c, 'a>) {
    let context = function.ctx();
    let Some(entry) = function.region_ref(0).and_then(RegionExt::entry) else {
        return;
    };
    let none = attr::dictionary(context, &[]);
    let before = function.attr(ARGUMENTS).and_then(AttributeExt::as_array);
    let mut before = before.unwrap_or_default();
    before.resize(entry.argument_values().len(), none);
    let mut after = Vec::new();
    for (argument, own) in entry.argument_values().zip(before) {
        let Some(join) = joins.join(argument) else {
            after.push(own);
            continue;
        };
        for part in join.own() {
            let divisor = part.divisor(join.descriptor);
            after.push(match divisor.filter(|_| join.is_parameter) {
                Some(divisor) => {
                    let divisor = attr::i32(context, divisor as i32);
                    attr::dictionary(context, &[("tt.divisibility", divisor)])
                }
                None => none,
            });
        }
    }
    if after.iter().any(|attribute| *attribute != none) {
        function.set_attr(ARGUMENTS, attr::array(context, &after));
    } else {
        function.remove_attr(ARGUMENTS);
    }
}

/// Descriptors that are replaced. They and the ops that have them as results stay until the end, as their names.
struct Rewriting<'c, 'a> {
    rewriter: Rewriter<'c, 'a>,
    joins: Joins<'c, 'a>,
    /// The parts that joins have as their own, by the value of the join.
    own: HashMap<(usize, Part), Value<'c, 'a>>,
    /// Ops at the start of blocks, before which all comes that their arguments need; by an argument.
    anchors: HashMap<usize, OperationRef<'c, 'a>>,
    /// Ops with descriptors as results, and those that took their places.
    rebuilt: Vec<(OperationRef<'c, 'a>, OperationRef<'c, 'a>)>,
}

impl<'c: 'a, 'a> Rewriting<'c, 'a> {
    fn arithmetic(&mut self, location: Location<'c>) -> Arithmetic<'_, 'c, 'a> {
        Arithmetic {
            rewriter: &mut self.rewriter,
            location,
        }
    }

    /// Makes an op with one result at the insertion point.
    fn convert(
        &mut self,
        name: &str,
        location: Location<'c>,
        value: Value<'c, 'a>,
        to: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Value<'c, 'a> {
        let made = self
            .rewriter
            .create(name, location, &[value], Some(&[to]), attributes)
            .expect(IN_CONTEXT);
        made.result_value(0).expect("it has one result")
    }

    /// Adds the parts of descriptors to the arguments of a block, behind each.
    fn add_arguments(&mut self, block: BlockRef<'c, 'a>) {
        let context = self.rewriter.context();
        let arguments: Vec<Value> = block.argument_values().collect();
        let mut anchor = None;
        for (position, argument) in arguments.into_iter().enumerate().rev() {
            let Some(join) = self.joins.join(argument) else {
                continue;
            };
            let (descriptor, is_parameter, parts) =
                (join.descriptor, join.is_parameter, join.own());
            let location = argument.location();
            let anchor = *anchor.get_or_insert_with(|| {
                self.rewriter.set_to_start(block);
                let boolean = IntegerType::new(context, 1).into();
                let start = self.arithmetic(location).constant(boolean, 0);
                start.defining_op().expect("it is a constant")
            });
            self.anchors.insert(key(argument), anchor);
            let passed = passed_extents(argument);
            let mut added = Vec::new();
            for (number, &part) in parts.iter().enumerate() {
                let of = match is_parameter {
                    true => part.parameter_type(context, descriptor),
                    false => part.r#type(context, descriptor),
                };
                added.push(block.insert_argument(position + 1 + number, of, location));
            }
            self.rewriter.set_before(anchor);
            let rank = descriptor.block().map_or(0, |block| block.rank());
            for (part, value) in parts.into_iter().zip(added) {
                let of = part.r#type(context, descriptor);
                let value = match (part, &passed) {
                    _ if !is_parameter => value,
                    (Part::Extent(dim), Some(passed)) => passed[dim],
                    (Part::Extent(_), None) => {
                        let fits = Attribute::parse(context, FITS).expect(IN_CONTEXT);
                        let flags = [("overflowFlags", fits)];
                        self.convert(TruncIOp::NAME, location, value, of, &flags)
                    }
                    (Part::Stride(dim), _) if dim + 1 == rank => {
                        self.arithmetic(location).constant(of, 1)
                    }
                    _ => value,
                };
                self.own.insert((key(argument), part), value);
            }
        }
    }

    /// Puts an op in the place of one that has descriptors as results, with their parts instead.
    fn rebuild(&mut self, old: OperationRef<'c, 'a>) {
        let context = self.rewriter.context();
        let mut types = Vec::new();
        let mut places = Vec::new();
        for result in old.result_values() {
            let Some(join) = self.joins.join(result) else {
                places.push((result, None, types.len()));
                types.push(result.r#type());
                continue;
            };
            for part in join.own() {
                places.push((result, Some(part), types.len()));
                types.push(part.r#type(context, join.descriptor));
            }
        }
        let attributes = old.attrs().into_iter();
        let attributes: Vec<_> = attributes
            .map(|(name, attribute)| (Identifier::new(context, name), attribute))
            .collect();
        let operands: Vec<Value> = old.operand_values().collect();
        let regions = old.region_refs().map(|_| Region::new());
        let new = OperationBuilder::new(old.name_str(), old.loc())
            .add_operands(&operands)
            .add_results(&types)
            .add_attributes(&attributes)
            .add_regions_vec(regions.collect())
            .build()
            .expect("the old one has the same name");
        self.rewriter.set_before(old);
        let new = self.rewriter.insert(new);
        for (to, from) in new.region_refs().zip(old.region_refs()) {
            to.take_body(from);
        }
        for (result, part, place) in places {
            let value = new.result_value(place).expect("one for each type");
            match part {
                Some(part) => {
                    self.own.insert((key(result), part), value);
                }
                None => result.replace_all_uses(value),
            }
        }
        for feed in &mut self.joins.feeds {
            if feed.operation == old {
                feed.operation = new;
            }
        }
        self.rebuilt.push((old, new));
    }

    /// What a part of a descriptor is.
    fn known(&mut self, descriptor: Value<'c, 'a>, part: Part) -> Known<'c, 'a> {
        if descriptor_of(descriptor).is_some_and(|of| !part.matters(of)) {
            return Known::Constant(0);
        }
        let joined = match self.joins.origin(descriptor, part) {
            Some(Origin::Made(maker)) => return part.made_by(maker),
            Some(Origin::Joined(value)) => value,
            None => unreachable!("all parts reach all joins"),
        };
        if let Some(&value) = self.own.get(&(key(joined), part)) {
            return Known::Value(value);
        }
        let select = SelectOp::defining(joined).expect("all others have been rebuilt");
        let value = self.select(select, part);
        self.own.insert((key(joined), part), value);
        Known::Value(value)
    }

    /// The part of a descriptor, at the insertion point.
    fn part(
        &mut self,
        descriptor: Value<'c, 'a>,
        part: Part,
        location: Location<'c>,
    ) -> Value<'c, 'a> {
        match self.known(descriptor, part) {
            Known::Value(value) => value,
            Known::Constant(number) => {
                let of = TensorDesc::of(descriptor.r#type());
                let of = of.map(|of| part.r#type(self.rewriter.context(), of));
                let of = of.expect("a descriptor");
                self.arithmetic(location).constant(of, number)
            }
        }
    }

    /// A part of the descriptor that is selected, which is made before it.
    fn select(&mut self, select: SelectOp<'c, 'a>, part: Part) -> Value<'c, 'a> {
        let (operation, location) = (select.operation(), select.operation().loc());
        let point = self.rewriter.insertion_point();
        let mut chosen = Vec::new();
        for descriptor in [select.true_value(), select.false_value()] {
            // What another select needs may be made elsewhere first.
            self.rewriter.set_before(operation);
            chosen.push(self.part(descriptor, part, location));
        }
        self.rewriter.set_before(operation);
        let value = self
            .arithmetic(location)
            .select(select.condition(), chosen[0], chosen[1]);
        if let Some(point) = point {
            self.rewriter.restore(point);
        }
        value
    }

    /// Hands parts on in the place of descriptors.
    fn hand_on(&mut self) {
        let feeds = std::mem::take(&mut self.joins.feeds);
        let mut replacements: Vec<(Feed<'c, 'a>, Vec<Value<'c, 'a>>)> = Vec::new();
        for feed in feeds {
            let join = &self.joins.all[feed.join];
            let (is_parameter, parts) = (join.is_parameter, join.own());
            let location = feed.operation.loc();
            let mut values = Vec::new();
            for part in parts {
                self.rewriter.set_before(feed.operation);
                let value = self.part(feed.source, part, location);
                values.push(match part {
                    Part::Extent(_) if is_parameter => {
                        let wide = IntegerType::new(self.rewriter.context(), 64).into();
                        self.convert(ExtSIOp::NAME, location, value, wide, &[])
                    }
                    _ => value,
                });
            }
            replacements.push((feed, values));
        }
        // Later operands first: the places of those before do not change.
        replacements.sort_by_key(|(feed, _)| std::cmp::Reverse(feed.operand));
        for (feed, values) in replacements {
            let operation = feed.operation;
            operation.erase_operand(feed.operand);
            for &value in values.iter().rev() {
                operation.insert_operand(feed.operand, value);
            }
            resize_segment(operation, feed.operand, values.len());
        }
    }

    /// Makes descriptors of the parts.
    fn make_anew(&mut self) {
        let joins = self.joins.all.iter();
        let values: Vec<Value> = joins.flat_map(|join| join.values.clone()).collect();
        let mut made = Vec::new();
        for value in values {
            let location = value.location();
            match value.defining_op() {
                None => self.rewriter.set_before(self.anchors[&key(value)]),
                Some(old) => {
                    let mut rebuilt = self.rebuilt.iter();
                    let new = rebuilt.find(|(of, _)| *of == old).map(|(_, new)| *new);
                    self.rewriter.set_after(new.unwrap_or(old));
                }
            }
            made.push((value, self.make(value, location)));
        }
        // The old ones are the names of joins until all are made.
        for (old, new) in made {
            old.replace_all_uses(new);
        }
    }

    /// Makes one of the parts of a descriptor, at the insertion point.
    fn make(&mut self, old: Value<'c, 'a>, location: Location<'c>) -> Value<'c, 'a> {
        let mut base = None;
        let (mut extents, mut strides) = (Vec::new(), Vec::new());
        let descriptor = TensorDesc::of(old.r#type()).expect("it is in a join");
        for part in Part::all(descriptor) {
            match part {
                Part::Base => base = Some(self.part(old, part, location)),
                Part::Extent(_) => extents.push(self.part(old, part, location)),
                Part::Stride(_) => strides.push(self.part(old, part, location)),
                Part::Padding => {}
            }
        }
        let base = base.expect("every descriptor has a base");
        let padding = self.known(old, Part::Padding);
        let mut with = |padding| {
            let of = old.r#type();
            let maker = MakeTensorDescOp::build(location, of, base, &extents, &strides, padding);
            let made = self.rewriter.insert(maker).result_value(0);
            made.expect("it has one result")
        };
        match padding {
            Known::Constant(0) => with(PaddingOption::Zero),
            Known::Constant(_) => with(PaddingOption::Nan),
            Known::Value(is_nan) => {
                let (nan, zero) = (with(PaddingOption::Nan), with(PaddingOption::Zero));
                self.arithmetic(location).select(is_nan, nan, zero)
            }
        }
    }

    /// Drops what has no uses any more.
    fn drop_old(self, blocks: &[BlockRef<'c, 'a>]) {
        for select in self.joins.selects {
            select.operation().erase();
        }
        for (old, _) in self.rebuilt {
            old.erase();
        }
        let mut anchors: Vec<_> = self.anchors.into_values().collect();
        for &block in blocks {
            let arguments: Vec<Value> = block.argument_values().collect();
            for (position, argument) in arguments.into_iter().enumerate().rev() {
                if descriptor_of(argument).is_some() {
                    block.remove_argument(position);
                }
            }
            let start = block
                .operations()
                .find(|operation| anchors.contains(operation));
            if let Some(start) = start {
                anchors.retain(|anchor| *anchor != start);
                start.erase();
            }
        }
    }
}

/// Notes that an operand has become so many.
fn resize_segment(operation: OperationRef<'_, '_>, operand: usize, count: usize) {
    let sizes = operation
        .attr(SEGMENTS)
        .and_then(AttributeExt::as_i32_array);
    let Some(mut sizes) = sizes else {
        return;
    };
    let mut end = 0;
    for size in &mut sizes {
        end += *size as usize;
        if operand < end {
            *size += count as i32 - 1;
            break;
        }
    }
    operation.set_attr(SEGMENTS, attr::i32_array(operation.ctx(), &sizes));
}
