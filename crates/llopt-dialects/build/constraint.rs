//! Reading the constraints of operands, results and attributes.

use crate::model::{AttributeKind, ModelError, TypeConstraint};
use crate::read::{enumeration_name, list, name, optional_text, text};
use crate::type_set::TypeSet;
use tblgen::Record;

/// The classes of a scalar constraint by the name of its record.
const SCALARS: &[(&str, TypeSet)] = &[
    ("F8E4M3FN", TypeSet::F8E4M3FN),
    ("F8E4M3FNUZ", TypeSet::F8E4M3FNUZ),
    ("F8E5M2", TypeSet::F8E5M2),
    ("F8E5M2FNUZ", TypeSet::F8E5M2FNUZ),
    ("F16", TypeSet::F16),
    ("BF16", TypeSet::BF16),
    ("F32", TypeSet::F32),
    ("F64", TypeSet::F64),
    ("I1", TypeSet::I1),
    ("I4", TypeSet::I4),
    ("I8", TypeSet::I8),
    ("I16", TypeSet::I16),
    ("I32", TypeSet::I32),
    ("I64", TypeSet::I64),
    ("Index", TypeSet::INDEX),
    ("LLVMPointer", TypeSet::LLVM_POINTER),
    ("LLVMCompatible", TypeSet::ALL),
    (
        "AnySignlessIntegerOrIndex",
        TypeSet(
            TypeSet::I1.0
                | TypeSet::I4.0
                | TypeSet::I8.0
                | TypeSet::I16.0
                | TypeSet::I32.0
                | TypeSet::I64.0
                | TypeSet::OTHER_INTEGER.0
                | TypeSet::INDEX.0,
        ),
    ),
];

/// Reads a type constraint.
///
/// # Errors
/// A constraint without anything that the generator can read.
pub fn type_constraint(record: Record<'_>) -> Result<TypeConstraint, ModelError> {
    let mut constraint = TypeConstraint {
        any: false,
        scalar: TypeSet::EMPTY,
        tensor: TypeSet::EMPTY,
        kinds: Vec::new(),
        summary: optional_text(record, "summary").unwrap_or_default(),
    };
    let record_name = name(record);
    if record_name == "AnyType" {
        constraint.any = true;
        constraint.scalar = TypeSet::ALL;
    } else if let Some((_, class)) = SCALARS.iter().find(|(known, _)| *known == record_name) {
        constraint.scalar = *class;
    } else if record.subclass_of("TypeDef") {
        let dialect = record
            .def_value("dialect")
            .map_err(|error| error.to_string())?;
        let kind = (text(dialect, "name")?, text(record, "mnemonic")?);
        constraint.summary = format!("!{}.{}", kind.0, kind.1);
        constraint.kinds.push(kind);
    } else if record.subclass_of("AnyTypeOf") {
        for allowed in list(record, "allowedTypes")? {
            let allowed = type_constraint(allowed)?;
            constraint.any |= allowed.any;
            constraint.scalar = constraint.scalar.union(allowed.scalar);
            constraint.tensor = constraint.tensor.union(allowed.tensor);
            constraint.kinds.extend(allowed.kinds);
        }
    } else if record.subclass_of("TensorWith") {
        for element in list(record, "elementTypes")? {
            constraint.tensor = constraint.tensor.union(type_constraint(element)?.scalar);
        }
    } else if record.subclass_of("PointerTo") {
        for pointee in list(record, "pointeeTypes")? {
            let pointee = type_constraint(pointee)?;
            if pointee.scalar != TypeSet::EMPTY {
                constraint.scalar = constraint.scalar.union(TypeSet::POINTER);
            }
            if pointee.any || pointee.tensor != TypeSet::EMPTY {
                constraint.scalar = constraint.scalar.union(TypeSet::TENSOR_POINTER);
            }
        }
    } else {
        return Err(format!(
            "the type constraint {record_name} keeps nothing that the generator can read; use the classes of ods.td"
        ));
    }
    Ok(constraint)
}

/// Reads an attribute constraint.
///
/// # Errors
/// A constraint of a class that is not understood.
pub fn attribute_kind(record: Record<'_>) -> Result<AttributeKind, ModelError> {
    if record.subclass_of("EnumInfo") {
        let (dialect, name) = enumeration_name(record)?;
        return Ok(AttributeKind::Enum(dialect, name));
    }
    if record.subclass_of("AttrDef") {
        let dialect = record
            .def_value("dialect")
            .map_err(|error| error.to_string())?;
        return Ok(AttributeKind::Kind(
            text(dialect, "name")?,
            text(record, "mnemonic")?,
        ));
    }
    Ok(match name(record).as_str() {
        "BoolAttr" => AttributeKind::Bool,
        "UnitAttr" => AttributeKind::Unit,
        "I1Attr" => AttributeKind::Integer(1),
        "I32Attr" => AttributeKind::Integer(32),
        "I64Attr" => AttributeKind::Integer(64),
        "StrAttr" => AttributeKind::String,
        "SymbolNameAttr" => AttributeKind::SymbolName,
        "FlatSymbolRefAttr" => AttributeKind::FlatSymbolRef,
        "DenseI32ArrayAttr" => AttributeKind::DenseI32Array,
        "DenseI64ArrayAttr" => AttributeKind::DenseI64Array,
        "DictArrayAttr" => AttributeKind::DictionaryArray,
        _ if record.subclass_of("TypeAttrBase") => AttributeKind::FunctionType,
        other => {
            return Err(format!(
                "the attribute constraint {other} is not understood"
            ));
        }
    })
}
