//! Operations of a whole warp: exchanges between lanes, matrix products, tiles, printing.

pub(crate) mod collective;
pub(crate) mod draft;
pub(crate) mod early_read;
pub(crate) mod group_product;
pub(crate) mod in_flight;
pub(crate) mod matrix;
pub(crate) mod print;
pub(crate) mod product_registers;
pub(crate) mod reads;
pub(crate) mod registers;
pub(crate) mod tensor_core;
pub(crate) mod tiles;
