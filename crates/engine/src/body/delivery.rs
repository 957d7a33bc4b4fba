//! The delivery of a body to its sink: content decoding, then the search for values, then the sink.
//! Decoding and search are optional. Without them, the sink gets the bytes as they were received.
//!
//! ```
//! use haul::body::delivery::BodyDelivery;
//! use haul::sink::memory::MemorySink;
//! let path = BodyDelivery::new(Box::new(MemorySink::default()));
//! ```

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use haul_policy::target::Target;
use rustix::fd::BorrowedFd;

use super::decoder_memory_budget::{DecoderMemoryBudget, DecoderMemoryShare, MAX_SMALL_WINDOW};
use super::utf8_conversion::Utf8ConvertingReader;
use super::{BodyDecoder, DecodeLimits};
use crate::Result;
use crate::buffer_pool::OfferedBodyBytes;
use crate::extraction::{OnValue, PageInfo, PageSearch};
use crate::fleet::FinishedTransferContent;
use crate::pagination::PageContentObserver;
use crate::sink::extracted_value_list::ExtractedValues;
use crate::sink::partial::PartialFile;
use crate::sink::{DirectWriteCounter, ExistingPartialContent, ReceivedIntoSink, ResponseForSink, Sink, TransferWaker};

/// The number of bytes of one body that may be buffered without counting towards the limit of the
/// [`DecoderMemoryBudget`]: by the search for values, and by the observer that looks for the link
/// to the next page.
const MAX_UNCOUNTED_SEARCH: u64 = 256 << 10;

/// The delivery of one body: its decoder, the search for values in it, and its sink. For a page of
/// a paginated listing, also the observer that looks for the next page.
pub struct BodyDelivery {
    // Boxed, since most bodies have neither and transfers are moved.
    decoder: Option<Box<BodyDecoder>>,
    search: Option<Box<BodyValueExtraction>>,
    /// The page observer, which reads the link to the next page; `None` unless the body is a page
    /// of a paginated listing.
    page: Option<Box<PageContentObserver>>,
    sink: Box<dyn Sink>,
    /// The memory that the decoder shares with the decoders of other bodies; `None` if the
    /// decoder's memory is not limited.
    memory: Option<Arc<DecoderMemoryBudget>>,
    share: Option<DecoderMemoryShare>,
    /// The share of the budget `memory` for the search for values and the page observer. Its size
    /// is the largest number of bytes that these two may ever buffer together. `None` until they
    /// hold more than [`MAX_UNCOUNTED_SEARCH`] bytes.
    kept_share: Option<DecoderMemoryShare>,
    /// Received bytes of the body that are not decoded yet, because the decoder waits for memory;
    /// usually empty.
    pending: Vec<u8>,
}

impl BodyDelivery {
    /// Makes a delivery to this sink. The body is not searched.
    #[must_use]
    pub fn new(sink: Box<dyn Sink>) -> Self {
        Self {
            decoder: None,
            search: None,
            page: None,
            sink,
            memory: None,
            share: None,
            kept_share: None,
            pending: Vec::new(),
        }
    }

    /// Searches the body for values, and delivers the values to the sink, not the body itself.
    /// `search_in` says whether the text of the body, converted to UTF-8, or its unchanged bytes
    /// are searched.
    #[must_use]
    pub fn with_search(mut self, search: PageSearch, search_in: RegexInputKind) -> Self {
        self.search = Some(Box::new(BodyValueExtraction {
            search,
            search_in,
            text: None,
            has_values: false,
            records: ExtractedValues::default(),
        }));
        self
    }

    /// Sets the time after which the search for values fails, so that it does not exceed the time
    /// limit of the transfer; `None` for no limit.
    pub(crate) fn set_search_deadline(&mut self, deadline: Option<Instant>) {
        if let Some(body) = &mut self.search {
            body.search.set_deadline(deadline);
        }
    }

    /// Makes `observer` read the decoded body before it reaches the sink. `None` means that there
    /// is no observer.
    #[must_use]
    pub(crate) fn with_page_observer(mut self, observer: Option<Box<PageContentObserver>>) -> Self {
        self.page = observer;
        self
    }

    /// Removes and returns the page observer. Call this after the end of the transfer. Returns
    /// `None` if there is no page observer.
    pub(crate) fn take_page_observer(&mut self) -> Option<Box<PageContentObserver>> {
        let mut page = self.page.take()?;
        if let Some(search) = &self.search {
            page.set_has_values(search.has_values);
        }
        Some(page)
    }

    /// Makes the decoder and the search of this body use the memory limit that `memory` sets for
    /// many bodies. Decoder and search keep their part of the memory until the body ends. Do not
    /// use this for a body that can only end after other bodies: while this body keeps its memory,
    /// the others might wait for that memory for ever.
    #[must_use]
    pub fn with_decoder_memory(mut self, memory: &Arc<DecoderMemoryBudget>) -> Self {
        self.memory = Some(Arc::clone(memory));
        self
    }

    /// Returns the sink that gets the delivered bytes.
    #[must_use]
    pub fn sink(&self) -> &dyn Sink {
        &*self.sink
    }

    /// Returns the sink after the end of the transfer.
    #[must_use]
    pub fn into_sink(self) -> Box<dyn Sink> {
        self.sink
    }

    /// Removes and returns the content that the sink has collected for the transfer's record (such
    /// as a `--jsonl` line). Returns `None` if the sink is no
    /// [`RecordMemorySink`](crate::fleet::RecordMemorySink).
    pub fn take_record(&mut self) -> Option<FinishedTransferContent> {
        self.sink.take_record()
    }

    /// Returns the search, so that it can be used for another body. Returns `None` if the body is
    /// not searched.
    #[must_use]
    pub fn into_search(self) -> Option<PageSearch> {
        self.search.map(|body| {
            let mut search = body.search;
            search.reset();
            search
        })
    }

    /// Begins the body of a response. First writes the bytes `before`, such as the response's head,
    /// to the sink. `coding` is the value of `Content-Encoding`. It is empty for content without a
    /// coding.
    ///
    /// # Errors
    /// The coding is unknown, or the sink cannot be opened.
    pub fn begin(
        &mut self,
        begin: &ResponseForSink<'_>,
        before: &[u8],
        coding: &[u8],
        limits: DecodeLimits,
    ) -> Result<()> {
        let decoder = match coding {
            b"" => Ok(None),
            coding if self.search.is_none() && self.page.is_none() && self.sink.takes_encoded(coding) => Ok(None),
            coding => BodyDecoder::new(coding, limits),
        };
        if before.is_empty() && decoder.is_err() {
            return decoder.map(drop);
        }
        let plain = matches!(decoder, Ok(None)) && self.search.is_none();
        let validator = begin.validator.filter(|_| plain && before.is_empty());
        let info = || PageInfo { url: Some(begin.place), content_type: begin.head.get("content-type") };
        if let Some(search) = &mut self.search {
            search.begin(&info());
        }
        if let Some(page) = &mut self.page {
            page.begin(&info());
            page.set_length(begin.length.filter(|_| matches!(decoder, Ok(None))));
        }
        self.sink.begin(&ResponseForSink { length: begin.length.filter(|_| plain), validator, ..*begin })?;
        if !before.is_empty() {
            self.sink.bytes(OfferedBodyBytes::borrowed(before))?;
        }
        // The heads in `before` show why a body cannot be decoded, so they are delivered first.
        self.decoder = decoder?.map(Box::new);
        self.share = self.memory.as_ref().filter(|_| self.decoder.is_some()).map(DecoderMemoryShare::new);
        Ok(())
    }

    /// Passes bytes that follow the body, such as trailers, to the sink.
    ///
    /// # Errors
    /// The error of the sink.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.search.is_some() { Ok(()) } else { self.sink.bytes(OfferedBodyBytes::borrowed(bytes)) }
    }

    /// Returns true if the sink gets the bytes of the body as they were received, because no
    /// decoder, search or page observer uses them.
    #[must_use]
    pub fn is_delivered_as_received(&self) -> bool {
        self.is_unchanged() && self.page.is_none()
    }

    /// Returns true if the body is neither decoded nor searched, so that the sink gets its bytes as
    /// they were received.
    fn is_unchanged(&self) -> bool {
        self.decoder.is_none() && self.search.is_none()
    }

    /// Returns the number of decoded bytes that were delivered, or `None` if the body is not coded.
    #[must_use]
    pub fn decoded_bytes(&self) -> Option<u64> {
        self.decoder.as_ref().map(|decoder| decoder.output_bytes())
    }

    /// Returns the part of this target's content that the sink already has, for example from an
    /// interrupted download. Returns `None` if the sink has no part of it.
    pub fn existing_partial_content(&mut self, target: &Target) -> Option<ExistingPartialContent> {
        if self.search.is_some() || self.page.is_some() { None } else { self.sink.partial(target) }
    }

    /// Returns true if the sink keeps the existing content of its file and writes the body after it.
    #[must_use]
    pub fn continues_file(&self) -> bool {
        self.sink.continues_file()
    }

    /// Advances to the next missing range of the sink's file, once the current range is complete.
    /// Returns the new range, or `None` if no range is missing any more.
    pub fn next_gap(&mut self) -> Option<Range<u64>> {
        self.sink.next_gap()
    }

    /// Returns the sink's file, if several connections may write parts of the body to it in any
    /// order. Returns `None` for other sinks.
    pub fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        if self.is_delivered_as_received() { self.sink.partial_file() } else { None }
    }

    /// Returns the counter for body bytes that are written to the sink's file directly, not through
    /// the sink. Returns `None` if the sink has no such counter.
    pub fn counter(&mut self) -> Option<Arc<dyn DirectWriteCounter>> {
        self.sink.counter()
    }

    /// Returns the number of received bytes that may be passed to [`push`](Self::push) now, or
    /// `u64::MAX` if there is no limit. If the number is 0, `waker` is woken with `token` (the
    /// token of the connection) as soon as more bytes may be passed.
    pub fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let mut credit = self.sink.credit(waker, token);
        if credit > 0 && !self.may_keep_more(waker, token) && !self.sink.is_first(waker, token) {
            credit = 0;
        }
        let Some(decoder) = self.decoder.as_ref().filter(|_| credit > 0) else { return credit };
        // The sink's credit counts decoded bytes.
        let credit = if credit == u64::MAX { credit } else { credit.div_ceil(decoder.expansion()) };
        match &mut self.share {
            Some(share) if !self.pending.is_empty() && !share.is_admitted() && !self.sink.is_first(None, token) => {
                let window = decoder.expected_window(&self.pending);
                let goes_on = share.try_admit(window, waker, token) || self.sink.is_first(waker, token);
                if goes_on { credit } else { 0 }
            }
            _ => credit,
        }
    }

    /// Returns true if the search and the page observer may buffer more bytes of the body: they
    /// hold at most [`MAX_UNCOUNTED_SEARCH`] bytes, or the [`DecoderMemoryBudget`] (if any) has
    /// room for the most that they may ever hold. If the result is false, `waker` is woken with
    /// `token` (the token of the connection) when memory is released.
    fn may_keep_more(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> bool {
        let Some(memory) = &self.memory else { return true };
        let (search, page) = (self.search.as_ref().map(|body| &body.search), self.page.as_ref());
        let held = search.map_or(0, PageSearch::memory_in_use) + page.map_or(0, |page| page.buffered_bytes());
        if held <= MAX_UNCOUNTED_SEARCH {
            return true;
        }
        let most = search
            .map_or(0, PageSearch::max_memory_in_use)
            .saturating_add(page.map_or(0, |page| page.max_buffered_bytes()));
        self.kept_share.get_or_insert_with(|| DecoderMemoryShare::new(memory)).try_admit(most, waker, token)
    }

    /// Drops the decoder of a finished body. Releases the memory of the decoder and of the search.
    pub fn release_decoder(&mut self) {
        (self.decoder, self.share, self.kept_share, self.pending) = (None, None, None, Vec::new());
    }

    /// Returns true if the decoder or the search of this body uses the memory that all bodies
    /// share, a [`DecoderMemoryBudget`].
    pub fn uses_decoder_memory(&self) -> bool {
        self.share.is_some() || self.kept_share.is_some()
    }

    /// Returns true if the output of all other bodies waits for the end of this body.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.sink.is_awaited()
    }

    /// Delivers received bytes of the body that lie in several buffers.
    ///
    /// # Errors
    /// The error of the decoder, of the search or of the sink.
    pub fn push_pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        if self.is_delivered_as_received() {
            self.sink.pieces(pieces)
        } else {
            pieces.iter().try_for_each(|piece| self.push(OfferedBodyBytes::borrowed(piece)))
        }
    }

    /// Returns the descriptor to which the kernel may move body bytes directly from the socket.
    /// Returns `None` if the sink has no such descriptor, or if the bytes must be decoded or
    /// searched first.
    pub fn direct_descriptor(&mut self) -> Option<BorrowedFd<'_>> {
        if self.is_delivered_as_received() { self.sink.direct() } else { None }
    }

    /// Sets whether the sink keeps the bytes that its output does not accept
    /// ([`Sink::keep_unwritten`]).
    pub(crate) fn keep_unwritten(&mut self, keeps: bool) {
        self.sink.keep_unwritten(keeps);
    }

    /// Returns the descriptor of the sink's output if the sink keeps bytes for it
    /// ([`Sink::full_output`]).
    pub(crate) fn full_output(&mut self) -> Option<BorrowedFd<'_>> {
        self.sink.full_output()
    }

    /// Writes the bytes that the sink keeps, as far as its output accepts them
    /// ([`Sink::write_kept`]).
    pub(crate) fn write_kept(&mut self) -> Result<()> {
        self.sink.write_kept()
    }

    /// Receives at most `most` bytes from the socket directly into the memory of the sink, and
    /// returns their number. Returns `None` if the sink cannot do that, or if the bytes must be
    /// decoded or searched first.
    pub fn receive_into_sink(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        if self.is_delivered_as_received() { self.sink.receive(socket, most) } else { None }
    }

    /// Reports to the sink that `bytes` bytes were moved to the descriptor that
    /// [`BodyDelivery::direct_descriptor`] returned.
    pub fn on_moved_bytes(&mut self, bytes: u64) {
        self.sink.moved(bytes);
    }

    /// Delivers received bytes of the body.
    ///
    /// # Errors
    /// The error of the decoder, of the search or of the sink.
    pub fn push(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        if self.is_delivered_as_received() {
            return self.sink.bytes(offered);
        }
        if self.must_wait_for_memory(offered.bytes()) {
            self.pending.extend_from_slice(offered.bytes());
            return Ok(());
        }
        self.push_pending()?;
        self.process(offered)
    }

    /// Returns true if the received bytes `bytes` must be kept undecoded, because the decoder may
    /// not use the memory for its window yet.
    fn must_wait_for_memory(&mut self, bytes: &[u8]) -> bool {
        let (Some(decoder), Some(share)) = (&self.decoder, &mut self.share) else { return false };
        if share.is_admitted() || decoder.has_begun() {
            return false;
        }
        let first = if self.pending.is_empty() { bytes } else { &self.pending[..] };
        let window = decoder.expected_window(first);
        window >= MAX_SMALL_WINDOW && !self.sink.is_first(None, 0) && !share.try_admit(window, None, 0)
    }

    /// Decodes and delivers the received bytes that had to wait until memory for the decoder was
    /// free.
    fn push_pending(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        self.process(OfferedBodyBytes::borrowed(&pending))
    }

    fn process(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        let Self { decoder, search, page, sink, share, .. } = self;
        let mut observe = |piece: &[u8]| page.iter_mut().for_each(|page| page.push(piece));
        let pushed = match (&mut *decoder, search) {
            (None, None) => {
                observe(offered.bytes());
                sink.bytes(offered)
            }
            (None, Some(search)) => {
                observe(offered.bytes());
                sink.page(offered.bytes())?;
                search.push(offered.bytes(), &mut **sink)?;
                search.deliver(&mut **sink)
            }
            (Some(decoder), None) => decoder.push(offered.bytes(), &mut |piece| {
                observe(piece);
                sink.bytes(OfferedBodyBytes::borrowed(piece))
            }),
            (Some(decoder), Some(search)) => {
                decoder.push(offered.bytes(), &mut |piece| {
                    observe(piece);
                    sink.page(piece)?;
                    search.push(piece, &mut **sink)
                })?;
                search.deliver(&mut **sink)
            }
        };
        if let (Some(decoder), Some(share)) = (decoder, share) {
            share.set_used_bytes(decoder.window_memory());
        }
        pushed
    }

    /// Ends the body. Delivers the bytes that the decoder and the search still contain, and
    /// completes the sink.
    ///
    /// # Errors
    /// The error of the decoder, of the search or of the sink. An example is coded content that
    /// ended too early.
    pub fn finish(&mut self) -> Result<()> {
        self.push_pending()?;
        if let Some(decoder) = &mut self.decoder {
            decoder.finish()?;
        }
        self.share = None;
        let Self { search, page, sink, .. } = self;
        let searched = match search {
            Some(search) => search.finish(&mut **sink).and_then(|()| search.deliver(&mut **sink)),
            None => Ok(()),
        };
        if let Some(page) = page {
            page.finish_content();
        }
        self.kept_share = None;
        searched?;
        self.sink.finish()
    }

    /// Keeps the delivered bytes after the body was interrupted, so that a retry requests only the
    /// missing bytes. Returns false if the sink cannot keep them, or if the body is decoded or
    /// searched.
    pub fn keep_delivered_part(&mut self) -> bool {
        self.is_unchanged() && self.sink.keeps()
    }

    /// Discards the bytes of the body received so far, so that a retry delivers the body from the
    /// beginning. Returns false if the sink has already output some of the bytes.
    pub fn restart(&mut self) -> bool {
        self.release_decoder();
        if let Some(page) = &mut self.page {
            page.restart();
        }
        if let Some(search) = &mut self.search {
            search.search.reset();
            search.records.clear();
            search.has_values = false;
        }
        self.sink.restart()
    }
}

/// The form of the body that a regular expression is matched against: text or bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RegexInputKind {
    /// The body's text as UTF-8, converted from its charset.
    #[default]
    Text,
    /// The body's bytes, unchanged.
    Bytes,
}

/// The search for values in a body: the search itself and, for a search in text, the converter to
/// UTF-8.
struct BodyValueExtraction {
    search: PageSearch,
    search_in: RegexInputKind,
    /// The converter of the body to UTF-8; `None` if the unchanged bytes are searched.
    text: Option<Utf8ConvertingReader>,
    /// True if a value was found in the body.
    has_values: bool,
    /// The values that are not delivered yet.
    records: ExtractedValues,
}

impl BodyValueExtraction {
    fn begin(&mut self, page: &PageInfo<'_>) {
        self.search.begin(page);
        self.text = (self.search_in == RegexInputKind::Text).then(|| self.search.text_reader(page));
    }

    fn push(&mut self, piece: &[u8], sink: &mut dyn Sink) -> Result<()> {
        let Self { search, text, has_values, records, .. } = self;
        let on_value: &mut OnValue<'_> = &mut |expression, value| {
            *has_values = true;
            add_match(expression, value, records, sink)
        };
        match text {
            Some(text) => text.push(piece, &mut |piece, encoding| search.push_converted(piece, encoding, on_value)),
            None => search.push(piece, on_value),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let Self { search, text, has_values, records, .. } = self;
        let on_value: &mut OnValue<'_> = &mut |expression, value| {
            *has_values = true;
            add_match(expression, value, records, sink)
        };
        if let Some(text) = text {
            text.finish(&mut |piece, encoding| search.push_converted(piece, encoding, on_value))?;
        }
        search.finish(on_value)
    }

    /// Passes the values that were found so far to the sink.
    fn deliver(&mut self, sink: &mut dyn Sink) -> Result<()> {
        if self.records.is_empty() { Ok(()) } else { sink.records(&mut self.records) }
    }
}

/// The number of collected matches at which the matches are delivered to the sink. Without this
/// limit, the matches in one large piece of a body could exceed the sink's memory limit.
const MAX_MATCHES_PER_BATCH: usize = 1024;

/// The total size of the collected matches, in bytes, at which the matches are delivered to the
/// sink.
const MAX_BATCH_BYTES: usize = 64 << 10;

fn add_match(expression: usize, found: &[u8], records: &mut ExtractedValues, sink: &mut dyn Sink) -> Result<()> {
    records.push_found(expression, found);
    let is_full = records.len() >= MAX_MATCHES_PER_BATCH || records.value_bytes() >= MAX_BATCH_BYTES;
    if is_full { sink.records(records) } else { Ok(()) }
}

#[cfg(all(test, feature = "select"))]
mod memory_tests;
