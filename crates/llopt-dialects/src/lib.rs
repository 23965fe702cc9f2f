//! The tile dialects, and the layouts that their encoding attributes stand for.

pub mod encoding;
