//! The way of a body from its framing to its sink: content decoding, then extraction, then the sink. Each stage is
//! there only when asked for; without any, the bytes reach the sink as they were received.
//!
//! ```
//! use haul::body::path::BodyPath;
//! use haul::sink::memory::Memory;
//! let path = BodyPath::new(Box::new(Memory::default()));
//! ```

use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use haul_policy::target::Target;

use super::{DecodeLimits, Decoder};
use crate::Result;
use crate::buffer::Lease;
use crate::pipeline::Extractor;
use crate::sink::partial::PartialFile;
use crate::sink::records::Records;
use crate::sink::{Begin, Counter, Partial, Sink, Wake};

/// The stages and the sink of one body.
pub struct BodyPath {
    // Most bodies have neither, and transfers are moved about.
    decoder: Option<Box<Decoder>>,
    extractor: Option<Box<Extractor>>,
    records: Records,
    sink: Box<dyn Sink>,
}

impl BodyPath {
    /// Straight to the sink.
    #[must_use]
    pub fn new(sink: Box<dyn Sink>) -> Self {
        Self { decoder: None, extractor: None, records: Records::default(), sink }
    }

    /// The matches of this go to the sink, instead of the body.
    #[must_use]
    pub fn extracting(mut self, extractor: Extractor) -> Self {
        self.extractor = Some(Box::new(extractor));
        self
    }

    /// The sink.
    #[must_use]
    pub fn sink(&self) -> &dyn Sink {
        &*self.sink
    }

    /// The sink, when the transfer is over.
    #[must_use]
    pub fn into_sink(self) -> Box<dyn Sink> {
        self.sink
    }

    /// The extractor, for another body.
    #[must_use]
    pub fn into_extractor(self) -> Option<Extractor> {
        self.extractor.map(|mut extractor| {
            extractor.reset();
            *extractor
        })
    }

    /// A body of this content coding begins; `before` goes to the sink ahead of it.
    ///
    /// # Errors
    /// An unknown coding, or a sink that cannot be opened.
    pub fn begin(&mut self, begin: &Begin<'_>, before: &[u8], coding: &[u8], limits: DecodeLimits) -> Result<()> {
        let decoder = match coding {
            b"" => Ok(None),
            coding if self.extractor.is_none() && self.sink.takes_coded(coding) => Ok(None),
            coding => Decoder::new(coding, limits),
        };
        if before.is_empty() && decoder.is_err() {
            return decoder.map(drop);
        }
        let plain = matches!(decoder, Ok(None)) && self.extractor.is_none();
        let validator = begin.validator.filter(|_| plain && before.is_empty());
        self.sink.begin(&Begin { length: begin.length.filter(|_| plain), validator, ..*begin })?;
        if !before.is_empty() {
            self.sink.bytes(Lease::borrowed(before))?;
        }
        // The heads that were asked for tell why a body cannot be read.
        self.decoder = decoder?.map(Box::new);
        Ok(())
    }

    /// Output that follows the body without being a part of it goes to the sink unchanged.
    ///
    /// # Errors
    /// What the sink says.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.extractor.is_some() { Ok(()) } else { self.sink.bytes(Lease::borrowed(bytes)) }
    }

    /// Whether bytes reach the sink as they were received.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.decoder.is_none() && self.extractor.is_none()
    }

    /// How many bytes were handed on decoded, where the body is coded.
    #[must_use]
    pub fn decoded(&self) -> Option<u64> {
        self.decoder.as_ref().map(|decoder| decoder.handed_out())
    }

    /// The existing part of this target's content.
    pub fn partial(&mut self, target: &Target) -> Option<Partial> {
        if self.extractor.is_some() { None } else { self.sink.partial(target) }
    }

    /// Where bytes belong next, if a gap is left after those delivered.
    pub fn next_gap(&mut self) -> Option<Range<u64>> {
        self.sink.next_gap()
    }

    /// The file, if its parts may come in any order.
    pub fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        if self.is_plain() { self.sink.partial_file() } else { None }
    }

    /// The counter of bytes that do not pass the sink.
    pub fn counter(&mut self) -> Option<Arc<dyn Counter>> {
        self.sink.counter()
    }

    /// How many bytes may be pushed now.
    pub fn credit(&mut self, waker: Option<&Arc<dyn Wake>>, token: usize) -> u64 {
        self.sink.credit(waker, token)
    }

    /// Whether all other bodies wait for this one to be over.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.sink.is_awaited()
    }

    /// Body bytes as received, in several places.
    ///
    /// # Errors
    /// What a stage or the sink says.
    pub fn push_pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        if self.decoder.is_none() && self.extractor.is_none() {
            self.sink.pieces(pieces)
        } else {
            pieces.iter().try_for_each(|piece| self.push(Lease::borrowed(piece)))
        }
    }

    /// The descriptor that body bytes may be moved to, if nobody on the way has to see them.
    pub fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        if self.decoder.is_some() || self.extractor.is_some() { None } else { self.sink.direct() }
    }

    /// Receives into memory of the sink, if nobody on the way has to see the bytes.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<usize>> {
        if self.is_plain() { self.sink.receive(socket, most) } else { None }
    }

    /// This many bytes were moved there.
    pub fn moved(&mut self, bytes: u64) {
        self.sink.moved(bytes);
    }

    /// Body bytes as received.
    ///
    /// # Errors
    /// What a stage or the sink says.
    pub fn push(&mut self, lease: Lease<'_>) -> Result<()> {
        let Self { decoder, extractor, records, sink } = self;
        match (decoder, extractor) {
            (None, None) => sink.bytes(lease),
            (None, Some(extractor)) => {
                extractor.push(lease.bytes(), &mut |found| gather(found, records, &mut **sink))?;
                deliver(records, &mut **sink)
            }
            (Some(decoder), None) => decoder.push(lease.bytes(), &mut |piece| sink.bytes(Lease::borrowed(piece))),
            (Some(decoder), Some(extractor)) => {
                decoder.push(lease.bytes(), &mut |piece| {
                    extractor.push(piece, &mut |found| gather(found, records, &mut **sink))
                })?;
                deliver(records, &mut **sink)
            }
        }
    }

    /// The body is complete.
    ///
    /// # Errors
    /// What a stage or the sink says, such as coded content that ended too early.
    pub fn finish(&mut self) -> Result<()> {
        let Self { decoder, extractor, records, sink } = self;
        if let Some(decoder) = decoder {
            decoder.finish()?;
        }
        if let Some(extractor) = extractor {
            extractor.finish(&mut |found| gather(found, records, &mut **sink))?;
            deliver(records, &mut **sink)?;
        }
        sink.finish()
    }

    /// Keeps the bytes received so far, if the sink was told to continue from them.
    pub fn keeps(&mut self) -> bool {
        self.is_plain() && self.sink.keeps()
    }

    /// Discards the bytes received so far, for another attempt. `false` if some were output already.
    pub fn restart(&mut self) -> bool {
        self.decoder = None;
        self.records.clear();
        if let Some(extractor) = &mut self.extractor {
            extractor.reset();
        }
        self.sink.restart()
    }
}

/// Values are delivered in batches of this many: a piece of a body can decode to so much, with so many matches, that
/// all of them at once would exceed the sink's budget.
const BATCH: usize = 1024;

fn gather(found: &[u8], records: &mut Records, sink: &mut dyn Sink) -> Result<()> {
    records.push(found);
    if records.len() < BATCH { Ok(()) } else { sink.records(records) }
}

fn deliver(records: &mut Records, sink: &mut dyn Sink) -> Result<()> {
    if records.is_empty() { Ok(()) } else { sink.records(records) }
}
