//! The locks and atomics of the code that the models in `loom/` test. In these models, this module
//! provides the types of the crate loom, which tries every order of the threads.

pub(crate) use std::sync::{Mutex, atomic};
