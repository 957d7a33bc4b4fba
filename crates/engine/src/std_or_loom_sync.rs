//! The types of locks and atomics for the code that the loom models in `loom/` test. In a normal
//! build, they are those of std. In the models, this module is replaced by loom's types, with which
//! every order of the threads is tried.

pub(crate) use std::sync::{Mutex, atomic};
