//! Result types of ttg operations.
