//! The types of the program's callbacks, and the callbacks of one transfer.

use std::ffi::{c_char, c_double, c_int, c_void};

use crate::handle_table::UserPointer;
use crate::options::{EasyOptions, curlauth_constants::AUTH_BASIC, curlopt_numbers as opt};

/// A write callback, which receives body or header bytes. Its arguments are `(data, 1, length,
/// user)`.
pub(crate) type WriteFunction =
    Option<unsafe extern "C" fn(data: *mut c_char, size: usize, count: usize, user: *mut c_void) -> usize>;
/// A read callback, which supplies content. Its arguments are `(buffer, 1, room, user)`.
pub(crate) type ReadFunction =
    Option<unsafe extern "C" fn(buffer: *mut c_char, size: usize, count: usize, user: *mut c_void) -> usize>;
/// A seek callback, which moves to an offset in the content.
pub(crate) type SeekFunction = Option<unsafe extern "C" fn(user: *mut c_void, offset: i64, origin: c_int) -> c_int>;
/// A callback that frees the user pointer of a form part.
pub(crate) type FreeFunction = Option<unsafe extern "C" fn(user: *mut c_void)>;
/// The ioctl callback (`CURLOPT_IOCTLFUNCTION`), an older form of [`SeekFunction`] that can only
/// restart the content.
pub(crate) type IoctlFunction =
    Option<unsafe extern "C" fn(easy: *mut c_void, command: c_int, user: *mut c_void) -> c_int>;
/// A debug callback, which receives messages, heads and content (`CURLOPT_DEBUGFUNCTION`).
pub(crate) type DebugFunction = Option<
    unsafe extern "C" fn(easy: *mut c_void, kind: c_int, data: *mut c_char, size: usize, user: *mut c_void) -> c_int,
>;
/// The progress callback (`CURLOPT_XFERINFOFUNCTION`): receives the progress in bytes.
pub(crate) type XferinfoFunction =
    Option<unsafe extern "C" fn(user: *mut c_void, down_total: i64, down: i64, up_total: i64, up: i64) -> c_int>;
/// The older progress callback (`CURLOPT_PROGRESSFUNCTION`): receives the progress in bytes as
/// floating-point numbers.
pub(crate) type ProgressFunction = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        down_total: c_double,
        down: c_double,
        up_total: c_double,
        up: c_double,
    ) -> c_int,
>;
/// A callback that supplies the trailer fields of a request.
pub(crate) type TrailerFunction =
    Option<unsafe extern "C" fn(list: *mut *mut crate::slist::curl_slist, user: *mut c_void) -> c_int>;

/// The return value with which a write callback pauses the transfer.
pub(crate) const WRITEFUNC_PAUSE: usize = 0x1000_0001;
/// The return value with which a read callback pauses the transfer.
pub(crate) const READFUNC_PAUSE: usize = 0x1000_0001;
/// The return value with which a read callback aborts the transfer.
pub(crate) const READFUNC_ABORT: usize = 0x1000_0000;
/// The return value with which a progress callback requests libcurl's own progress meter.
const PROGRESSFUNC_CONTINUE: c_int = 0x1000_0001;

/// Converts the pointer value of a callback option to a function pointer.
macro_rules! function {
    ($options:expr, $option:expr, $type:ty) => {
        // SAFETY: the program set this option to a function of this type, or to NULL; an `Option`
        // of a function has the size of a pointer, and NULL is its `None`.
        unsafe { std::mem::transmute::<*mut c_void, $type>($options.pointer($option)) }
    };
}

unsafe extern "C" {
    fn haul_curl_standard_stream(number: c_int) -> *mut c_void;
}

/// The default write callback, which writes to a `FILE`.
unsafe extern "C" fn write_to_file(data: *mut c_char, size: usize, count: usize, file: *mut c_void) -> usize {
    // SAFETY: the program gave a `FILE`, or it is a standard stream.
    unsafe { libc::fwrite(data.cast(), size, count, file.cast()) }
}

/// The default read callback, which reads from a `FILE`.
unsafe extern "C" fn read_from_file(buffer: *mut c_char, size: usize, count: usize, file: *mut c_void) -> usize {
    // SAFETY: the program gave a `FILE`, or it is a standard stream.
    unsafe { libc::fread(buffer.cast(), size, count, file.cast()) }
}

/// The seek callback for the default read callback: moves to an offset of a `FILE`.
unsafe extern "C" fn seek_file(file: *mut c_void, offset: i64, origin: c_int) -> c_int {
    // SAFETY: the program gave a `FILE`, or it is a standard stream.
    unsafe { libc::fseeko(file.cast(), offset, origin) }
}

/// Returns the pointer that the option `option`, such as `CURLOPT_WRITEDATA`, sets for a callback.
/// If it is not set, returns the standard stream with the descriptor `number`.
fn standard_stream_or_data(options: &EasyOptions, option: u32, number: c_int) -> UserPointer {
    let given = options.pointer(option);
    // SAFETY: a function of this crate without conditions.
    UserPointer(if given.is_null() { unsafe { haul_curl_standard_stream(number) } } else { given })
}

/// Returns the pointer that the option `option`, such as `CURLOPT_WRITEDATA`, sets for a callback.
/// If the option is not set, returns the standard stream with the descriptor `number`, as libcurl
/// does. Returns NULL only if `has_function` is true (the callback is a function of the C program)
/// and the program has set NULL.
fn callback_data(options: &EasyOptions, option: u32, has_function: bool, number: c_int) -> UserPointer {
    if has_function && options.has(option) {
        return UserPointer(options.pointer(option));
    }
    standard_stream_or_data(options, option, number)
}

/// The callbacks of a transfer, as they were set when the transfer began.
#[derive(Clone, Copy)]
pub(crate) struct Callbacks {
    write: WriteFunction,
    write_data: UserPointer,
    header: WriteFunction,
    header_data: UserPointer,
    read: ReadFunction,
    read_data: UserPointer,
    seek: SeekFunction,
    seek_data: UserPointer,
    ioctl: IoctlFunction,
    ioctl_data: UserPointer,
    debug: DebugFunction,
    debug_data: UserPointer,
    stderr: UserPointer,
    xferinfo: XferinfoFunction,
    progress: ProgressFunction,
    progress_data: UserPointer,
    pub(crate) trailer: TrailerFunction,
    pub(crate) trailer_data: UserPointer,
    /// True if progress is reported to the C program.
    pub(crate) has_progress: bool,
    /// True if debug events are reported to the C program.
    pub(crate) is_verbose: bool,
    /// True if redirects are followed.
    follows: bool,
    /// True if challenges may be answered, so that there may be several responses.
    answers_challenges: bool,
    /// True if response heads are passed to the write callback like the body.
    pub(crate) includes_heads: bool,
    /// True if the heads of a proxy's responses to CONNECT are not passed to the C program.
    pub(crate) hides_connect_heads: bool,
}

impl Callbacks {
    pub(crate) fn from_options(options: &EasyOptions) -> Self {
        let given: WriteFunction = function!(options, opt::WRITEFUNCTION, WriteFunction);
        let header: WriteFunction = function!(options, opt::HEADERFUNCTION, WriteFunction);
        let header_data = UserPointer(options.pointer(opt::HEADERDATA));
        let read: ReadFunction = function!(options, opt::READFUNCTION, ReadFunction);
        let seek: SeekFunction = function!(options, opt::SEEKFUNCTION, SeekFunction);
        let read_data = callback_data(options, opt::READDATA, read.is_some(), 0);
        let write = given.or(Some(write_to_file));
        let seeks_file = read.is_none() && seek.is_none();
        Self {
            write,
            write_data: callback_data(options, opt::WRITEDATA, given.is_some(), 1),
            // Header data without a header function goes to the write function.
            header: header.or(if header_data == UserPointer::NULL { None } else { write }),
            header_data,
            read: read.or(Some(read_from_file)),
            read_data,
            seek: if seeks_file { Some(seek_file) } else { seek },
            seek_data: if seeks_file { read_data } else { UserPointer(options.pointer(opt::SEEKDATA)) },
            ioctl: function!(options, opt::IOCTLFUNCTION, IoctlFunction),
            ioctl_data: UserPointer(options.pointer(opt::IOCTLDATA)),
            debug: function!(options, opt::DEBUGFUNCTION, DebugFunction),
            debug_data: UserPointer(options.pointer(opt::DEBUGDATA)),
            stderr: standard_stream_or_data(options, opt::STDERR, 2),
            xferinfo: function!(options, opt::XFERINFOFUNCTION, XferinfoFunction),
            progress: function!(options, opt::PROGRESSFUNCTION, ProgressFunction),
            progress_data: UserPointer(options.pointer(opt::XFERINFODATA)),
            trailer: function!(options, opt::TRAILERFUNCTION, TrailerFunction),
            trailer_data: UserPointer(options.pointer(opt::TRAILERDATA)),
            has_progress: options.number(opt::NOPROGRESS) == Some(0)
                && (options.has(opt::XFERINFOFUNCTION) || options.has(opt::PROGRESSFUNCTION)),
            is_verbose: options.is_on(opt::VERBOSE),
            follows: options.is_on(opt::FOLLOWLOCATION),
            answers_challenges: [opt::HTTPAUTH, opt::PROXYAUTH]
                .iter()
                .any(|option| options.number(*option).is_some_and(|schemes| schemes & !AUTH_BASIC != 0)),
            includes_heads: options.is_on(opt::HEADER),
            hides_connect_heads: options.is_on(opt::SUPPRESS_CONNECT_HEADERS),
        }
    }

    /// Returns the read callback, which supplies the request content.
    pub(crate) fn read_function(&self) -> ReadFunction {
        self.read
    }

    /// Returns true if the engine must report each response head, not only the last one. This is
    /// the case if a callback or the verbose output receives the heads. It is also the case if the
    /// transfer follows redirects or answers challenges: `curl_easy_header` then looks for fields
    /// in several heads, and `curl_easy_getinfo` for challenges.
    pub(crate) fn wants_heads(&self) -> bool {
        self.header.is_some() || self.includes_heads || self.is_verbose || self.follows || self.answers_challenges
    }

    /// Returns true if the debug callback receives the content that is sent and received.
    pub(crate) fn wants_content(&self) -> bool {
        self.is_verbose && self.debug.is_some()
    }

    /// Passes body bytes to the write callback, and returns the number that the callback returns.
    pub(crate) fn write(&self, bytes: &[u8]) -> usize {
        let Some(write) = self.write else { return 0 };
        // SAFETY: the program's function with its pointer, and bytes that live during the call.
        unsafe { write(bytes.as_ptr().cast_mut().cast(), 1, bytes.len(), self.write_data.0) }
    }

    /// Passes a header line to the header callback, and returns the number that the callback
    /// returns. Without a callback, returns the length of the line.
    pub(crate) fn header(&self, line: &[u8]) -> usize {
        let Some(header) = self.header else { return line.len() };
        // SAFETY: as in `write`.
        unsafe { header(line.as_ptr().cast_mut().cast(), 1, line.len(), self.header_data.0) }
    }

    /// Calls the read callback, which fills `buffer`, and returns the number that the callback
    /// returns.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> usize {
        let Some(read) = self.read else { return 0 };
        // SAFETY: the program's function with its pointer, and a buffer of that size.
        unsafe { read(buffer.as_mut_ptr().cast(), 1, buffer.len(), self.read_data.0) }
    }

    /// Moves to an offset in the content. Returns false if that is not possible.
    pub(crate) fn seek(&self, easy: usize, offset: u64) -> bool {
        if let (Some(seek), Ok(to)) = (self.seek, i64::try_from(offset)) {
            // SAFETY: the program's function with its pointer.
            return unsafe { seek(self.seek_data.0, to, libc::SEEK_SET) } == 0;
        }
        const RESTART_READ: c_int = 1;
        match self.ioctl {
            // SAFETY: the program's function with its pointer and handle.
            Some(ioctl) if offset == 0 => unsafe {
                ioctl(std::ptr::without_provenance_mut(easy), RESTART_READ, self.ioctl_data.0) == 0
            },
            _ => false,
        }
    }

    /// Reports an event of this kind (libcurl's number) to the debug callback. Without a callback,
    /// writes texts and heads to the file of `CURLOPT_STDERR` (by default, standard error).
    pub(crate) fn debug(&self, easy: usize, kind: c_int, bytes: &[u8]) {
        if let Some(debug) = self.debug {
            let easy = std::ptr::without_provenance_mut(easy);
            // SAFETY: the program's function with its handle and pointer, and bytes that live
            // during the call.
            unsafe { debug(easy, kind, bytes.as_ptr().cast_mut().cast(), bytes.len(), self.debug_data.0) };
            return;
        }
        const MARKS: [&[u8]; 3] = [b"* ", b"< ", b"> "];
        let Some(mark) = MARKS.get(usize::try_from(kind).unwrap_or(usize::MAX)) else { return };
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            for piece in [mark, line] {
                // SAFETY: a `FILE` of the program or the standard one, and bytes that live.
                unsafe { write_to_file(piece.as_ptr().cast_mut().cast(), 1, piece.len(), self.stderr.0) };
            }
        }
    }

    /// Calls the progress callback. Returns false if the C program aborts the transfer.
    pub(crate) fn progress(&self, down_total: u64, down: u64, up_total: u64, up: u64) -> bool {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let result = if let Some(xferinfo) = self.xferinfo {
            let (down_total, down) = (signed(down_total), signed(down));
            // SAFETY: the program's function with its pointer.
            unsafe { xferinfo(self.progress_data.0, down_total, down, signed(up_total), signed(up)) }
        } else if let Some(progress) = self.progress {
            let (down_total, down) = (down_total as c_double, down as c_double);
            // SAFETY: the program's function with its pointer.
            unsafe { progress(self.progress_data.0, down_total, down, up_total as c_double, up as c_double) }
        } else {
            0
        };
        matches!(result, 0 | PROGRESSFUNC_CONTINUE)
    }
}
