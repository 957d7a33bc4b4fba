//! The record of a finished request of `fetch_many`, with the keys of `docs/records.schema.json`.
//!
//! ```python
//! (number, response, error), = batch.next()
//! json.loads(response.record() if error is None else error.transfer.record())
//! ```

use std::borrow::Cow;

use haul::body::decoded_text::BodyTextPieces;
use haul::transfer::FollowedRedirect;
use haul::transfer_facts::TransferFacts;
use haul::transfer_record::TransferRecord;
use haul::{Error, ResponseHead, Target};
use haul_policy::secret_fields::drop_userinfo;
use pyo3::prelude::*;

/// The data of a finished request that are kept only for its record, the JSON description of the
/// transfer.
pub(crate) struct TransferRecordData {
    /// The URL as the program gave it.
    pub(crate) url: String,
    pub(crate) method: Cow<'static, str>,
    pub(crate) facts: Box<TransferFacts>,
    pub(crate) history: Vec<FollowedRedirect>,
}

impl TransferRecordData {
    /// Returns the record (the JSON description of the transfer) as text, without a body. `target`
    /// is the target of the last request, after redirects.
    pub(crate) fn json(&self, target: &Target, head: Option<&ResponseHead>, error: Option<&Error>) -> String {
        let url = drop_userinfo(&self.url);
        let redirected = || match target.fragment() {
            Some(fragment) => format!("{}#{fragment}", target.to_url()),
            None => target.to_url(),
        };
        let effective = match (self.facts.requests, self.facts.redirects) {
            (0, _) => None,
            (_, 0) => Some(url.clone()),
            _ => Some(redirected().into()),
        };
        let mut record = TransferRecord::new(&url, &self.method, &self.facts);
        record.effective_url = effective.as_deref();
        (record.head, record.history, record.error) = (head, &self.history, error);
        let mut text = b"{".to_vec();
        record.append_members(&mut text, true);
        text.push(b'}');
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The data of a failed request of a batch. The request's exception has them as its attribute
/// `transfer`.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct FailedTransfer {
    pub(crate) record_data: TransferRecordData,
    pub(crate) target: Target,
    pub(crate) head: Option<ResponseHead>,
    pub(crate) error: Error,
}

#[pymethods]
impl FailedTransfer {
    /// Returns the record (the JSON description of the transfer) as text.
    fn record(&self) -> String {
        self.record_data.json(&self.target, self.head.as_ref(), Some(&self.error))
    }
}

/// Returns a body as text; `None` if the body is not valid text in its charset.
#[pyfunction]
#[pyo3(signature = (body, content_type=None))]
pub(crate) fn body_text(body: &[u8], content_type: Option<&str>) -> Option<String> {
    let mut pieces = BodyTextPieces::new(body.to_vec(), content_type.map(str::as_bytes)).ok()?;
    let mut text = String::with_capacity(body.len());
    while let Some(piece) = pieces.next_piece() {
        text.push_str(&piece);
    }
    Some(text)
}
