//! `curl_easy_option_by_name` and related functions, by which programs look up options.

use std::ffi::{c_char, c_int, c_uint};

use super::OptionSupport;
use super::table::ROWS;
use crate::c_strings;

/// An option as `curl/options.h` describes it.
#[derive(Debug)]
#[repr(C)]
pub struct curl_easyoption {
    /// The name without `CURLOPT_`; NULL at the end of the table.
    pub name: *const c_char,
    /// The number of the option (`CURLoption`).
    pub id: c_uint,
    /// The type of the option's value, as libcurl's number (`CURLOT_`).
    pub kind: c_int,
    /// `CURLOT_FLAG_ALIAS` (1) for an older name of an option, otherwise 0.
    pub flags: c_uint,
}

// SAFETY: the names are constants.
unsafe impl Sync for curl_easyoption {}

/// The table of options that C programs read. Its last row has no name, and marks the end.
static TABLE: [curl_easyoption; ROWS.len() + 1] = {
    const END: curl_easyoption = curl_easyoption { name: std::ptr::null(), id: 0, kind: 0, flags: 0 };
    let mut table = [END; ROWS.len() + 1];
    let mut at = 0;
    while at < ROWS.len() {
        let (name, id, kind, usage) = ROWS[at];
        let flags = matches!(usage, OptionSupport::Alias) as c_uint;
        table[at] = curl_easyoption { name: name.as_ptr(), id, kind: kind as c_int, flags };
        at += 1;
    }
    table
};

/// The position of each option in [`ROWS`], plus 1. The index is the option's number without its
/// type; no two options differ only by their types. The value is 0 if no option has the number.
static ROW_POSITIONS: [u16; MAX_NUMBER] = {
    let mut places = [0; MAX_NUMBER];
    let mut at = 0;
    while at < ROWS.len() {
        let (_, id, _, usage) = ROWS[at];
        at += 1;
        if !matches!(usage, OptionSupport::Alias) {
            let place = &mut places[(id % TYPE_STEP) as usize];
            assert!(*place == 0, "two options have the same number");
            *place = at as u16;
        }
    }
    places
};

/// The difference between the base numbers of consecutive option types (`CURLOPTTYPE_OBJECTPOINT`
/// and so on).
const TYPE_STEP: u32 = 10_000;
/// The upper bound, exclusive, of the option numbers after the base number of the option's type is
/// subtracted.
const MAX_NUMBER: usize = 512;

/// Returns whether this library implements, ignores or refuses the option with this number. Returns
/// `None` if there is no such option.
pub(super) fn option_use(option: u32) -> Option<OptionSupport> {
    option_row(option).map(|(.., usage)| *usage)
}

/// Returns the row of the option with this number in [`ROWS`]; `None` if there is no such option.
pub(super) fn option_row(option: u32) -> Option<&'static super::table::OptionRow> {
    let place = ROW_POSITIONS.get((option % TYPE_STEP) as usize)?.checked_sub(1)?;
    ROWS.get(usize::from(place)).filter(|(_, id, ..)| *id == option)
}

/// Returns the option with this name, ignoring case. NULL if no option has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_easy_option_by_name(name: *const c_char) -> *const curl_easyoption {
    // SAFETY: a string or NULL.
    let Some(wanted) = (unsafe { c_strings::c_string_bytes(name) }) else { return std::ptr::null() };
    let found = ROWS.iter().position(|(name, ..)| name.to_bytes().eq_ignore_ascii_case(wanted));
    found.map_or(std::ptr::null(), |at| &raw const TABLE[at])
}

/// Returns the option with this number. NULL if no option has this number.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_option_by_id(id: c_uint) -> *const curl_easyoption {
    let found = ROWS.iter().position(|(_, number, _, usage)| *number == id && *usage != OptionSupport::Alias);
    found.map_or(std::ptr::null(), |at| &raw const TABLE[at])
}

/// Returns the option after `previous`, or the first one for NULL; NULL after the last one.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_option_next(previous: *const curl_easyoption) -> *const curl_easyoption {
    let next = if previous.is_null() {
        0
    } else {
        match TABLE.iter().position(|row| std::ptr::eq(row, previous)) {
            Some(at) => at + 1,
            None => return std::ptr::null(),
        }
    };
    if next < ROWS.len() { &raw const TABLE[next] } else { std::ptr::null() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::OptionKind;

    #[test]
    fn option_rows_are_sorted_and_numbered_by_type() {
        assert!(ROWS.is_sorted_by_key(|(name, ..)| name.to_bytes()));
        for (name, id, kind, _) in ROWS {
            let range = match kind {
                OptionKind::Long | OptionKind::Values => 0,
                OptionKind::Object | OptionKind::Text | OptionKind::List | OptionKind::Data => 10_000,
                OptionKind::Function => 20_000,
                OptionKind::OffT => 30_000,
                OptionKind::Blob => 40_000,
            };
            assert!((range..range + 1000).contains(id), "{name:?}");
        }
    }

    #[test]
    fn every_option_is_found_by_name_and_number() {
        let mut option = std::ptr::null();
        let mut seen = 0;
        loop {
            option = curl_easy_option_next(option);
            // SAFETY: a row of the table, or NULL.
            let Some(row) = (unsafe { option.as_ref() }) else { break };
            // SAFETY: the name is a constant.
            assert_eq!(unsafe { curl_easy_option_by_name(row.name) }, option);
            assert_eq!(curl_easy_option_by_id(row.id) == option, row.flags == 0);
            seen += 1;
        }
        assert_eq!(seen, ROWS.len());
        assert!(curl_easy_option_by_id(9999).is_null());
    }
}
