//! Products of matrices apart from their layouts: formats that matrix units do not have, accumulators, and which product a
//! wait is for.

pub mod accumulators;
pub(crate) mod chained_products;
pub mod f32_dot;
pub mod products;
pub mod scaled_dot;
pub mod widened_products;
