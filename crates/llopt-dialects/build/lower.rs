//! Gives the names in a format their meaning: the operand, attribute or type of each, the blanks that the printer
//! writes, and the source of every type.
//!
//! Blanks follow the rule of MLIR's generator, so that the text equals that of an op defined in C++: the state below
//! (`emit_space`, `after_punctuation`) advances over the elements in the order of the text, groups included.

use crate::{
    format::{Element, FormatError, Kind},
    model::{AttributeKind, Model, Multiplicity, Operation, Presence, TypeConstraint, ValueField},
    type_set::TypeSet,
};
use std::fmt::Write;

/// The Rust expression of a `Format`.
///
/// # Errors
/// The first mistake in the format.
pub fn lower(
    model: &Model,
    dialect: &str,
    operation: &Operation,
    elements: &[Element],
) -> Result<String, FormatError> {
    let mut lowering = Lowering {
        model,
        operation,
        emit_space: true,
        after_punctuation: false,
        used_attributes: Vec::new(),
        written_operands: vec![false; operation.operands.len()],
        written_operand_types: vec![false; operation.operands.len()],
        written_result_types: vec![false; operation.results.len()],
        attr_dict: false,
    };
    let code = lowering.sequence(elements, None)?;
    lowering.finish(dialect, code)
}

struct Lowering<'m> {
    model: &'m Model,
    operation: &'m Operation,
    emit_space: bool,
    after_punctuation: bool,
    used_attributes: Vec<usize>,
    written_operands: Vec<bool>,
    written_operand_types: Vec<bool>,
    written_result_types: Vec<bool>,
    attr_dict: bool,
}

enum Meaning {
    Operand(usize),
    Attribute(usize),
    Result(usize),
}

impl Lowering<'_> {
    fn meaning(&self, at: usize, name: &str) -> Result<Meaning, FormatError> {
        let position = |fields: &[ValueField]| fields.iter().position(|field| field.name == name);
        if let Some(index) = position(&self.operation.operands) {
            return Ok(Meaning::Operand(index));
        }
        if let Some(index) = self
            .operation
            .attributes
            .iter()
            .position(|field| field.name == name)
        {
            return Ok(Meaning::Attribute(index));
        }
        if let Some(index) = position(&self.operation.results) {
            return Ok(Meaning::Result(index));
        }
        Err(FormatError::new(
            at,
            format!("`${name}` is no operand, attribute or result of the operation"),
        ))
    }

    /// The blank in front of anything but a literal.
    fn space(&mut self) -> bool {
        let space = self.emit_space || !self.after_punctuation;
        self.after_punctuation = false;
        self.emit_space = true;
        space
    }

    fn literal_space(&mut self, text: &str) -> bool {
        let wants_space = if text.len() != 1 && text != "->" {
            true
        } else if self.after_punctuation {
            !">)}],".contains(text)
        } else {
            !"<>(){}[],".contains(text)
        };
        let space = self.emit_space && wants_space;
        self.emit_space = text.len() != 1 || !"<({[".contains(text);
        self.after_punctuation =
            !text.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic());
        space
    }

    fn sequence(
        &mut self,
        elements: &[Element],
        skip: Option<usize>,
    ) -> Result<String, FormatError> {
        let mut code = String::from("&[");
        for (index, element) in elements.iter().enumerate() {
            if Some(index) != skip {
                code.push_str(&self.element(element)?);
                code.push_str(", ");
            }
        }
        code.push(']');
        Ok(code)
    }

    fn element(&mut self, element: &Element) -> Result<String, FormatError> {
        let at = element.at;
        Ok(match &element.kind {
            Kind::Literal(text) => {
                let space = self.literal_space(text);
                format!("Element::Literal {{ text: {text:?}, space: {space} }}")
            }
            Kind::Space(text) => {
                self.emit_space = false;
                self.after_punctuation = text.is_empty();
                format!("Element::Space({text:?})")
            }
            Kind::Variable(name) => match self.meaning(at, name)? {
                Meaning::Operand(index) => {
                    self.written_operands[index] = true;
                    let space = self.space();
                    format!("Element::Operand {{ index: {index}, space: {space} }}")
                }
                Meaning::Attribute(index) => {
                    self.use_attribute(at, index)?;
                    let space = self.space();
                    format!("Element::Attribute {{ index: {index}, space: {space} }}")
                }
                Meaning::Result(_) => {
                    return Err(FormatError::new(
                        at,
                        format!("`${name}` is a result; only its type can be written"),
                    ));
                }
            },
            Kind::AttrDict(keyword) => {
                if std::mem::replace(&mut self.attr_dict, true) {
                    return Err(FormatError::new(at, "`attr-dict` is written twice"));
                }
                self.after_punctuation = false;
                format!("Element::AttrDict {{ keyword: {keyword} }}")
            }
            Kind::Operands => {
                self.written_operands.fill(true);
                let space = self.space();
                format!("Element::Operands {{ space: {space} }}")
            }
            Kind::Results => {
                return Err(FormatError::new(at, "`results` only names types"));
            }
            Kind::Type(argument) => self.types(argument, false)?,
            Kind::Qualified(argument) => match &argument.kind {
                Kind::Type(inner) => self.types(inner, true)?,
                _ => {
                    return Err(FormatError::new(
                        at,
                        "only `qualified(type(…))` is supported",
                    ));
                }
            },
            Kind::FunctionalType(inputs, results) => {
                let inputs = self.type_argument(inputs)?.0;
                let results = self.type_argument(results)?.0;
                let space = self.space();
                format!(
                    "Element::FunctionalType {{ inputs: {inputs}, results: {results}, space: {space} }}"
                )
            }
            Kind::Custom(name, arguments) => {
                let mut code = String::new();
                for argument in arguments {
                    let argument = self.custom_argument(argument)?;
                    let _ = write!(code, "{argument}, ");
                }
                let space = self.space();
                format!(
                    "Element::Custom {{ directive: crate::text::format::Directive::{name}, arguments: &[{code}], space: {space} }}",
                )
            }
            Kind::Optional {
                then,
                otherwise,
                anchor,
            } => self.optional(at, then, otherwise, *anchor)?,
            Kind::OiList(clauses) => self.oilist(clauses)?,
        })
    }

    fn use_attribute(&mut self, at: usize, index: usize) -> Result<(), FormatError> {
        if self.used_attributes.contains(&index) {
            return Err(FormatError::new(at, "this attribute is written twice"));
        }
        self.used_attributes.push(index);
        Ok(())
    }

    /// The code of a type argument and the field behind it when it is one field.
    fn type_argument(
        &mut self,
        element: &Element,
    ) -> Result<(String, Option<&ValueField>), FormatError> {
        match &element.kind {
            Kind::Operands => {
                self.written_operand_types.fill(true);
                Ok(("TypeArgument::Operands".into(), None))
            }
            Kind::Results => {
                self.written_result_types.fill(true);
                Ok(("TypeArgument::Results".into(), None))
            }
            Kind::Variable(name) => match self.meaning(element.at, name)? {
                Meaning::Operand(index) => {
                    self.written_operand_types[index] = true;
                    Ok((
                        format!("TypeArgument::Operand({index})"),
                        Some(&self.operation.operands[index]),
                    ))
                }
                Meaning::Result(index) => {
                    self.written_result_types[index] = true;
                    Ok((
                        format!("TypeArgument::Result({index})"),
                        Some(&self.operation.results[index]),
                    ))
                }
                Meaning::Attribute(_) => Err(FormatError::new(
                    element.at,
                    format!("`${name}` is an attribute and has no type here"),
                )),
            },
            _ => Err(FormatError::new(
                element.at,
                "expected an operand, a result, `operands` or `results`",
            )),
        }
    }

    fn types(&mut self, argument: &Element, qualified: bool) -> Result<String, FormatError> {
        let (of, field) = self.type_argument(argument)?;
        let stripped = field
            .filter(|field| !qualified && field.multiplicity == Multiplicity::One)
            .and_then(|field| stripped_kind(&field.constraint))
            .map(|(dialect, mnemonic)| kind_path(self.model, "types", &dialect, &mnemonic));
        let stripped = stripped.map_or("None".to_owned(), |path| format!("Some({path})"));
        let space = self.space();
        Ok(format!(
            "Element::Type {{ of: {of}, stripped: {stripped}, space: {space} }}"
        ))
    }

    fn custom_argument(&mut self, element: &Element) -> Result<String, FormatError> {
        match &element.kind {
            Kind::Variable(name) => match self.meaning(element.at, name)? {
                Meaning::Operand(index) => {
                    self.written_operands[index] = true;
                    Ok(format!("CustomArgument::Operand({index})"))
                }
                Meaning::Attribute(index) => {
                    self.use_attribute(element.at, index)?;
                    Ok(format!("CustomArgument::Attribute({index})"))
                }
                Meaning::Result(_) => Err(FormatError::new(
                    element.at,
                    "a result is no argument of a custom directive; its type can be",
                )),
            },
            Kind::Type(inner) => {
                let argument = self.type_argument(inner)?.0;
                Ok(format!("CustomArgument::Type({argument})"))
            }
            _ => Err(FormatError::new(
                element.at,
                "expected a variable or `type(…)` as argument of a custom directive",
            )),
        }
    }

    fn anchor(&self, element: &Element) -> Result<String, FormatError> {
        let named = match &element.kind {
            Kind::Variable(_) => element,
            Kind::Type(inner) => inner,
            Kind::Qualified(inner) => match &inner.kind {
                Kind::Type(inner) => inner,
                _ => inner,
            },
            _ => {
                return Err(FormatError::new(
                    element.at,
                    "the anchor of a group is a variable or its type",
                ));
            }
        };
        let Kind::Variable(name) = &named.kind else {
            return Err(FormatError::new(named.at, "expected a variable as anchor"));
        };
        let must_vary = |field: &ValueField| {
            if field.multiplicity == Multiplicity::One {
                Err(FormatError::new(
                    named.at,
                    format!("`${name}` is always present and cannot be an anchor"),
                ))
            } else {
                Ok(())
            }
        };
        Ok(match self.meaning(named.at, name)? {
            Meaning::Operand(index) => {
                must_vary(&self.operation.operands[index])?;
                format!("Anchor::Operand({index})")
            }
            Meaning::Result(index) => {
                must_vary(&self.operation.results[index])?;
                format!("Anchor::Result({index})")
            }
            Meaning::Attribute(index) => {
                if self.operation.attributes[index].presence == Presence::Required {
                    return Err(FormatError::new(
                        named.at,
                        format!("`${name}` is always present and cannot be an anchor"),
                    ));
                }
                format!("Anchor::Attribute({index})")
            }
        })
    }

    fn optional(
        &mut self,
        at: usize,
        then: &[Element],
        otherwise: &[Element],
        anchor: usize,
    ) -> Result<String, FormatError> {
        let anchor_code = self.anchor(&then[anchor])?;
        let first = &then[0];
        let begins_well = match &first.kind {
            Kind::Literal(_) => true,
            Kind::Variable(name) => match self.meaning(first.at, name)? {
                Meaning::Operand(index) => {
                    self.operation.operands[index].multiplicity != Multiplicity::One
                }
                _ => false,
            },
            _ => false,
        };
        if !begins_well {
            return Err(FormatError::new(
                at,
                "an optional group begins with a literal or an operand that may be absent",
            ));
        }
        // A unit attribute after a literal adds no information to the literal.
        let mut unit = None;
        if let Kind::Variable(name) = &then[anchor].kind
            && let Meaning::Attribute(index) = self.meaning(then[anchor].at, name)?
            && self.operation.attributes[index].kind == AttributeKind::Unit
            && anchor != 0
        {
            self.use_attribute(then[anchor].at, index)?;
            unit = Some(index);
        }
        let then = self.sequence(then, unit.map(|_| anchor))?;
        let otherwise = self.sequence(otherwise, None)?;
        Ok(format!(
            "Element::Optional {{ anchor: {anchor_code}, then: {then}, otherwise: {otherwise}, unit: {unit:?} }}"
        ))
    }

    fn oilist(&mut self, clauses: &[Vec<Element>]) -> Result<String, FormatError> {
        let mut code = String::from("Element::OiList(&[");
        for clause in clauses {
            let Some((first, rest)) = clause.split_first() else {
                continue;
            };
            let Kind::Literal(keyword) = &first.kind else {
                return Err(FormatError::new(first.at, "a clause starts with a literal"));
            };
            let space = self.literal_space(keyword);
            let mut anchors = String::new();
            for element in rest {
                if matches!(element.kind, Kind::Variable(_)) {
                    let anchor = self.anchor(element)?;
                    let _ = write!(anchors, "{anchor}, ");
                }
            }
            let elements = self.sequence(rest, None)?;
            let _ = write!(
                code,
                "Clause {{ keyword: {keyword:?}, elements: {elements}, anchors: &[{anchors}], space: {space} }}, "
            );
        }
        code.push_str("])");
        Ok(code)
    }

    fn finish(self, dialect: &str, elements: String) -> Result<String, FormatError> {
        let operation = self.operation;
        if !self.attr_dict {
            return Err(FormatError::new(0, "the format has no `attr-dict`"));
        }
        if let Some(index) = self.written_operands.iter().position(|written| !written) {
            return Err(FormatError::new(
                0,
                format!(
                    "operand `{}` is not written",
                    operation.operands[index].name
                ),
            ));
        }
        let mut elided: Vec<String> = self
            .used_attributes
            .iter()
            .map(|index| operation.attributes[*index].name.clone())
            .collect();
        for (name, attribute) in [
            ("AttrSizedOperandSegments", "operandSegmentSizes"),
            ("AttrSizedResultSegments", "resultSegmentSizes"),
        ] {
            if operation.has_trait(name) {
                elided.push(attribute.to_owned());
            }
        }
        let mut operand_types = String::new();
        for (index, field) in operation.operands.iter().enumerate() {
            let source = if self.written_operand_types[index] {
                "TypeSource::Written".to_owned()
            } else {
                self.source(dialect, field, false).ok_or_else(|| {
                    FormatError::new(
                        0,
                        format!("nothing says what the type of operand `{}` is", field.name),
                    )
                })?
            };
            let _ = write!(operand_types, "{source}, ");
        }
        let mut result_types = String::new();
        for (index, field) in operation.results.iter().enumerate() {
            let source = if self.written_result_types[index] {
                "TypeSource::Written".to_owned()
            } else {
                self.source(dialect, field, true).ok_or_else(|| {
                    FormatError::new(
                        0,
                        format!("nothing says what the type of result `{}` is", field.name),
                    )
                })?
            };
            let _ = write!(result_types, "{source}, ");
        }
        Ok(format!(
            "Format {{ elements: {elements}, elided: &{elided:?}, operand_types: &[{operand_types}], result_types: &[{result_types}] }}"
        ))
    }

    /// The source of a type that is not written.
    fn source(&self, _dialect: &str, field: &ValueField, result: bool) -> Option<String> {
        let operation = self.operation;
        let written = |name: &str| {
            operation
                .operands
                .iter()
                .position(|operand| operand.name == name)
                .filter(|index| self.written_operand_types[*index])
                .map(|index| format!("ValueRef::Operand({index})"))
                .or_else(|| {
                    operation
                        .results
                        .iter()
                        .position(|result| result.name == name)
                        .filter(|index| self.written_result_types[*index])
                        .map(|index| format!("ValueRef::Result({index})"))
                })
        };
        let derived = |from: String, transform: &str, summary: &str| {
            format!(
                "TypeSource::Derived {{ from: {from}, transform: crate::check::relation::{transform}, summary: {summary:?} }}"
            )
        };
        for relation in &operation.relations {
            if relation.to == field.name
                && let Some(from) = written(&relation.from)
            {
                return Some(derived(from, &relation.transform, &relation.summary));
            }
            if relation.from == field.name
                && relation.transform == "same"
                && let Some(from) = written(&relation.to)
            {
                return Some(derived(from, "same", &relation.summary));
            }
        }
        if operation.has_trait("SameOperandsAndResultType") {
            let known = operation
                .operands
                .iter()
                .chain(&operation.results)
                .find_map(|field| written(&field.name));
            if let Some(from) = known {
                return Some(derived(from, "same", "operands and results have one type"));
            }
        }
        if operation.has_trait("SameTypeOperands") && !result {
            let known = operation
                .operands
                .iter()
                .find_map(|field| written(&field.name));
            if let Some(from) = known {
                return Some(derived(from, "same", "all operands have one type"));
            }
        }
        if let Some(fixed) = fixed_type(self.model, &field.constraint) {
            return Some(format!("TypeSource::Fixed({fixed})"));
        }
        (result && operation.has_trait("InferTypeOpInterface"))
            .then(|| "TypeSource::Inferred".to_owned())
    }
}

/// The kind that an unqualified `type($x)` leaves out.
fn stripped_kind(constraint: &TypeConstraint) -> Option<(String, String)> {
    if constraint.any || constraint.tensor != TypeSet::EMPTY {
        return None;
    }
    let pointers = TypeSet::POINTER.union(TypeSet::TENSOR_POINTER);
    if constraint.kinds.is_empty()
        && constraint.scalar != TypeSet::EMPTY
        && constraint.scalar.union(pointers) == pointers
    {
        return Some(("tt".into(), "ptr".into()));
    }
    match constraint.kinds.as_slice() {
        [kind] if constraint.scalar == TypeSet::EMPTY => Some(kind.clone()),
        _ => None,
    }
}

/// The type of a constraint that allows only one type.
pub fn fixed_type(model: &Model, constraint: &TypeConstraint) -> Option<String> {
    if constraint.any || constraint.tensor != TypeSet::EMPTY {
        return None;
    }
    if let [(dialect, mnemonic)] = constraint.kinds.as_slice() {
        let definition = model
            .dialects
            .iter()
            .find(|known| known.name == *dialect)?
            .types
            .iter()
            .find(|kind| kind.mnemonic == *mnemonic)?;
        return definition.parameters.is_empty().then(|| {
            format!(
                "FixedType::Kind({})",
                kind_path(model, "types", dialect, mnemonic)
            )
        });
    }
    let width = match constraint.scalar {
        TypeSet::I1 => 1,
        TypeSet::I8 => 8,
        TypeSet::I16 => 16,
        TypeSet::I32 => 32,
        TypeSet::I64 => 64,
        _ => return None,
    };
    Some(format!("FixedType::Integer({width})"))
}

/// The Rust path of the spec of a kind.
pub fn kind_path(model: &Model, table: &str, dialect: &str, mnemonic: &str) -> String {
    let definition = model.dialects.iter().find(|known| known.name == dialect);
    let position = definition.and_then(|definition| {
        let kinds = if table == "types" {
            &definition.types
        } else {
            &definition.attributes
        };
        kinds.iter().position(|kind| kind.mnemonic == mnemonic)
    });
    let table = if table == "types" {
        "TYPES"
    } else {
        "ATTRIBUTES"
    };
    // The Rust compiler reports a kind outside of the model at its name.
    position.map_or_else(
        || format!("&crate::{dialect}::UNKNOWN_KIND_{mnemonic}"),
        |position| format!("&crate::{dialect}::{table}[{position}]"),
    )
}

/// `BarriersAndPreds` to `BARRIERS_AND_PREDS`.
pub fn screaming(name: &str) -> String {
    snake(name).to_uppercase()
}

/// `outLHS` to `out_lhs`, `isVolatile` to `is_volatile`, `memdesc_index` to itself.
pub fn snake(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| characters.get(index));
        let after = characters.get(index + 1);
        let begins_word = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if begins_word {
            snake.push('_');
        }
        snake.push(match character {
            '.' => '_',
            other => other.to_ascii_lowercase(),
        });
    }
    snake
}
