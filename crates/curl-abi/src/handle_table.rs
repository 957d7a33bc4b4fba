//! The tables of live handles. A handle that a program passes is treated as a number only: the
//! table says whether it is live, and contains the object. The use of a handle that was freed, or
//! that never existed, is therefore an error and not an access to freed memory.
//!
//! ```
//! use haul_curl::handle_table::HandleTable;
//!
//! static NAMES: HandleTable<String> = HandleTable::new();
//! let handle = NAMES.insert(|_| "a".to_owned());
//! assert_eq!(*NAMES.get(handle).unwrap(), "a");
//! assert!(NAMES.remove(handle).is_some() && NAMES.get(handle).is_none());
//! ```

use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustc_hash::FxBuildHasher;

/// A handle as C programs see it: a pointer that is never dereferenced.
pub type OpaqueHandle = *mut c_void;

/// The size in bytes of the memory block to which a handle points. The structs that libcurl exposes
/// to programs fit in it, so a program that reads such a struct sees zeros.
const BLOCK: usize = 128;

/// The live handles of one type, and the objects to which they belong. A handle is live until the C
/// program frees it.
pub struct HandleTable<T> {
    live: RwLock<HashMap<usize, Arc<T>, FxBuildHasher>>,
}

impl<T> Default for HandleTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> HandleTable<T> {
    /// Makes a table without handles.
    #[must_use]
    pub const fn new() -> Self {
        Self { live: RwLock::new(HashMap::with_hasher(FxBuildHasher)) }
    }

    /// Adds an object, and returns its handle. `make` creates the object from the handle's id. The
    /// handle is the address of a small block of memory, so it differs from the addresses of all
    /// other live handles and objects of the process.
    pub fn insert(&self, make: impl FnOnce(usize) -> T) -> OpaqueHandle {
        // SAFETY: plain allocation. The block is freed by `remove`.
        let block = unsafe { libc::calloc(1, BLOCK) };
        if block.is_null() {
            return block;
        }
        let object = Arc::new(make(block.addr()));
        self.live.write().unwrap_or_else(PoisonError::into_inner).insert(block.addr(), object);
        block
    }

    /// Returns the object of a handle; `None` if the handle is not live.
    pub fn get(&self, handle: OpaqueHandle) -> Option<Arc<T>> {
        self.get_by_number(handle.addr())
    }

    /// Returns the object of the handle with this id; `None` if the handle is not live.
    pub fn get_by_number(&self, number: usize) -> Option<Arc<T>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Removes a handle, and returns its object; `None` if the handle is not live. A transfer in
    /// progress may still hold the object.
    #[expect(clippy::not_unsafe_ptr_arg_deref, reason = "only a pointer that the table made is freed")]
    pub fn remove(&self, handle: OpaqueHandle) -> Option<Arc<T>> {
        let object = self.live.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.addr());
        if object.is_some() {
            // SAFETY: a live handle is a block of `insert`, and it is live no more.
            unsafe { libc::free(handle) };
        }
        object
    }
}

/// Locks a mutex, even if another thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `body`, and returns `on_panic` if it panics, since no panic may unwind into C.
pub(crate) fn catch_panic<T>(on_panic: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(on_panic)
}

/// A pointer that the C program supplied. It is passed to the program's callbacks, or read where
/// libcurl's documentation allows this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserPointer(pub *mut c_void);

impl UserPointer {
    /// The null pointer.
    pub const NULL: Self = Self(std::ptr::null_mut());
}

impl Default for UserPointer {
    fn default() -> Self {
        Self::NULL
    }
}

// SAFETY: this crate passes it to the program's own functions in threads of the program that drive
// the handle, as libcurl does. The program answers for its target.
unsafe impl Send for UserPointer {}
// SAFETY: as above.
unsafe impl Sync for UserPointer {}
