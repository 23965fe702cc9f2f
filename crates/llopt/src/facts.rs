//! Where code generation's questions about values meet the analysis that answers them.

use llopt_codegen::plan::access::{AccessFacts, DimFacts};
use llopt_transforms::axis::AxisAnalysis;
use melior::ir::Value;

/// Axis information as code generation wants it.
pub(crate) struct Facts {
    analysis: AxisAnalysis,
}

impl Facts {
    pub(crate) fn new(analysis: AxisAnalysis) -> Self {
        Self { analysis }
    }
}

impl AccessFacts for Facts {
    fn facts(&self, value: Value<'_, '_>) -> Option<Vec<DimFacts>> {
        let facts = self.analysis.facts(value);
        let dims = facts.dims.iter().map(|dim| DimFacts {
            contiguity: dim.contiguity.get(),
            divisibility: dim.divisibility.get(),
            constancy: dim.constancy.get(),
        });
        Some(dims.collect())
    }
}
