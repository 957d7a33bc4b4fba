//! A request or response that is being recorded: in memory, or in an unlinked temporary file in the
//! directory of the archive.
//!
//! A message is moved to a file if it is longer than [`MAX_IN_MEMORY`], or if the memory budget of
//! all messages is exhausted. For a compressed archive the file contains the deflate stream of the
//! record, so that a large message needs only a copy at its end, and no further compression.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Crc;
use haul::system::file_metadata_and_flags::FileExt;

use super::digest::{Sha1Digest, Sha1Hasher};
use super::gzip_member::{
    DEFLATER_MEMORY, Deflater, GzipMemberBodyCompressor, encode_member, member_end, member_start,
};
use super::memory_budget::{ReservedMemory, WarcMemoryBudget};
use super::record_head::RECORD_END;

/// The maximum length, in bytes and without the head, of a recorded HTTP message that is kept in
/// memory.
const MAX_IN_MEMORY: usize = 256 << 10;
/// The minimum number of bytes of memory that is reserved for the content of a recorded HTTP
/// message.
const FIRST_RESERVED: usize = 4 << 10;
/// The maximum number of idle compressors that are kept to record later HTTP messages.
const MAX_IDLE_DEFLATERS: usize = 8;

/// The settings, the memory and the compressors that all HTTP messages recorded in an archive
/// share.
#[derive(Debug)]
pub(super) struct RecordingResources {
    directory: PathBuf,
    is_compressed: bool,
    budget: Arc<WarcMemoryBudget>,
    idle: Mutex<Vec<Deflater>>,
}

impl RecordingResources {
    /// Creates the resources of the archive in `directory`. All recorded messages together take at
    /// most `memory` bytes.
    pub(super) fn new(directory: &Path, is_compressed: bool, memory: usize) -> Self {
        let budget = Arc::new(WarcMemoryBudget::new(memory));
        Self { directory: directory.to_owned(), is_compressed, budget, idle: Mutex::default() }
    }

    /// Reserves `bytes` bytes of the archive's memory budget for the WARC records of a finished
    /// transfer. The records wait in memory until the transfer is committed to the job's file
    /// (`--job`). Returns `None` if the budget has fewer bytes left.
    pub(super) fn reserve(&self, bytes: usize) -> Option<ReservedMemory> {
        let mut reserved = ReservedMemory::new(&self.budget);
        reserved.grow(bytes).then_some(reserved)
    }

    /// Creates an unnamed file in the directory of the archive.
    pub(super) fn temporary_file(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.directory)
    }

    fn take_deflater(&self) -> Deflater {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put_deflater(&self, deflater: Deflater) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE_DEFLATERS {
            idle.push(deflater);
        }
    }

    /// Encodes a record whose block is not a recorded message, such as a warcinfo record.
    pub(super) fn encode_block(&self, head: &[u8], block: &[u8]) -> EncodedRecords {
        let mut bytes = EncodedRecords::default();
        self.encode_pieces(&[head, block, RECORD_END], &mut bytes);
        bytes
    }

    fn encode_pieces(&self, pieces: &[&[u8]], bytes: &mut EncodedRecords) {
        match self.is_compressed {
            true => {
                let mut deflater = self.take_deflater();
                bytes.push(&encode_member(&mut deflater, pieces));
                self.put_deflater(deflater);
            }
            false => pieces.iter().for_each(|piece| bytes.push(piece)),
        }
    }
}

/// An HTTP request or response that is being recorded, and whose content is still arriving.
pub(super) struct RecordedMessage {
    store: Arc<RecordingResources>,
    head: Vec<u8>,
    content: MessageContent,
}

/// The content of a message that is being recorded. It moves to a temporary file if it becomes too
/// large for memory.
enum MessageContent {
    Memory(Vec<u8>, ReservedMemory),
    File(Box<TempFileContent>),
}

/// The content of an HTTP message that is being recorded in a temporary file.
struct TempFileContent {
    file: File,
    length: u64,
    stored: u64,
    block: Sha1Hasher,
    payload: Sha1Hasher,
    /// The compressed content of the message; `None` if the archive is not compressed.
    text: Option<GzipMemberBodyCompressor>,
    /// The memory that is reserved for the compressor.
    _reserved: ReservedMemory,
}

impl RecordedMessage {
    pub(super) fn new(store: &Arc<RecordingResources>, head: Vec<u8>) -> Self {
        let content = MessageContent::Memory(Vec::new(), ReservedMemory::new(&store.budget));
        Self { store: Arc::clone(store), head, content }
    }

    /// Sets the head of the message. Must be called before any content is added.
    pub(super) fn set_head(&mut self, head: &[u8]) {
        self.head = head.to_vec();
    }

    /// Adds content to the message.
    ///
    /// # Errors
    /// The temporary file cannot be created or written.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let MessageContent::Memory(content, reserved) = &mut self.content {
            let length = content.len() + bytes.len();
            let room = length.next_power_of_two().max(FIRST_RESERVED);
            if length <= reserved.bytes() || length <= MAX_IN_MEMORY && reserved.grow(room) {
                if length > content.capacity() {
                    content.reserve_exact(room - content.len());
                }
                content.extend_from_slice(bytes);
                return Ok(());
            }
            let mut file = TempFileContent::create(&self.store, &self.head)?;
            file.push(content)?;
            self.content = MessageContent::File(Box::new(file));
        }
        match &mut self.content {
            MessageContent::File(file) => file.push(bytes),
            MessageContent::Memory(..) => Ok(()),
        }
    }

    /// Ends the message.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub(super) fn finish(self) -> io::Result<FinishedMessage> {
        let Self { store, head, content } = self;
        Ok(match content {
            MessageContent::Memory(content, reserved) => FinishedMessage {
                length: content.len() as u64,
                block: Sha1Digest::of(&[&head, &content]),
                payload: Sha1Digest::of(&[&content]),
                content: FinishedContent::Memory(content, reserved),
                store,
                head,
            },
            MessageContent::File(file) => {
                let TempFileContent { mut file, length, mut stored, block, payload, text, _reserved } = *file;
                let crc = match text {
                    Some(mut text) => {
                        if let Some(deflater) = text.finish(RECORD_END) {
                            store.put_deflater(deflater);
                        }
                        file.write_all(&text.packed)?;
                        stored += text.packed.len() as u64;
                        Some(text.crc)
                    }
                    None => None,
                };
                let content = FinishedContent::File { file, stored, crc };
                FinishedMessage { store, head, length, block: block.finish(), payload: payload.finish(), content }
            }
        })
    }
}

impl TempFileContent {
    fn create(store: &RecordingResources, head: &[u8]) -> io::Result<Self> {
        let file = store.temporary_file()?;
        let mut reserved = ReservedMemory::new(&store.budget);
        let text = store.is_compressed.then(|| match reserved.grow(DEFLATER_MEMORY) {
            true => GzipMemberBodyCompressor::new(store.take_deflater()),
            false => GzipMemberBodyCompressor::stored(),
        });
        let mut block = Sha1Hasher::default();
        block.update(head);
        let payload = Sha1Hasher::default();
        Ok(Self { file, length: 0, stored: 0, block, payload, text, _reserved: reserved })
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.block.update(bytes);
        self.payload.update(bytes);
        let stored = match &mut self.text {
            Some(text) => {
                text.push(bytes);
                &text.packed[..]
            }
            None => bytes,
        };
        self.file.write_all(stored)?;
        self.stored += stored.len() as u64;
        if let Some(text) = &mut self.text {
            text.packed.clear();
        }
        Ok(())
    }
}

/// A completely received message, whose record can be encoded.
pub(super) struct FinishedMessage {
    store: Arc<RecordingResources>,
    head: Vec<u8>,
    /// The length of the message in bytes, without its head.
    pub(super) length: u64,
    /// The SHA-1 digest of the record's block: the head and the payload of the message.
    pub(super) block: Sha1Digest,
    /// The SHA-1 digest of the payload: all bytes after the head, including the framing of chunks.
    pub(super) payload: Sha1Digest,
    content: FinishedContent,
}

/// The content of a completely recorded HTTP message, in memory or in a temporary file.
enum FinishedContent {
    Memory(Vec<u8>, ReservedMemory),
    File {
        file: File,
        stored: u64,
        /// The checksum of the uncompressed content; `None` if the archive is not compressed.
        crc: Option<Crc>,
    },
}

impl FinishedMessage {
    /// Returns the length of the record's block in bytes: the head and the content.
    pub(super) fn block_length(&self) -> u64 {
        self.head.len() as u64 + self.length
    }

    /// Returns the HTTP head of the message, which is the block of a revisit record.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Appends a WARC record to `bytes`. The record has the head `record_head`, and its block is
    /// the whole message.
    pub(super) fn encode(self, record_head: &[u8], bytes: &mut EncodedRecords) {
        let Self { store, head, content, .. } = self;
        match content {
            FinishedContent::Memory(content, _reserved) => {
                store.encode_pieces(&[record_head, &head, &content, RECORD_END], bytes);
            }
            FinishedContent::File { file, stored, crc: Some(crc) } => {
                let start = [record_head, &head].concat();
                let mut deflater = store.take_deflater();
                bytes.push(&member_start(&mut deflater, &start));
                store.put_deflater(deflater);
                bytes.push_file(file, stored);
                bytes.push(&member_end(&start, &crc));
            }
            FinishedContent::File { file, stored, crc: None } => {
                bytes.push(&[record_head, &head].concat());
                bytes.push_file(file, stored);
                bytes.push(RECORD_END);
            }
        }
    }

    /// Appends a WARC record to `bytes`. The record has the head `record_head`, and its block is
    /// only the HTTP head of the message.
    pub(super) fn encode_head(&self, record_head: &[u8], bytes: &mut EncodedRecords) {
        self.store.encode_pieces(&[record_head, &self.head, RECORD_END], bytes);
    }
}

/// Encoded WARC records, as they are appended to the archive.
#[derive(Default)]
pub(super) struct EncodedRecords {
    pub(super) parts: Vec<RecordBytesSource>,
}

/// The source of a part of an encoded record: memory or a file.
pub(super) enum RecordBytesSource {
    /// Bytes in memory.
    Memory(Vec<u8>),
    /// The given number of bytes from the beginning of a file.
    File(File, u64),
    /// Bytes of a shared file: the file, the offset, and the number of bytes.
    Slice(Arc<File>, u64, u64),
}

impl RecordBytesSource {
    /// Returns the number of bytes of this part.
    pub(super) fn length(&self) -> u64 {
        match self {
            RecordBytesSource::Memory(bytes) => bytes.len() as u64,
            RecordBytesSource::File(_, bytes) | RecordBytesSource::Slice(_, _, bytes) => *bytes,
        }
    }

    /// Writes the bytes of this part to a file.
    pub(super) fn write_to(self, mut file: &File) -> io::Result<()> {
        match self {
            RecordBytesSource::Memory(bytes) => file.write_all(&bytes),
            RecordBytesSource::File(mut content, bytes) => {
                content.rewind()?;
                match io::copy(&mut content.take(bytes), &mut file)? == bytes {
                    true => Ok(()),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
            RecordBytesSource::Slice(content, mut from, bytes) => {
                let end = from + bytes;
                let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX).min(64 << 10)];
                while from < end {
                    let piece = usize::try_from(end - from).unwrap_or(usize::MAX).min(buffer.len());
                    content.read_exact_at(&mut buffer[..piece], from)?;
                    file.write_all(&buffer[..piece])?;
                    from += piece as u64;
                }
                Ok(())
            }
        }
    }
}

impl EncodedRecords {
    fn push(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(RecordBytesSource::Memory(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(RecordBytesSource::Memory(bytes.to_vec())),
        }
    }

    fn push_file(&mut self, file: File, bytes: u64) {
        self.parts.push(RecordBytesSource::File(file, bytes));
    }

    /// Returns the number of bytes of all parts.
    pub(super) fn length(&self) -> u64 {
        self.parts.iter().map(RecordBytesSource::length).sum()
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;

    /// Records a message that consists of these pieces. Returns its record without compression, and
    /// whether the record was in a file.
    fn recorded(is_compressed: bool, memory: usize, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(RecordingResources::new(folder.path(), is_compressed, memory));
        let mut message = RecordedMessage::new(&store, Vec::new());
        message.set_head(b"HTTP head\r\n\r\n");
        pieces.iter().for_each(|piece| message.push(piece).unwrap());
        let message = message.finish().unwrap();
        let payload = pieces.concat();
        assert_eq!(message.length, payload.len() as u64);
        assert_eq!(message.payload, Sha1Digest::of(&[&payload]));
        assert_eq!(message.block, Sha1Digest::of(&[b"HTTP head\r\n\r\n", &payload]));
        let mut bytes = EncodedRecords::default();
        message.encode(b"WARC head\r\n\r\n", &mut bytes);
        let length = bytes.length();
        let (mut record, mut has_file) = (Vec::new(), false);
        for part in bytes.parts {
            match part {
                RecordBytesSource::Memory(bytes) => record.extend_from_slice(&bytes),
                RecordBytesSource::File(mut file, bytes) => {
                    has_file = true;
                    file.rewind().unwrap();
                    assert_eq!(file.read_to_end(&mut record).unwrap() as u64, bytes);
                }
                RecordBytesSource::Slice(..) => panic!("only held records share a file"),
            }
        }
        assert_eq!(record.len() as u64, length);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        if is_compressed {
            let mut text = Vec::new();
            GzDecoder::new(&record[..]).read_to_end(&mut text).unwrap();
            record = text;
        }
        (record, has_file)
    }

    #[test]
    fn record_is_equal_from_memory_or_file() {
        let content: Vec<u8> = (0..400_000_u32).map(|n| (n % 251) as u8).collect();
        for is_compressed in [false, true] {
            for (memory, length, waits_in_file) in [
                (1 << 20, 0, false),
                (1 << 20, 256 << 10, false),
                (1 << 20, 400_000, true),
                (8 << 10, 9_000, true),
                (0, 1, true),
            ] {
                for step in [1_000, 100_000] {
                    let pieces: Vec<&[u8]> = content[..length].chunks(step).collect();
                    let (record, has_file) = recorded(is_compressed, memory, &pieces);
                    let expected =
                        [&b"WARC head\r\n\r\nHTTP head\r\n\r\n"[..], &content[..length], RECORD_END].concat();
                    assert!(record == expected, "{is_compressed} {memory} {length}");
                    assert_eq!(has_file, waits_in_file, "{memory} {length}");
                }
            }
        }
    }
}
