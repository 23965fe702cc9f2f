//! The machine against plain models: small kernels of our own per family of instructions, for both vendors. One
//! binary, since each links the whole of LLVM.

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
