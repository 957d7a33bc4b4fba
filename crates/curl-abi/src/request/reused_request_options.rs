//! The engine's options and target of a handle's last request. The handle's next request uses them
//! again, unless the program has set an option on which they depend.
//!
//! Creating them takes a third of the instructions of a small request. A program that sends many
//! requests changes only the URL, the content or the data of its callbacks in between.

use std::sync::Arc;

use haul::{RequestOptions, Target};

use crate::c_strings;
use crate::easy::EasyState;
use crate::options::{RequestKind, curlopt_numbers as opt};

/// The parts of a request that the next request of the easy handle can use again, because no option
/// has changed them.
#[derive(Default)]
pub(crate) struct ReusableRequest {
    options: Option<(RequestKind, Arc<RequestOptions>)>,
    /// The target, and the URL as the C program gave it; `None` if the next request cannot use them
    /// again.
    target: Option<(Target, String)>,
}

impl ReusableRequest {
    /// Drops the parts that depend on the option with this number, which the C program is setting.
    pub(crate) fn forget_dependents(&mut self, option: u32) {
        match option {
            // Read for each request: callbacks, their data, the content of a POST.
            opt::WRITEFUNCTION
            | opt::WRITEDATA
            | opt::HEADERFUNCTION
            | opt::HEADERDATA
            | opt::READFUNCTION
            | opt::READDATA
            | opt::XFERINFOFUNCTION
            | opt::XFERINFODATA
            | opt::PROGRESSFUNCTION
            | opt::NOPROGRESS
            | opt::ERRORBUFFER
            | opt::PRIVATE
            | opt::POSTFIELDS
            | opt::COPYPOSTFIELDS
            | opt::POSTFIELDSIZE
            | opt::POSTFIELDSIZE_LARGE => {}
            opt::URL => self.target = None,
            _ => *self = Self::default(),
        }
    }

    /// Returns the target (the parsed URL) and the URL as the C program gave it, if the next
    /// request can use them again; otherwise `None`.
    pub(super) fn target(&self) -> Option<(Target, String)> {
        self.target.clone()
    }

    /// Returns the engine's options for a request of this kind if they can be used again; otherwise
    /// `None`.
    pub(super) fn options(&self, kind: RequestKind) -> Option<Arc<RequestOptions>> {
        let (made_for, options) = self.options.as_ref()?;
        (*made_for == kind && !c_strings::environment_has_proxy()).then(|| Arc::clone(options))
    }
}

/// Keeps the options and the target of a request for the next request of the easy handle. Keeps
/// nothing if they depend on more than the handle's options, such as stored cookies, a netrc file
/// or a proxy in the environment.
pub(super) fn keep(state: &mut EasyState, options: &Arc<RequestOptions>, target: &Target, url: &str) {
    let given = &state.options;
    let has_stores = options.jar.is_some() || options.hsts.is_some() || options.alt_svc.is_some();
    let reads_files =
        [opt::NETRC, opt::PINNEDPUBLICKEY, opt::PROXY_PINNEDPUBLICKEY].iter().any(|option| given.has(*option));
    let has_plain_content = match given.request_kind() {
        RequestKind::Get | RequestKind::Head => true,
        // The field Content-Range depends on the content.
        RequestKind::Post => {
            !given.has(opt::RANGE) && given.number(opt::RESUME_FROM_LARGE).is_none_or(|from| from <= 0)
        }
        _ => false,
    };
    if has_stores || reads_files || !has_plain_content || c_strings::environment_has_proxy() {
        return;
    }
    let target = given.pointer(opt::CURLU).is_null().then(|| (target.clone(), url.to_owned()));
    state.reusable_request = ReusableRequest { options: Some((given.request_kind(), Arc::clone(options))), target };
}
