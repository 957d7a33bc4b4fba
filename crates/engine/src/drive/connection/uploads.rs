//! Uploads of the requests that share a connection. They take turns to send, within the peer's
//! flow-control windows.

use std::time::Instant;

use haul_proto::RequestId;
use rustc_hash::FxHashMap;

use super::sending::{ContentReadResult, ProtocolMachine, content_read_error, read_content_into_machine};
use crate::Error;
use crate::body::upload::BodyUpload;
use crate::drive::zero_copy_to_sink::ExtraPollDescriptor;
use crate::transfer::Transfer;

/// A map whose keys are stream IDs. It is used several times for each response. haul itself numbers
/// the streams, so no peer can choose IDs that collide, and a fast hash is safe. The default hash
/// took 2,200 of the 52,000 instructions of a small response.
pub(super) type StreamMap<T> = FxHashMap<u64, T>;

/// Returns the only stream of a connection; `None` if the connection has no stream or several
/// streams.
pub(super) fn only_stream<S>(active: &StreamMap<S>) -> Option<&S> {
    if active.len() == 1 { active.values().next() } else { None }
}

/// Returns a mutable reference to the only stream of a connection; `None` if the connection has no
/// stream or several streams.
pub(super) fn only_stream_mut<S>(active: &mut StreamMap<S>) -> Option<&mut S> {
    if active.len() == 1 { active.values_mut().next() } else { None }
}

/// Returns the descriptors that a wait for the only stream of a connection includes: the output of
/// the stream's sink, if it is full, and the source of `upload`, if the upload waits for it.
pub(super) fn extra_descriptors<'a>(
    transfer: &'a mut Transfer,
    upload: Option<&'a dyn BodyUpload>,
) -> [Option<ExtraPollDescriptor<'a>>; 2] {
    [
        transfer.full_output().map(ExtraPollDescriptor::FullOutput),
        upload.and_then(BodyUpload::source).map(ExtraPollDescriptor::Source),
    ]
}

/// A stream that may have content to send.
pub(super) trait UploadingStream {
    /// Returns the content that remains to be read and sent, and the stream's transfer. `None` if
    /// there is no content.
    fn upload(&mut self) -> Option<(&mut dyn BodyUpload, &mut Transfer)>;
}

/// The uploads in progress on a connection, and the state of their content sources.
#[derive(Default)]
pub(super) struct Uploads {
    /// The IDs of streams with uploads, in the order in which the streams send content in each
    /// round.
    turns: Vec<u64>,
    /// The IDs of the streams whose content source has failed, with their errors.
    failed: Vec<(u64, Error)>,
    /// True if the content source of an upload had no bytes at the last read, and has not ended.
    is_starved: bool,
    /// The earliest time when a content source may have more bytes; `None` if no source has set a
    /// time.
    resumes_at: Option<Instant>,
    /// True if a read of content may block the sending thread.
    may_block: bool,
    /// True if sending stopped although more content can be sent, because the connection must first
    /// be checked for an early response.
    pub(super) is_interrupted: bool,
}

impl Uploads {
    /// Adds the upload of this request. `may_block` is true if a read of its content may block the
    /// sending thread.
    pub(super) fn begin(&mut self, id: RequestId, may_block: bool) {
        self.turns.push(id.0);
        self.may_block = may_block;
    }

    /// Returns true if a read of content may block the sending thread.
    pub(super) fn may_block(&self) -> bool {
        self.may_block && self.is_not_empty()
    }

    /// Returns true if an upload is in progress.
    pub(super) fn is_not_empty(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Returns true if the content source of an upload has failed since the last call of
    /// [`Uploads::take_failed`].
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns the streams whose content source has failed since the last call, with their errors.
    pub(super) fn take_failed(&mut self) -> Vec<(u64, Error)> {
        std::mem::take(&mut self.failed)
    }

    /// Returns true if the content source of an upload had no bytes at the last read.
    pub(super) fn is_waiting_for_source(&self) -> bool {
        self.is_starved
    }

    /// Returns the time at which [`Uploads::read_into_machine`] must be called even if no event has
    /// occurred until then; `None` if there is no such time.
    pub(super) fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at
    }

    /// Reads content of all uploads into the protocol machine, as much as it accepts.
    pub(super) fn read_into_machine<S: UploadingStream>(
        &mut self,
        machine: &mut impl ProtocolMachine,
        active: &mut StreamMap<S>,
    ) {
        let Self { turns, failed, is_starved, resumes_at, .. } = self;
        (*is_starved, *resumes_at) = (false, None);
        turns.retain(|&id| {
            let Some((upload, transfer)) = active.get_mut(&id).and_then(UploadingStream::upload) else { return false };
            match read_content_into_machine(machine, RequestId(id), upload, |piece| {
                transfer.on_upload_progress();
                transfer.on_sent(piece);
            }) {
                Ok(ContentReadResult::All) => {
                    transfer.set_sending(false);
                    transfer.set_starved(false);
                    false
                }
                Ok(ContentReadResult::Waits) => {
                    transfer.set_sending(true);
                    transfer.set_starved(false);
                    true
                }
                Ok(ContentReadResult::Starved(until)) => {
                    transfer.set_sending(false);
                    transfer.set_starved(true);
                    *is_starved = true;
                    *resumes_at = [*resumes_at, until].into_iter().flatten().min();
                    true
                }
                Err(error) => {
                    failed.push((id, content_read_error(error)));
                    false
                }
            }
        });
    }
}
