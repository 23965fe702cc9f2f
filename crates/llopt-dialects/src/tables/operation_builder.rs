//! The assembly of an operation by the generated builders.

use crate::{
    tables::access,
    tables::constant,
    tables::definition::{Groups, OpDefinition, TypeTransform},
    tables::make,
    text::format::FixedType,
};
use melior::{
    Context,
    ir::{
        Attribute, Identifier, Location, Operation, Region, Type, Value, ValueLike,
        operation::OperationBuilder,
    },
};

/// An operation under construction; operands come in the order of the definition.
pub struct Building<'c, 'a> {
    definition: &'static OpDefinition,
    location: Location<'c>,
    operands: Vec<Value<'c, 'a>>,
    sizes: Vec<i32>,
    results: Vec<Type<'c>>,
    attributes: Vec<(Identifier<'c>, Attribute<'c>)>,
    regions: Vec<Region<'c>>,
}

impl<'c, 'a> Building<'c, 'a> {
    /// Begins an operation.
    pub fn new(definition: &'static OpDefinition, location: Location<'c>) -> Self {
        Self {
            definition,
            location,
            operands: Vec::new(),
            sizes: Vec::new(),
            results: Vec::new(),
            attributes: Vec::new(),
            regions: Vec::new(),
        }
    }

    /// A group of one operand.
    pub fn operand(&mut self, value: Value<'c, 'a>) {
        self.operands(&[value]);
    }

    /// A group of operands.
    pub fn operands(&mut self, values: &[Value<'c, 'a>]) {
        self.operands.extend_from_slice(values);
        self.sizes
            .push(i32::try_from(values.len()).unwrap_or(i32::MAX));
    }

    /// A result.
    pub fn result(&mut self, r#type: Type<'c>) {
        self.results.push(r#type);
    }

    /// A group of results.
    pub fn results(&mut self, types: &[Type<'c>]) {
        self.results.extend_from_slice(types);
    }

    /// A result whose constraint allows only one type.
    pub fn fixed_result(&mut self, fixed: FixedType) {
        self.results
            .push(fixed.get(access::context_of(self.location)));
    }

    /// A result whose type follows from an operand.
    ///
    /// # Panics
    /// When the operand has a type that the operation does not take: a bug in the caller.
    pub fn derived_result(&mut self, name: &str, operand: Value<'c, 'a>, transform: TypeTransform) {
        let r#type = operand.r#type();
        let derived = transform(r#type)
            .unwrap_or_else(|| panic!("{name} cannot be built with an operand of type {type}"));
        self.results.push(derived);
    }

    /// An attribute, unless absent.
    pub fn attribute(&mut self, name: &str, attribute: Option<Attribute<'c>>) {
        if let Some(attribute) = attribute {
            let name = Identifier::new(access::context_of(self.location), name);
            self.attributes.push((name, attribute));
        }
    }

    /// All regions.
    pub fn regions(&mut self, regions: Vec<Region<'c>>) {
        self.regions = regions;
    }

    /// Makes the operation.
    ///
    /// # Panics
    /// When MLIR refuses to create it, which it does only for operations with type inference
    /// that fails; builders give all types.
    pub fn finish(self) -> Operation<'c> {
        let name = self.definition.name;
        self.into_builder()
            .build()
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Makes the operation with the result types that it infers; `None` if inference fails, after the reason has been
    /// reported at the location.
    pub fn infer(self) -> Option<Operation<'c>> {
        self.into_builder()
            .enable_result_type_inference()
            .build()
            .ok()
    }

    fn into_builder(mut self) -> OperationBuilder<'c> {
        if let Groups::Sized(_) = self.definition.operand_groups {
            let sizes = make::i32_array(access::context_of(self.location), &self.sizes);
            self.attribute("operandSegmentSizes", Some(sizes));
        }
        OperationBuilder::new(self.definition.name, self.location)
            .add_operands(&self.operands)
            .add_results(&self.results)
            .add_attributes(&self.attributes)
            .add_regions_vec(self.regions)
    }
}

/// Materialises folded values: an `arith.constant`, or `ub.poison` for a poison value; `None` when
/// the value does not have the type.
pub fn constant<'c>(
    context: &'c Context,
    value: Attribute<'c>,
    r#type: Type<'c>,
    location: Location<'c>,
) -> Option<Operation<'c>> {
    let name = if constant::is_poison(value) {
        "ub.poison"
    } else {
        "arith.constant"
    };
    OperationBuilder::new(name, location)
        .add_attributes(&[(Identifier::new(context, "value"), value)])
        .add_results(&[r#type])
        .build()
        .ok()
}
