//! The settings of a connection: sockets, local addresses, keepalive.
//!
//! ```
//! use haul_cli::plan::ConnectionArgs;
//!
//! let plain = ConnectionArgs::default();
//! assert!(plain.keepalive.is_some() && plain.unix_socket.is_none());
//! ```

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of connections. All but the Happy Eyeballs delay are part of the pool's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionArgs {
    /// `--unix-socket`, `--abstract-unix-socket`: connect there, whatever the URL's host.
    pub unix_socket: Option<UnixSocket>,
    /// `--interface`: from where connections are made.
    pub interface: Option<Interface>,
    /// `--local-port`: the local ports to try in order, none of them 0.
    pub local_port: Option<RangeInclusive<u16>>,
    /// `--ip-tos`: the type of service of sent packets.
    pub type_of_service: Option<u8>,
    /// `--vlan-priority`: the priority of sent packets, 0 to 7.
    pub priority: Option<u8>,
    /// Head start of IPv6 (RFC 8305 section 5). Default 200 ms, as in curl.
    pub happy_eyeballs: Duration,
    /// TCP keepalive; `None` is `--no-keepalive`.
    pub keepalive: Option<KeepaliveArgs>,
    /// `--haproxy-protocol`: begin with a PROXY line, version 1.
    pub haproxy_protocol: bool,
    /// `--haproxy-clientip`: the client that the PROXY line names; `None` is oneself. Set only with
    /// `haproxy_protocol`.
    pub haproxy_client: Option<IpAddr>,
}

impl Default for ConnectionArgs {
    fn default() -> Self {
        ConnectionArgs {
            unix_socket: None,
            interface: None,
            local_port: None,
            type_of_service: None,
            priority: None,
            happy_eyeballs: Duration::from_millis(200),
            keepalive: Some(KeepaliveArgs::default()),
            haproxy_protocol: false,
            haproxy_client: None,
        }
    }
}

/// A Unix domain socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnixSocket {
    /// A file.
    Path(PathBuf),
    /// A name of Linux' abstract namespace, without the NUL in front.
    Abstract(Vec<u8>),
}

/// `--interface`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    /// A device, an address or a host name, whichever it is.
    Any(String),
    /// `if!NAME`: a device.
    Device(String),
    /// `host!NAME`: an address or a host name.
    Host(String),
    /// `ifhost!DEVICE!HOST`: both.
    DeviceAndHost {
        /// The device.
        device: String,
        /// The address or host name.
        host: String,
    },
}

/// TCP keepalive (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveArgs {
    /// Idle time before the first probe; whole seconds, at least 1. Default 60 s.
    pub time: Duration,
    /// Time between probes; whole seconds, at least 1. Default: as `time`.
    pub interval: Option<Duration>,
    /// Probes without an answer that end the connection, from 1. Default 9.
    pub count: u32,
}

impl Default for KeepaliveArgs {
    fn default() -> Self {
        KeepaliveArgs { time: Duration::from_secs(60), interval: None, count: 9 }
    }
}
