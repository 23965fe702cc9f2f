//! The fields of encodings as parameters of attributes.
//!
//! Parameters are looked up by the names that the `.td` files give them, which are those of the IR.

use llopt_layout::LinearLayout;
use llopt_mlir::dialect::{AttributeSpec, Parameters};
use melior::{Context, ir::Attribute};

use super::parent::Parent;
use super::{CgaLayout, EncodingError};
use crate::tables::{access, make};

/// The parameters of an attribute, by name.
pub struct Fields<'c> {
    pub(super) spec: &'static AttributeSpec,
    pub(super) parameters: Parameters<'c>,
}

impl<'c> Fields<'c> {
    /// Whether they are those of an attribute of this kind.
    pub(super) fn are_of(&self, spec: &'static AttributeSpec) -> bool {
        std::ptr::eq(self.spec, spec)
    }

    pub(super) fn get(&self, name: &str) -> Option<Attribute<'c>> {
        let index = self
            .spec
            .parameters
            .iter()
            .position(|field| *field == name)?;
        self.parameters.get(index)
    }

    pub(super) fn number(&self, name: &str) -> u32 {
        let value = self.get(name).and_then(access::integer_value);
        value
            .and_then(|value| u32::try_from(value).ok())
            .unwrap_or(0)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(access::bool_value).unwrap_or(false)
    }

    pub(super) fn optional_list(&self, name: &str) -> Option<Vec<u32>> {
        self.get(name).and_then(access::i32_values).map(unsigned)
    }

    pub(super) fn list(&self, name: &str) -> Vec<u32> {
        self.optional_list(name).unwrap_or_default()
    }

    /// A list that is all ones unless given.
    pub(super) fn ones_or_list(&self, name: &str, rank: usize) -> Vec<u32> {
        self.optional_list(name).unwrap_or_else(|| vec![1; rank])
    }

    pub(super) fn bases(&self, name: &str) -> Vec<Vec<u32>> {
        let bases = self
            .get(name)
            .and_then(access::bases_of)
            .unwrap_or_default();
        bases.into_iter().map(unsigned).collect()
    }

    pub(super) fn cga_layout(&self, rank: usize) -> Result<CgaLayout, EncodingError> {
        CgaLayout::from_bases(rank, self.bases("CGALayout"))
    }

    /// The numbers, the order and the blocks of a swizzle.
    pub(super) fn swizzle(&self) -> Result<([u32; 3], Vec<u32>, CgaLayout), EncodingError> {
        let numbers = ["vec", "perPhase", "maxPhase"].map(|name| self.number(name));
        let order = self.list("order");
        let cga_layout = self.cga_layout(order.len())?;
        Ok((numbers, order, cga_layout))
    }

    pub(super) fn parent<P: Parent>(&self, name: &str) -> Result<Box<P>, EncodingError> {
        match self.get(name) {
            Some(parent) => Ok(Box::new(P::from_attribute(parent)?)),
            None => Err(EncodingError::NotAnEncoding {
                attribute: "an absent parent".to_owned(),
            }),
        }
    }

    /// The number of entries of the first vector of any of the named bases.
    pub(super) fn rank_of_bases(&self, names: &[&str]) -> usize {
        names
            .iter()
            .find_map(|name| self.bases(name).first().map(Vec::len))
            .unwrap_or(0)
    }
}

/// The parser admits nothing below zero.
fn unsigned(values: Vec<i32>) -> Vec<u32> {
    values
        .into_iter()
        .map(|value| u32::try_from(value).unwrap_or(0))
        .collect()
}

/// A parameter by name; absent ones are left out or `None`.
pub type Field<'c> = (&'static str, Option<Attribute<'c>>);

/// Makes parameters in a context.
pub struct Writer<'c> {
    pub(super) context: &'c Context,
}

impl<'c> Writer<'c> {
    pub(super) fn number(&self, value: u32) -> Option<Attribute<'c>> {
        Some(make::integer(self.context, 32, i64::from(value)))
    }

    pub(super) fn flag(&self, value: bool) -> Option<Attribute<'c>> {
        Some(make::bool(self.context, value))
    }

    pub(super) fn list(&self, values: &[u32]) -> Option<Attribute<'c>> {
        Some(make::i32_array(self.context, &signed(values)))
    }

    /// A list that stays away when it is all ones.
    pub(super) fn list_unless_ones(&self, values: &[u32]) -> Option<Attribute<'c>> {
        if values.iter().all(|&value| value == 1) {
            None
        } else {
            self.list(values)
        }
    }

    pub(super) fn bases(&self, vectors: &[Vec<u32>]) -> Option<Attribute<'c>> {
        let vectors: Vec<Vec<i32>> = vectors.iter().map(|vector| signed(vector)).collect();
        Some(make::bases(self.context, &vectors))
    }

    pub(super) fn bases_of(&self, layout: &LinearLayout, name: &str) -> Option<Attribute<'c>> {
        let dim = llopt_layout::Dim::new(name)?;
        let vectors: Vec<Vec<u32>> = (0..layout.in_dim_size_log2(dim))
            .filter_map(|bit| layout.basis(dim, bit).map(|basis| basis.to_vec()))
            .collect();
        self.bases(&vectors)
    }

    pub(super) fn parent(&self, parent: &impl Parent) -> Option<Attribute<'c>> {
        Some(parent.to_attribute(self.context))
    }

    pub(super) fn cga(&self, cga_layout: &CgaLayout) -> Field<'c> {
        ("CGALayout", self.bases(cga_layout.bases()))
    }

    pub(super) fn swizzle(
        &self,
        [vec, per_phase, max_phase]: [u32; 3],
        order: &[u32],
        cga_layout: &CgaLayout,
    ) -> Vec<Field<'c>> {
        vec![
            ("vec", self.number(vec)),
            ("perPhase", self.number(per_phase)),
            ("maxPhase", self.number(max_phase)),
            ("order", self.list(order)),
            self.cga(cga_layout),
        ]
    }
}

/// Parameters are stored as signed; no encoding that verifies has a number beyond.
fn signed(values: &[u32]) -> Vec<i32> {
    values
        .iter()
        .map(|&value| i32::try_from(value).unwrap_or(i32::MAX))
        .collect()
}
