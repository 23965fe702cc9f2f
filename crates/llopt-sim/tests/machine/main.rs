//! The machine compared with plain models: small kernels for each family of instructions, for both vendors. One
//! binary, since each links all of LLVM.

mod arithmetic;
mod asynchronous;
mod bulk;
mod control_flow;
mod counters;
mod exchange;
mod group_products;
mod hardware;
mod harness;
mod launches;
mod matrices;
mod memory;
mod ptx;
mod reference;
mod sanitizer;
