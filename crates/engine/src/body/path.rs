//! The way of a body from its framing to its sink: content decoding, then extraction, then the sink. Each stage is
//! there only when asked for; without any, the bytes reach the sink as they were received.
//!
//! ```
//! use haul::body::path::BodyPath;
//! use haul::sink::memory::Memory;
//! let path = BodyPath::new(Box::new(Memory::default()));
//! ```

use std::sync::Arc;

use super::Decoder;
use crate::Result;
use crate::buffer::Lease;
use crate::pipeline::Extractor;
use crate::request::RequestOptions;
use crate::sink::records::Records;
use crate::sink::{Begin, Sink, Wake};

/// The stages and the sink of one body.
pub struct BodyPath {
    decoder: Option<Decoder>,
    extractor: Option<Extractor>,
    records: Records,
    sink: Box<dyn Sink>,
}

impl BodyPath {
    /// Straight to the sink.
    #[must_use]
    pub fn new(sink: Box<dyn Sink>) -> Self {
        Self { decoder: None, extractor: None, records: Records::default(), sink }
    }

    /// What this finds in the body goes to the sink, instead of the body.
    #[must_use]
    pub fn extracting(mut self, extractor: Extractor) -> Self {
        self.extractor = Some(extractor);
        self
    }

    /// The sink.
    #[must_use]
    pub fn sink(&self) -> &dyn Sink {
        &*self.sink
    }

    /// The extractor, for another body.
    #[must_use]
    pub fn into_extractor(self) -> Option<Extractor> {
        self.extractor.map(|mut extractor| {
            extractor.reset();
            extractor
        })
    }

    /// A body of this content coding begins.
    ///
    /// # Errors
    /// An unknown coding, or a sink that cannot be opened.
    pub fn begin(&mut self, begin: &Begin<'_>, coding: &[u8], options: &RequestOptions) -> Result<()> {
        self.decoder = match coding {
            b"" => None,
            coding => Decoder::new(coding, options.decode_limits)?,
        };
        let plain = self.decoder.is_none() && self.extractor.is_none();
        self.sink.begin(&Begin { head: begin.head, length: begin.length.filter(|_| plain) })?;
        if options.include_head {
            self.sink.bytes(Lease::borrowed(begin.head.raw()))?;
        }
        Ok(())
    }

    /// How many bytes may be pushed now.
    pub fn credit(&mut self, waker: Option<&Arc<dyn Wake>>, token: usize) -> u64 {
        self.sink.credit(waker, token)
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
                extractor.push(lease.bytes(), &mut |found| {
                    records.push(found);
                    Ok(())
                })?;
                deliver(records, &mut **sink)
            }
            (Some(decoder), None) => decoder.push(lease.bytes(), &mut |piece| sink.bytes(Lease::borrowed(piece))),
            (Some(decoder), Some(extractor)) => {
                decoder.push(lease.bytes(), &mut |piece| {
                    extractor.push(piece, &mut |found| {
                        records.push(found);
                        Ok(())
                    })
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
        let mut found = |found: &[u8]| {
            records.push(found);
            Ok(())
        };
        if let Some(decoder) = decoder {
            decoder.finish()?;
        }
        if let Some(extractor) = extractor {
            extractor.finish(&mut found)?;
            deliver(records, &mut **sink)?;
        }
        sink.finish()
    }

    /// Forgets what came so far, for another attempt. `false` if some of it has gone out.
    pub fn restart(&mut self) -> bool {
        self.decoder = None;
        self.records.clear();
        if let Some(extractor) = &mut self.extractor {
            extractor.reset();
        }
        self.sink.restart()
    }
}

fn deliver(records: &mut Records, sink: &mut dyn Sink) -> Result<()> {
    if records.is_empty() { Ok(()) } else { sink.records(records) }
}
