//! `curl_slist_*`: lists of strings. Programs may read the entries directly, so they are C structs
//! in memory from `malloc`.

use std::ffi::{c_char, c_void};

use crate::c_strings;

/// An entry of a linked list of strings, with the layout of `curl/curl.h`.
#[derive(Debug)]
#[repr(C)]
pub struct curl_slist {
    /// The string of this entry, which ends with NUL.
    pub data: *mut c_char,
    /// The next entry; NULL at the end.
    pub next: *mut curl_slist,
}

/// Makes an entry without a successor. Returns NULL if memory is exhausted.
fn new_entry(text: &[u8]) -> *mut curl_slist {
    let data = c_strings::malloc_string(text);
    if data.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: plain allocation.
    let entry = unsafe { libc::malloc(size_of::<curl_slist>()) }.cast::<curl_slist>();
    if entry.is_null() {
        // SAFETY: just allocated.
        unsafe { libc::free(data.cast()) };
    } else {
        // SAFETY: the block has the size of an entry.
        unsafe { entry.write(curl_slist { data, next: std::ptr::null_mut() }) };
    }
    entry
}

/// Makes a list of these strings. The C program frees the list. Returns NULL if there are no
/// strings.
pub(crate) fn new_list<'a>(strings: impl IntoIterator<Item = &'a [u8]>) -> *mut curl_slist {
    let mut first = std::ptr::null_mut();
    let mut last: *mut curl_slist = std::ptr::null_mut();
    for text in strings {
        let new = new_entry(text);
        if new.is_null() {
            // SAFETY: the list was made here.
            unsafe { curl_slist_free_all(first) };
            return std::ptr::null_mut();
        }
        if last.is_null() {
            first = new;
        } else {
            // SAFETY: an entry made here.
            unsafe { (*last).next = new };
        }
        last = new;
    }
    first
}

/// Returns copies of the strings of a list.
///
/// # Safety
/// `list` is NULL or a list made by `curl_slist_append`.
pub(crate) unsafe fn copy_strings(list: *const curl_slist) -> Vec<Box<[u8]>> {
    let mut copies = Vec::new();
    // SAFETY: the caller guarantees it, here and below.
    let mut at = unsafe { list.as_ref() };
    while let Some(entry) = at {
        // SAFETY: as above.
        copies.extend(unsafe { c_strings::c_string_bytes(entry.data) }.map(Box::from));
        // SAFETY: as above.
        at = unsafe { entry.next.as_ref() };
    }
    copies
}

/// Appends a copy of a string to a list, and returns the list. A NULL `list` is an empty list.
/// Returns NULL if `text` is NULL or memory is exhausted; the list is then unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_slist_append(list: *mut curl_slist, text: *const c_char) -> *mut curl_slist {
    // SAFETY: libcurl's contract.
    let Some(text) = (unsafe { c_strings::c_string_bytes(text) }) else { return std::ptr::null_mut() };
    let new = new_entry(text);
    if new.is_null() || list.is_null() {
        return new;
    }
    let mut last = list;
    // SAFETY: libcurl's contract: a list of this function.
    unsafe {
        while !(*last).next.is_null() {
            last = (*last).next;
        }
        (*last).next = new;
    }
    list
}

/// Frees all entries of a list, with their strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_slist_free_all(list: *mut curl_slist) {
    let mut at = list;
    while !at.is_null() {
        // SAFETY: libcurl's contract: a list of `curl_slist_append`, whose blocks are of `malloc`.
        unsafe {
            let curl_slist { data, next } = at.read();
            libc::free(data.cast::<c_void>());
            libc::free(at.cast::<c_void>());
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slist_keeps_the_order_of_its_strings() {
        // SAFETY: strings with NUL, and a list of these functions.
        unsafe {
            assert!(curl_slist_append(std::ptr::null_mut(), std::ptr::null()).is_null());
            let list = curl_slist_append(std::ptr::null_mut(), c"a".as_ptr());
            assert_eq!(curl_slist_append(list, c"".as_ptr()), list);
            assert_eq!(curl_slist_append(list, c"c".as_ptr()), list);
            let copies = copy_strings(list);
            assert_eq!(copies.iter().map(|text| &**text).collect::<Vec<_>>(), [&b"a"[..], b"", b"c"]);
            curl_slist_free_all(list);
            assert!(copy_strings(std::ptr::null()).is_empty());
        }
    }
}
