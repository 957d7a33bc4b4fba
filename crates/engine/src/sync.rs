//! The locks and atomics of the code that the models in `loom/` run: there this module has those of
//! the crate loom, which try every order of the threads.

pub(crate) use std::sync::{Mutex, atomic};
