//! The prices of the layouts that a kernel has when they are complete, whoever chose them.

use llopt_dialects::tables::module as launch;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use llopt_transforms::layouts::{self, Grid, Priced, Written};
use melior::ir::OperationRef;
use serde::Serialize;

use super::chosen_layouts::Op;
use crate::{Error, Options, module};

/// What the layouts of a kernel cost, in cycles of one warp, each op weighted by its number of executions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrittenLayouts {
    /// The total cost.
    pub cost: f64,
    /// The ops that cost anything, in the order of the text.
    pub ops: Vec<PricedOp>,
}

/// What an op costs in the layouts that it has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PricedOp {
    /// The op.
    #[serde(flatten)]
    pub op: Op,
    /// The number of executions.
    pub runs: f64,
    /// The cost of all of them.
    pub cost: f64,
    /// The size of an access to global memory.
    pub access: Option<AccessSize>,
}

/// The size of an access to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AccessSize {
    /// Instructions of a warp.
    pub instructions: u32,
    /// The warp's share of the distinct sectors of its block.
    pub sectors: f32,
}

impl From<Priced> for PricedOp {
    fn from(priced: Priced) -> Self {
        Self {
            op: Op::from(priced.place),
            runs: priced.runs,
            cost: priced.cost,
            access: priced.access.map(|access| AccessSize {
                instructions: access.instructions,
                sectors: access.sectors,
            }),
        }
    }
}

impl WrittenLayouts {
    /// Prices the layouts of a module in which every tensor has one.
    ///
    /// # Errors
    /// Of class unsupported, with an op whose layouts are not known.
    pub(crate) fn of(module: OperationRef<'_, '_>, options: &Options) -> Result<Self, Error> {
        let number = |name: &str| module.attr(name).and_then(AttributeExt::as_int::<u32>);
        let grid = Grid {
            num_warps: number(launch::NUM_WARPS).unwrap_or(4),
            threads_per_warp: options.target.warp_size(),
            num_ctas: number(launch::NUM_CTAS).unwrap_or(1),
        };
        let written = layouts::written(module, grid, options.target).map_err(module::unrelated)?;
        let Written { cost, ops } = written;
        Ok(Self {
            cost,
            ops: ops.into_iter().map(PricedOp::from).collect(),
        })
    }
}
