//! The layout engine's report on the layouts that it has chosen, as it passes through the pipeline.

use llopt_transforms::layouts::{Account, Place};
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::accounts;

/// The attribute of the module that contains it.
const ATTRIBUTE: &str = "llopt.chosen_layouts";

/// An op by name and location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// The name.
    pub op: String,
    /// `file:line:col`.
    pub location: String,
}

/// What the chosen layouts cost, in cycles of one warp, each op weighted by its number of executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenLayouts {
    /// The total cost.
    pub cost: f64,
    /// A lower bound on the cost of any choice among the candidates.
    pub bound: f64,
    /// Whether no candidate was left out because there are too many.
    pub complete: bool,
    /// The remaining conversions.
    pub conversions: Vec<Left>,
    /// The accesses to global memory that could take fewer instructions for no more sectors.
    pub accesses: Vec<Narrow>,
}

/// An access to global memory that could take fewer instructions for no more sectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Narrow {
    /// The access.
    #[serde(flatten)]
    pub access: Op,
    /// The instructions of a warp.
    pub instructions: u32,
    /// The instructions with the layouts that cost least if it takes fewer.
    pub fewer: u32,
    /// The additional cost of the kernel with these.
    pub widening: f64,
}

/// A remaining conversion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// The op that determines the tensor's layout, and the op that requires the other one.
    pub demands: [Op; 2],
    /// Its cost.
    pub cost: f64,
    /// The additional cost of the kernel without it; `None` if the conversion is necessary.
    pub removal: Option<f64>,
}

impl From<Place> for Op {
    fn from(place: Place) -> Self {
        Self {
            op: place.op,
            location: place.location,
        }
    }
}

impl From<Account> for ChosenLayouts {
    fn from(account: Account) -> Self {
        let conversions = account.conversions.into_iter();
        let accesses = account.accesses.into_iter();
        Self {
            cost: account.cost,
            bound: account.bound,
            complete: account.is_complete,
            conversions: conversions
                .map(|left| Left {
                    demands: left.demands.map(Op::from),
                    cost: left.cost,
                    removal: left.removal,
                })
                .collect(),
            accesses: accesses
                .map(|narrow| Narrow {
                    access: narrow.place.into(),
                    instructions: narrow.instructions,
                    fewer: narrow.fewer,
                    widening: narrow.widening,
                })
                .collect(),
        }
    }
}

impl ChosenLayouts {
    /// Writes it to an attribute of the module.
    pub(crate) fn write(&self, module: OperationRef<'_, '_>) {
        accounts::write(std::slice::from_ref(self), ATTRIBUTE, module);
    }

    /// Takes it from the module; `None` if the module came with layouts.
    pub(crate) fn take(module: OperationRef<'_, '_>) -> Option<Self> {
        accounts::take(ATTRIBUTE, module).pop()
    }
}
