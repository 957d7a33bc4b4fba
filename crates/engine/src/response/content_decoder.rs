//! Decodes a response's content in small steps, as the program reads it.

use crate::Result;
use crate::body::BodyDecoder;
use crate::buffer_pool::KeptBodyBytes;

/// The number of received bytes that are decoded in the first step. In later steps, the number is
/// chosen by the ratio of decoded to received bytes so far, to reach [`TARGET_STEP_OUTPUT`].
const FIRST_STEP_INPUT: usize = 4 << 10;
const MIN_STEP_INPUT: usize = 256;
const MAX_STEP_INPUT: usize = 64 << 10;
/// The number of decoded bytes that one decoding step should not exceed. They are kept in memory
/// until the program reads them.
const TARGET_STEP_OUTPUT: usize = 128 << 10;

/// The decoder of a compressed body, with the received piece of the body that is being decoded.
pub(super) struct ContentDecoder {
    decoder: Option<BodyDecoder>,
    piece: Option<KeptBodyBytes>,
    /// The number of bytes at the start of `piece` that were already decoded or, without a decoder,
    /// consumed.
    at: usize,
    plain: Vec<u8>,
    /// The number of bytes at the start of `plain` (the decoded bytes) that the program has
    /// consumed.
    taken: usize,
    step: usize,
}

impl ContentDecoder {
    pub(super) fn new(decoder: Option<BodyDecoder>) -> Self {
        Self { decoder, piece: None, at: 0, plain: Vec::new(), taken: 0, step: FIRST_STEP_INPUT }
    }

    /// Returns true if the body is not decoded, so that the program receives the bytes as they
    /// arrive.
    pub(super) fn has_no_decoder(&self) -> bool {
        self.decoder.is_none()
    }

    /// Returns the decoded bytes of the body that the program has not consumed yet.
    pub(super) fn ready(&self) -> &[u8] {
        match (&self.decoder, &self.piece) {
            (None, Some(piece)) => &piece.bytes()[self.at..],
            (None, None) => &[],
            (Some(_), _) => &self.plain[self.taken..],
        }
    }

    /// Marks `n` of the [`ready`](Self::ready) bytes as consumed.
    pub(super) fn consume(&mut self, n: usize) {
        let at = if self.decoder.is_none() { &mut self.at } else { &mut self.taken };
        *at += n;
    }

    /// Decodes more of the current piece, until there are decoded bytes to consume. Returns false
    /// if the piece is used up, so that the next piece of the body is needed.
    ///
    /// # Errors
    /// The error of the decoder.
    pub(super) fn decode_more(&mut self) -> Result<bool> {
        let Some(decoder) = &mut self.decoder else { return Ok(!self.ready().is_empty()) };
        while self.taken == self.plain.len() {
            let rest = self.piece.as_ref().map_or(&[][..], |piece| &piece.bytes()[self.at..]);
            if rest.is_empty() {
                return Ok(false);
            }
            let step = rest.len().min(self.step);
            self.plain.clear();
            self.taken = 0;
            let plain = &mut self.plain;
            decoder.push(&rest[..step], &mut |bytes| {
                plain.extend_from_slice(bytes);
                Ok(())
            })?;
            self.at += step;
            self.step = if self.plain.len() > TARGET_STEP_OUTPUT {
                (self.step / 2).max(MIN_STEP_INPUT)
            } else {
                (self.step * 2).min(MAX_STEP_INPUT)
            };
        }
        Ok(true)
    }

    /// Sets the next received piece of the body. Call this when the previous piece is used up.
    pub(super) fn set_piece(&mut self, piece: KeptBodyBytes) {
        self.piece = Some(piece);
        self.at = 0;
    }

    /// Checks at the end of the body that the compressed content is complete.
    ///
    /// # Errors
    /// The compressed content is truncated.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.piece = None;
        self.at = 0;
        self.decoder.as_mut().map_or(Ok(()), BodyDecoder::finish)
    }
}
