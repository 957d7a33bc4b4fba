//! Finders for bytes that usually occur in the next few bytes. There, they are faster than
//! `memchr`, which selects its code for the processor at run time and must be called. The finders
//! use the vector instructions that each processor of the architecture has, and are inlined.

use memchr::memchr;

#[cfg(target_arch = "aarch64")]
use memchr::arch::aarch64::neon::memchr::{One, Three as ThreeByteSearcher};
#[cfg(target_arch = "x86_64")]
use memchr::arch::x86_64::sse2::memchr::{One, Three as ThreeByteSearcher};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable::{One, ThreeByteSearcher};

/// The number of bytes that a finder examines inline, before it calls a function.
const NEAR: usize = 32;

/// A finder for the first occurrence of any of three byte values.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstOfThreeBytesFinder {
    /// The vector search for the three values in a block of [`NEAR`] bytes. `None` if the processor
    /// lacks the vector instructions of its architecture.
    near: Option<ThreeByteSearcher>,
    bytes: [u8; 3],
}

impl FirstOfThreeBytesFinder {
    pub(super) fn new(bytes: [u8; 3]) -> Self {
        Self { near: ThreeByteSearcher::new(bytes[0], bytes[1], bytes[2]), bytes }
    }

    /// Returns the index of the first byte in `text` that is one of the three values; `None` if
    /// there is none.
    #[inline(always)]
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        if let Some(near) = &self.near
            && let Some(start) = text.first_chunk::<NEAR>()
            && let found @ Some(_) = near.find(start)
        {
            return found;
        }
        self.find_after_near(text)
    }

    /// Continues [`find`](Self::find) after the first [`NEAR`] bytes of `text`, which contain none
    /// of the three values. The result is an index into the whole `text`; `None` if there is no
    /// such byte.
    #[inline(never)]
    fn find_after_near(&self, text: &[u8]) -> Option<usize> {
        let mut at = NEAR;
        while at < 4 * NEAR
            && let Some(near) = &self.near
            && let Some(part) = text.get(at..).and_then(|rest| rest.first_chunk::<NEAR>())
        {
            if let Some(found) = near.find(part) {
                return Some(at + found);
            }
            at += NEAR;
        }
        self.find_far(text)
    }

    #[inline(never)]
    fn find_far(&self, text: &[u8]) -> Option<usize> {
        let [one, two, three] = self.bytes;
        memchr::memchr3(one, two, three, text)
    }
}

/// Returns the index of the first `byte` in `text`; `None` if there is none.
#[inline(always)]
pub(super) fn find_near(byte: u8, text: &[u8]) -> Option<usize> {
    if let Some(near) = One::new(byte)
        && let Some(start) = text.first_chunk::<NEAR>()
        && let found @ Some(_) = near.find(start)
    {
        return found;
    }
    find_far(byte, text)
}

#[inline(never)]
fn find_far(byte: u8, text: &[u8]) -> Option<usize> {
    memchr(byte, text)
}

/// Portable finders, for processors whose vector instructions this module does not use.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod portable {
    use memchr::arch::all::memchr;

    pub(super) struct One(memchr::One);

    impl One {
        pub(super) fn new(byte: u8) -> Option<Self> {
            Some(Self(memchr::One::new(byte)))
        }

        pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
            self.0.find(text)
        }
    }

    #[derive(Clone, Copy, Debug)]
    pub(super) struct ThreeByteSearcher(memchr::Three);

    impl ThreeByteSearcher {
        pub(super) fn new(one: u8, two: u8, three: u8) -> Option<Self> {
            Some(Self(memchr::Three::new(one, two, three)))
        }

        pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
            self.0.find(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_byte_is_found_at_every_distance() {
        let finder = FirstOfThreeBytesFinder::new([b'<', b'/', b'&']);
        for length in 0..150_usize {
            let text: Vec<u8> = (0..length).map(|index| b"ab\0=;\xbc"[index % 6]).collect();
            assert_eq!(find_near(b'<', &text), None);
            assert_eq!(finder.find(&text), None);
            for at in 0..length {
                for byte in *b"</&" {
                    let mut text = text.clone();
                    text[length - 1] = byte;
                    text[at] = byte;
                    assert_eq!(find_near(byte, &text), Some(at));
                    assert_eq!(finder.find(&text), Some(at));
                }
            }
        }
    }
}
