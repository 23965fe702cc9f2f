//! Scalar operations for many numbers at a time: the same operations on tensors of one dimension.
//!
//! What depends on none of the numbers stays a scalar, and is spread where it meets them.

use std::collections::HashMap;

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{LoadOp, MakeRangeOp, ReduceOp, ReduceReturnOp, SplatOp};
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{
    Block, Location, OperationRef, Region, RegionLike, Type, TypeLike, Value, ValueLike,
};

use super::builder::{Arithmetic, IN_CONTEXT};
use super::clone::Mapping;

/// Copies of scalar operations for so many numbers at a time.
pub(crate) struct Vectorized<'c, 'a> {
    extent: i64,
    location: Location<'c>,
    /// The tensors in place of scalars.
    tensors: HashMap<usize, Value<'c, 'a>>,
    /// Copies of scalars that are the same for all numbers.
    scalars: Mapping<'c, 'a>,
}

/// Whether an operation can be copied for many numbers at a time: it computes its results from those at the same position,
/// or it loads.
pub(crate) fn is_vectorizable(operation: OperationRef<'_, '_>) -> bool {
    let is_of_elements = |of: Type<'_>| !of.is_index();
    let is_pure = || {
        operation.is_memory_effect_free()
            && operation.region_refs().len() == 0
            && (operation.has_trait(Trait::Elementwise) || operation.operand_values().len() == 0)
    };
    let loads = LoadOp::of(operation)
        .is_some_and(|load| !load.is_volatile() && load.boundary_check().is_empty());
    (loads || is_pure()) && operation.result_types().all(is_of_elements)
}

impl<'c: 'a, 'a> Vectorized<'c, 'a> {
    /// For so many numbers, of which none is known yet.
    pub(crate) fn new(extent: i64, location: Location<'c>) -> Self {
        Self {
            extent,
            location,
            tensors: HashMap::new(),
            scalars: Mapping::new(),
        }
    }

    /// As many numbers of a type.
    pub(crate) fn of_type(&self, element: Type<'c>) -> Type<'c> {
        RankedTensor::get(&[self.extent], element, None)
    }

    /// The numbers 0, 1, … of 32 bits.
    pub(crate) fn range(&self, rewriter: &mut Rewriter<'c, 'a>) -> Value<'c, 'a> {
        let number = IntegerType::new(rewriter.context(), 32).into();
        let range = MakeRangeOp::build(self.location, self.of_type(number), 0, self.extent);
        let range = rewriter.insert(range);
        range.result_value(0).expect(IN_CONTEXT)
    }

    /// One number at all positions.
    pub(crate) fn spread(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        value: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let of = self.of_type(value.r#type());
        let spread = rewriter.insert(SplatOp::build(self.location, of, value));
        spread.result_value(0).expect(IN_CONTEXT)
    }

    /// Puts a tensor in place of a scalar.
    pub(crate) fn put(&mut self, scalar: Value<'c, 'a>, tensor: Value<'c, 'a>) {
        self.tensors.insert(key(scalar), tensor);
    }

    /// Puts a scalar in place of another one.
    pub(crate) fn put_scalar(&mut self, scalar: Value<'c, 'a>, other: Value<'c, 'a>) {
        self.scalars.map(scalar, other);
    }

    /// Whether a tensor is in place of a scalar.
    pub(crate) fn has(&self, scalar: Value<'c, 'a>) -> bool {
        self.tensors.contains_key(&key(scalar))
    }

    /// What is in place of a scalar.
    pub(crate) fn get(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        scalar: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        match self.tensors.get(&key(scalar)) {
            Some(&tensor) => tensor,
            None => {
                let value = self.scalars.get(scalar);
                self.spread(rewriter, value)
            }
        }
    }

    /// Inserts a copy of an operation that [can be vectorized](is_vectorizable) for many numbers.
    pub(crate) fn copy(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        operation: OperationRef<'c, 'a>,
    ) {
        let mut operands = operation.operand_values();
        if !operands.any(|operand| self.tensors.contains_key(&key(operand))) {
            self.scalars.copy(rewriter, operation);
            return;
        }
        let made = match LoadOp::of(operation) {
            Some(load) => self.load(rewriter, load),
            None => {
                let operands: Vec<Value<'c, 'a>> = operation
                    .operand_values()
                    .map(|operand| self.get(rewriter, operand))
                    .collect();
                let types = operation.result_types().map(|of| self.of_type(of));
                let types: Vec<Type<'c>> = types.collect();
                let (name, attributes) = (operation.name_str(), operation.attrs());
                rewriter
                    .create(name, self.location, &operands, Some(&types), &attributes)
                    .expect(IN_CONTEXT)
            }
        };
        for (from, to) in operation.result_values().zip(made.result_values()) {
            self.put(from, to);
        }
    }

    fn load(&self, rewriter: &mut Rewriter<'c, 'a>, load: LoadOp<'c, 'a>) -> OperationRef<'c, 'a> {
        let [ptr, mask, other] = [Some(load.ptr()), load.mask(), load.other()]
            .map(|operand| operand.map(|operand| self.get(rewriter, operand)));
        let loads = LoadOp::infer(
            self.location,
            ptr.expect("a load has an address"),
            mask,
            other,
            &[],
            load.padding(),
            load.cache(),
            load.evict(),
            false,
        );
        rewriter.insert(loads.expect("the type of the addresses is that of a tensor"))
    }

    /// Combines all elements of a tensor. The rewriter is after the combination then.
    pub(crate) fn reduce(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        tensor: Value<'c, 'a>,
        combine: impl FnOnce(&mut Arithmetic<'_, 'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) -> Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let location = self.location;
        let of = RankedTensor::of(tensor.r#type()).expect("it is a tensor");
        let element = of.element();
        let region = Region::new();
        region.append_block(Block::new(&[(element, location), (element, location)]));
        let reduce = ReduceOp::build(location, &[element], &[tensor], 0, vec![region]);
        let reduce = rewriter.insert(reduce);
        if let Some(block) = reduce.region_ref(0).and_then(RegionExt::entry) {
            rewriter.set_to_end(block);
            let values: Vec<Value<'c, 'a>> = block.argument_values().collect();
            let mut arithmetic = Arithmetic { rewriter, location };
            let both = combine(&mut arithmetic, values[0], values[1]);
            rewriter.insert(ReduceReturnOp::build(location, &[both]));
        }
        rewriter.set_after(reduce);
        reduce.result_value(0).expect(IN_CONTEXT)
    }
}
