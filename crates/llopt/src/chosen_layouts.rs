//! What the layout engine says of the layouts that it has chosen, on its way through the pipeline.

use llopt_mlir::ir::{AttributeExt, OperationExt, attr};
use llopt_transforms::layouts::{Account, Place};
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

/// The attribute of the module under which it travels.
const ATTRIBUTE: &str = "llopt.chosen_layouts";

/// An op by name and place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// The name.
    pub op: String,
    /// `file:line:col`.
    pub location: String,
}

/// What the chosen layouts cost, in cycles of one warp, each op as often as it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenLayouts {
    /// What everything costs together.
    pub cost: f64,
    /// What no choice among the candidates costs less than.
    pub bound: f64,
    /// The conversions that are left.
    pub conversions: Vec<Left>,
}

/// A conversion that is left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// The op whose layout the tensor has, and the one whose layout is wanted.
    pub demands: [Op; 2],
    /// What it costs.
    pub cost: f64,
    /// How much dearer the kernel would be without it; `None` if it cannot do without.
    pub removal: Option<f64>,
}

impl From<Account> for ChosenLayouts {
    fn from(account: Account) -> Self {
        let op = |place: Place| Op {
            op: place.op,
            location: place.location,
        };
        let conversions = account.conversions.into_iter();
        Self {
            cost: account.cost,
            bound: account.bound,
            conversions: conversions
                .map(|left| Left {
                    demands: left.demands.map(op),
                    cost: left.cost,
                    removal: left.removal,
                })
                .collect(),
        }
    }
}

impl ChosenLayouts {
    /// Hands it to the module.
    pub(crate) fn write(&self, module: OperationRef<'_, '_>) {
        if let Ok(text) = serde_json::to_string(self) {
            module.set_discardable_attr(ATTRIBUTE, attr::string(module.ctx(), &text));
        }
    }

    /// Takes it from the module; `None` if its layouts came with it.
    pub(crate) fn take(module: OperationRef<'_, '_>) -> Option<Self> {
        let text = module.discardable_attr(ATTRIBUTE)?.as_str()?;
        let found = serde_json::from_str(text).ok();
        module.remove_attr(ATTRIBUTE);
        found
    }
}
