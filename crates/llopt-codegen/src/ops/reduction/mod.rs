//! Operations that combine elements: reductions, scans, histograms.

pub(crate) mod cluster_sum;
pub(crate) mod combination;
pub(crate) mod histogram;
mod operands;
pub(crate) mod partial_results;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod warp;
