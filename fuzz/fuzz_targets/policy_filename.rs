//! Fuzzes file names from Content-Disposition and from URLs: a name never leaves its directory and
//! never begins with a dot.
#![no_main]

use haul_policy::Target;
use haul_policy::file_names_by_system::OsFamily;
use haul_policy::filename::{
    MAX_NAME, from_decoded_path, from_disposition, from_path_as_written, from_path_like_curl, from_target, sanitise,
};
use haul_policy::output_name_placeholders::{fill_url_parts, mirrored_path, no_columns};
use libfuzzer_sys::fuzz_target;

fn stays(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && !matches!(name, "." | "..")
}

fuzz_target!(|data: &[u8]| {
    if let Some(name) = from_disposition(data) {
        assert!(stays(&name) && name.len() <= MAX_NAME);
        assert!(!name.starts_with('.') && !name.chars().any(char::is_control));
        assert_eq!(sanitise(&name).as_deref(), Some(&*name), "it is harmless already");
    }
    let Ok(url) = str::from_utf8(data) else { return };
    for as_is in [false, true] {
        let Ok(target) = Target::parse_with(url, haul_policy::Scheme::Http, as_is) else { continue };
        let (named, curls, written) =
            (from_target(&target), from_path_like_curl(&target), from_path_as_written(&target, url));
        assert_eq!((named.is_ok(), written.is_ok()), (curls.is_ok(), curls.is_ok()));
        if let (Ok(named), Ok(curls), Ok(written)) = (named, curls, written) {
            assert!(stays(&named) && stays(&curls) && stays(&written));
            assert!(!named.starts_with('.') && named.bytes().all(|b| b.is_ascii_graphic()));
        }
        let is_safe = |name: &str| stays(name) && !name.starts_with('.') && name.len() <= MAX_NAME;
        if let Ok(name) = from_decoded_path(&target) {
            assert!(is_safe(&name) && !name.chars().any(char::is_control));
        }
        for family in [OsFamily::Unix, OsFamily::Windows] {
            let template = b"{host}/{path}/{name}/{query}";
            let of_template = fill_url_parts(family, template, &target, &no_columns, &|text| text.to_vec());
            for path in [mirrored_path(&target).map(String::into_bytes), of_template].into_iter().flatten() {
                let path = String::from_utf8(path).expect("values are text");
                assert!(path.split('/').all(is_safe), "{path:?}");
            }
        }
    }
});
