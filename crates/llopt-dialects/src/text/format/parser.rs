//! The parsing half of the format engine.

use super::{Element, FixedType, Format, FormatParser, TypeSource};
use crate::{
    tables::access,
    tables::definition::{
        AttributeKind, Groups, Multiplicity, OpDefinition, Presence, ValueField, ValueRef,
    },
    tables::make,
    text::syntax,
};
use llopt_mlir::{
    asm::{OpParser, Parsed, Reported},
    dialect::OpSpec,
};
use melior::{
    Context,
    ir::{AttributeLike, Type, r#type::IntegerType},
};

/// The parse hook of every operation with a declarative format.
///
/// # Errors
/// When the text does not match; the error is reported by then.
pub fn parse<'c, 'p>(spec: &'static OpSpec, parser: &mut OpParser<'c, 'p>) -> Parsed<()> {
    let location = parser.name_location();
    let Some((definition, format)) =
        OpDefinition::of_spec(spec).and_then(|definition| Some((definition, definition.format?)))
    else {
        return Err(parser.error(location, format!("`{}` has no custom form", spec.name)));
    };
    let mut state = FormatParser {
        parser,
        definition,
        location,
        operands: definition.operands.iter().map(|_| Vec::new()).collect(),
        all_operands: None,
        operand_types: definition.operands.iter().map(|_| None).collect(),
        all_operand_types: None,
        result_types: definition.results.iter().map(|_| None).collect(),
        all_result_types: None,
    };
    state.elements(format.elements)?;
    crate::text::compatibility::normalize(spec, state.parser)?;
    state.resolve(format)
}

impl<'c, 'p> FormatParser<'_, 'c, 'p> {
    fn elements(&mut self, elements: &'static [Element]) -> Parsed<()> {
        elements
            .iter()
            .try_for_each(|element| self.element(element))
    }

    fn element(&mut self, element: &'static Element) -> Parsed<()> {
        match element {
            Element::Literal { text, .. } => self.parser.literal(text),
            Element::Space(_) => Ok(()),
            Element::Operand { index, .. } => self.operand(*index),
            Element::Attribute { index, .. } => self.attribute(*index),
            Element::AttrDict { keyword: false } => self.parser.attr_dict(),
            Element::AttrDict { keyword: true } => self.parser.attr_dict_with_keyword(),
            Element::Operands { .. } => {
                self.all_operands = Some(self.parser.operand_list()?);
                Ok(())
            }
            Element::Type { of, stripped, .. } => {
                let types = match stripped {
                    Some(spec) => vec![self.parser.type_of(spec)?],
                    None => self.types(*of)?,
                };
                self.assign_types(*of, types);
                Ok(())
            }
            Element::FunctionalType {
                inputs, results, ..
            } => {
                let (input_types, output_types) = self.parser.functional_type()?;
                self.assign_types(*inputs, input_types);
                self.assign_types(*results, output_types);
                Ok(())
            }
            Element::Custom {
                directive,
                arguments,
                ..
            } => (syntax::of(*directive).parse)(self, arguments),
            Element::Optional {
                then,
                otherwise,
                unit,
                ..
            } => self.optional(then, otherwise, *unit),
            Element::OiList(clauses) => {
                let mut seen = 0u64;
                loop {
                    let location = self.parser.location();
                    let Some(index) = clauses
                        .iter()
                        .position(|clause| self.parser.optional_literal(clause.keyword))
                    else {
                        return Ok(());
                    };
                    if seen & (1 << index) != 0 {
                        return Err(self.parser.error(
                            location,
                            format!("`{}` is written twice", clauses[index].keyword),
                        ));
                    }
                    seen |= 1 << index;
                    self.elements(clauses[index].elements)?;
                }
            }
        }
    }

    fn optional(
        &mut self,
        then: &'static [Element],
        otherwise: &'static [Element],
        unit: Option<usize>,
    ) -> Parsed<()> {
        let present = match then.first() {
            Some(Element::Literal { text, .. }) => self.parser.optional_literal(text),
            Some(Element::Operand { index, .. }) => {
                self.operand(*index)?;
                !self.operands[*index].is_empty()
            }
            // The build script allows no other element at the start of a group.
            _ => false,
        };
        if !present {
            return self.elements(otherwise);
        }
        if let Some(index) = unit {
            let attribute = make::unit(self.parser.context());
            self.parser
                .add_attribute(self.definition.attributes[index].name, attribute);
        }
        self.elements(&then[1..])
    }

    fn operand(&mut self, index: usize) -> Parsed<()> {
        match self.definition.operands[index].multiplicity {
            Multiplicity::One => {
                let operand = self.parser.operand()?;
                self.operands[index].push(operand);
            }
            Multiplicity::Optional => {
                if let Some(operand) = self.parser.optional_operand()? {
                    self.operands[index].push(operand);
                }
            }
            Multiplicity::Variadic => {
                let operands = self.parser.operand_list()?;
                self.operands[index].extend(operands);
            }
        }
        Ok(())
    }

    fn attribute(&mut self, index: usize) -> Parsed<()> {
        let field = &self.definition.attributes[index];
        let location = self.parser.location();
        let context = self.parser.context();
        let wrong = |parser: &mut OpParser<'c, 'p>, what: &str| -> Reported {
            parser.error(
                location,
                format!("expected {what} for attribute `{}`", field.name),
            )
        };
        let attribute = match field.kind {
            AttributeKind::Enum(definition) => {
                let index = match self.parser.optional_keyword_of(definition.keywords) {
                    Some(index) => Some(index),
                    None => self.parser.optional_string()?.and_then(|text| {
                        definition
                            .keywords
                            .iter()
                            .position(|keyword| *keyword == text)
                    }),
                };
                let Some((_, value)) = index.and_then(|index| definition.cases.get(index)) else {
                    return Err(self.parser.error(
                        location,
                        format!(
                            "expected attribute `{}` to be one of: {}",
                            field.name,
                            definition.keywords.join(", ")
                        ),
                    ));
                };
                make::integer(context, 32, *value)
            }
            AttributeKind::Integer(width) => {
                let r#type: Type<'c> = IntegerType::new(context, width).into();
                let attribute = self.parser.attribute_with_type(Some(r#type))?;
                if !attribute.is_integer() || access::attribute_type(attribute) != r#type {
                    return Err(wrong(self.parser, "an integer"));
                }
                attribute
            }
            AttributeKind::Bool => {
                let attribute = self.parser.attribute()?;
                if !attribute.is_bool() {
                    return Err(wrong(self.parser, "`true` or `false`"));
                }
                attribute
            }
            AttributeKind::Unit => make::unit(context),
            AttributeKind::String => {
                // Without a given type, the colon after the string would be parsed as that of a type.
                let attribute = self.parser.attribute_with_type(Some(Type::none(context)))?;
                if !attribute.is_string() {
                    return Err(wrong(self.parser, "a string"));
                }
                attribute
            }
            AttributeKind::SymbolName => self.parser.symbol_name()?,
            AttributeKind::FlatSymbolRef => {
                let attribute = self.parser.attribute_with_type(Some(Type::none(context)))?;
                if !attribute.is_flat_symbol_ref() {
                    return Err(wrong(self.parser, "a symbol reference `@name`"));
                }
                attribute
            }
            AttributeKind::DenseI32Array => {
                let values = self.parser.integer_list::<i32>()?;
                make::i32_array(context, &values)
            }
            AttributeKind::DenseI64Array => {
                let values = self.parser.integer_list::<i64>()?;
                make::i64_array(context, &values)
            }
            AttributeKind::Kind(spec) => self.parser.attribute_of(spec, None)?,
            AttributeKind::FunctionType | AttributeKind::DictionaryArray => {
                self.parser.attribute()?
            }
        };
        self.parser.add_attribute(field.name, attribute);
        Ok(())
    }

    /// Gives operands and results their types and hands everything to the operation.
    fn resolve(&mut self, format: &'static Format) -> Parsed<()> {
        self.add_defaults();
        let definition = self.definition;
        if let Groups::Sized(_) = definition.operand_groups {
            let sizes: Vec<i32> = self
                .operands
                .iter()
                .map(|group| i32::try_from(group.len()).unwrap_or(i32::MAX))
                .collect();
            let attribute = make::i32_array(self.parser.context(), &sizes);
            self.parser.add_attribute("operandSegmentSizes", attribute);
        }
        self.resolve_operands(format)?;
        if let Some(types) = self.all_result_types.take() {
            self.parser.add_types(&types);
            return Ok(());
        }
        for (index, source) in format.result_types.iter().enumerate() {
            let field = &definition.results[index];
            let types = match (&self.result_types[index], source, field.multiplicity) {
                (Some(written), _, _) => written.clone(),
                (None, TypeSource::Inferred, _) => return self.parser.infer_types(),
                (None, _, Multiplicity::One) => self.derive(source, field, 1)?,
                (None, TypeSource::Derived { .. }, _) => self.derive(source, field, 0)?,
                (None, _, Multiplicity::Optional | Multiplicity::Variadic) => Vec::new(),
            };
            self.parser.add_types(&types);
        }
        Ok(())
    }

    fn resolve_operands(&mut self, format: &'static Format) -> Parsed<()> {
        if let Some(types) = self.all_operand_types.take() {
            let operands = match self.all_operands.take() {
                Some(operands) => operands,
                None => self.operands.iter().flatten().copied().collect(),
            };
            return self
                .parser
                .resolve_operands(&operands, &types, self.location);
        }
        for (index, source) in format.operand_types.iter().enumerate() {
            let operands = std::mem::take(&mut self.operands[index]);
            let field = &self.definition.operands[index];
            let types = match &self.operand_types[index] {
                Some(written) => written.clone(),
                None if operands.is_empty() => continue,
                None => self.derive(source, field, operands.len())?,
            };
            self.parser
                .resolve_operands(&operands, &types, self.location)?;
        }
        Ok(())
    }

    /// The types of a group of `count` values that are not written.
    fn derive(
        &mut self,
        source: &'static TypeSource,
        field: &'static ValueField,
        count: usize,
    ) -> Parsed<Vec<Type<'c>>> {
        match source {
            TypeSource::Written | TypeSource::Inferred => Ok(Vec::new()),
            TypeSource::Fixed(fixed) => Ok(vec![fixed.get(self.parser.context()); count]),
            TypeSource::Derived {
                from,
                transform,
                summary,
            } => {
                let known = match from {
                    ValueRef::Operand(index) => &self.operand_types[*index],
                    ValueRef::Result(index) => &self.result_types[*index],
                };
                let mut types = Vec::with_capacity(count);
                for r#type in known.iter().flatten() {
                    match transform(*r#type) {
                        Some(derived) => types.push(derived),
                        None => {
                            return Err(self.parser.error(
                                self.location,
                                format!(
                                    "the type of `{}` does not follow from {type}: {summary}",
                                    field.name
                                ),
                            ));
                        }
                    }
                }
                // A single type may apply to every value of the group.
                if let [only] = types[..] {
                    types.resize(count.max(1), only);
                }
                Ok(types)
            }
        }
    }

    /// Sets the defaults of absent attributes, so that equal operations are equal however they were created.
    fn add_defaults(&mut self) {
        let context = self.parser.context();
        for field in self.definition.attributes {
            if let Presence::Default(value) = field.presence
                && self.parser.op_attribute(field.name).is_none()
            {
                self.parser
                    .add_attribute(field.name, value.attribute(context, &field.kind));
            }
        }
    }
}

impl FixedType {
    /// The type in a context.
    pub fn get<'c>(self, context: &'c Context) -> Type<'c> {
        match self {
            Self::Integer(width) => IntegerType::new(context, width).into(),
            Self::Kind(spec) => spec.get(context, &[]),
        }
    }
}
