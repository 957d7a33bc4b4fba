//! Limits on the data that a peer can make us store or process.
//!
//! Each limit stops one method of flooding a client. A peer that exceeds a limit causes a typed
//! error that contains the limit. Data are never truncated instead: half a head is not a head.
//!
//! ```
//! use haul_proto::ResponseLimits;
//!
//! let mut limits = ResponseLimits::default();
//! assert_eq!(limits.head_bytes, 300 * 1024);
//! limits.interim = 2;
//! ```

/// Limits on the parts of a response other than its body. A response that exceeds a limit is an
/// error.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ResponseLimits {
    /// The largest number of bytes in all heads of one response together, interim (1xx) heads
    /// included.
    ///
    /// Default 307,200 (300 KiB). This is also the most memory that an unfinished head occupies in
    /// the caller's buffer; a finished head is copied once more. Hazard: below about 16 KiB real
    /// sites with many cookies fail.
    pub head_bytes: usize,
    /// The largest number of fields in one response head.
    ///
    /// Default 5,000. Each field costs 16 bytes of offsets (80 KB at the limit). Hazard: each
    /// look-up of a field examines all fields.
    pub head_fields: usize,
    /// The largest number of interim (1xx) responses before one final response.
    ///
    /// Default 64. Interim responses are not kept; the limit stops a peer that never answers.
    /// Hazard: a server that reports progress by `102 Processing` or sends many `103 Early Hints`
    /// may exceed a small limit.
    pub interim: u32,
    /// The maximum length of a chunk-size line in bytes, with its extensions and line end.
    ///
    /// Default 4,096. haul does not store the line. The limit ends a connection that sends an
    /// endless line. No server is known to exceed it, since extensions are rare and short.
    pub chunk_line: usize,
    /// The largest number of bytes of chunk extensions in a whole body.
    ///
    /// Default 262,144 (256 KiB). Extensions are not kept; the limit stops bodies that are mostly
    /// extensions, which cost network and CPU and deliver nothing. Hazard: a peer that signs each
    /// chunk of a very long body may exceed a small limit.
    pub chunk_extensions_total: usize,
    /// The largest number of bytes of the trailer section.
    ///
    /// Default 65,536 (64 KiB). The bytes stay in the caller's buffer until the section ends, and
    /// are then copied once.
    pub trailer_bytes: usize,
    /// The largest number of fields in the trailer section.
    ///
    /// Default 1,000. Each field costs 16 bytes of offsets.
    pub trailer_fields: usize,
}

impl Default for ResponseLimits {
    fn default() -> ResponseLimits {
        ResponseLimits {
            head_bytes: 300 * 1024,
            head_fields: 5_000,
            interim: 64,
            chunk_line: 4 * 1024,
            chunk_extensions_total: 256 * 1024,
            trailer_bytes: 64 * 1024,
            trailer_fields: 1_000,
        }
    }
}
