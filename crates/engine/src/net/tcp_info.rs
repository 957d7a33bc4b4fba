//! The kernel's traffic counters of a TCP connection (`TCP_INFO`). Reading them needs no packet
//! capture and no privileges.
//!
//! The counters exist only on Linux; on other systems, [`read`] returns `None`. Counters that an
//! older kernel does not have are zero. The counters include TCP payload and segments, without the
//! headers of lower layers.
//!
//! ```no_run
//! # let socket = std::net::TcpStream::connect("127.0.0.1:80").unwrap();
//! if let Some(counts) = haul::net::tcp_info::read(&socket) {
//!     eprintln!("{} bytes in {} segments", counts.bytes_received, counts.segs_in);
//! }
//! ```

use std::time::Duration;

use rustix::fd::AsFd;

/// The kernel's counters of a connection since it was opened. The fields have the names that the
/// kernel and RFC 4898 use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Payload bytes sent, including retransmissions (Linux 4.19).
    pub bytes_sent: u64,
    /// Payload bytes acknowledged by the peer, plus one for the SYN (Linux 4.1).
    pub bytes_acked: u64,
    /// Payload bytes received (Linux 4.1).
    pub bytes_received: u64,
    /// Payload bytes retransmitted (Linux 4.19).
    pub bytes_retrans: u64,
    /// Segments sent, including segments without payload (Linux 4.2).
    pub segs_out: u32,
    /// Segments received, including segments without payload (Linux 4.2).
    pub segs_in: u32,
    /// Segments with payload sent (Linux 4.6).
    pub data_segs_out: u32,
    /// Segments with payload received (Linux 4.6).
    pub data_segs_in: u32,
    /// Segments sent again, because the peer did not acknowledge them in time.
    pub retransmits: u32,
    /// The smoothed round-trip time that the kernel has measured.
    pub rtt: Duration,
    /// The smallest round-trip time of the connection so far (Linux 4.6).
    pub min_rtt: Duration,
}

/// Returns the counters of a TCP socket; `None` for any other socket.
#[cfg(target_os = "linux")]
pub fn read(fd: impl AsFd) -> Option<TcpCounters> {
    use rustix::fd::AsRawFd;

    let mut info = TcpInfo::default();
    let mut len = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call, `info` is writable for `len` bytes, the
    // kernel writes no more than that, and any bytes make a valid `TcpInfo` (integers only).
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    if result != 0 || (len as usize) < std::mem::offset_of!(TcpInfo, pacing_rate) {
        return None;
    }
    Some(TcpCounters {
        bytes_sent: info.bytes_sent,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        bytes_retrans: info.bytes_retrans,
        segs_out: info.segs_out,
        segs_in: info.segs_in,
        data_segs_out: info.data_segs_out,
        data_segs_in: info.data_segs_in,
        retransmits: info.metrics[TOTAL_RETRANS],
        rtt: Duration::from_micros(u64::from(info.metrics[RTT])),
        min_rtt: Duration::from_micros(u64::from(info.min_rtt)),
    })
}

/// Returns `None`, since this system has no such counters.
#[cfg(not(target_os = "linux"))]
pub fn read(_fd: impl AsFd) -> Option<TcpCounters> {
    None
}

/// The index of `tcpi_rtt` in [`TcpInfo::metrics`].
#[cfg(target_os = "linux")]
const RTT: usize = 15;
#[cfg(target_os = "linux")]
const TOTAL_RETRANS: usize = 23;

/// The kernel's `struct tcp_info` up to the field `tcpi_bytes_retrans`. The struct of the `libc`
/// crate is not used, because it is shorter with some C libraries. The kernel only appends fields,
/// so this declaration stays valid.
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Default)]
struct TcpInfo {
    /// The fields from `tcpi_state` to the bit field `tcpi_fastopen_client_fail`.
    head: [u8; 8],
    /// The fields from `tcpi_rto` to `tcpi_total_retrans`.
    metrics: [u32; 24],
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream, UdpSocket},
    };

    use super::*;

    #[test]
    fn tcp_info_fields_match_the_kernel_layout() {
        assert_eq!(std::mem::offset_of!(TcpInfo, pacing_rate), 104);
        assert_eq!(std::mem::offset_of!(TcpInfo, delivery_rate), 160);
        assert_eq!(std::mem::offset_of!(TcpInfo, bytes_sent), 200);
    }

    #[test]
    fn tcp_info_counts_sent_and_received_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        server.write_all(&[2; 3000]).unwrap();
        client.read_exact(&mut [0; 3000]).unwrap();
        let counts = read(&client).unwrap();
        assert_eq!(counts.bytes_sent, 1000);
        assert_eq!(counts.bytes_received, 3000);
        assert!(counts.segs_out >= 3 && counts.segs_in >= 2, "{counts:?}");
        assert!(counts.data_segs_out >= 1 && counts.data_segs_in >= 1, "{counts:?}");
    }

    #[test]
    fn non_tcp_socket_has_no_tcp_info() {
        assert_eq!(read(UdpSocket::bind("127.0.0.1:0").unwrap()), None);
    }
}
