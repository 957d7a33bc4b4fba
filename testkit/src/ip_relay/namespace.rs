//! Network namespaces with a TUN device.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::resume_unwind;
use std::process::{self, Command, Stdio};
use std::thread;

use rustix::fs::OFlags;
use rustix::ioctl::{Setter, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The name of the TUN device in each network namespace.
const DEVICE: &str = "link0";
/// The maximum number of packets in the send queue of a TUN device. With the system's default of
/// 500, packets would be lost in this queue, in addition to the packets that the relay drops on
/// purpose.
const DEVICE_QUEUE: &str = "10000";

/// The flag that requests a device for IP packets without a link layer (`IFF_TUN` in
/// linux/if_tun.h).
const TUN: u16 = 0x0001;
/// The flag that requests packets without a device header (`IFF_NO_PI`).
const NO_PACKET_INFORMATION: u16 = 0x1000;
/// The length of a device name with its final zero (`IFNAMSIZ`).
const NAME_LEN: usize = 16;
/// The opcode of `TUNSETIFF`. linux/if_tun.h declares it with the type int, although its argument
/// is an `ifreq`.
const SET_INTERFACE: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);

/// The argument of `TUNSETIFF`: `struct ifreq` with the field for flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_LEN],
    flags: u16,
    unused: [u8; 22],
}

/// A network namespace. The namespace exists as long as this value, or a process that runs in it.
#[derive(Debug)]
pub struct NetworkNamespace {
    file: File,
}

impl NetworkNamespace {
    /// Creates a namespace with a TUN device that has the address `local`, and a route to `peer`
    /// over this device. Returns the namespace, and the device for reading and writing packets
    /// without blocking.
    pub(super) fn with_device(local: Ipv4Addr, peer: Ipv4Addr) -> io::Result<(NetworkNamespace, File)> {
        // Runs in a new thread, because creating a namespace moves the calling thread into it.
        let made = thread::spawn(move || make(local, peer));
        made.join().map_err(|_| io::Error::other("making a network namespace panicked"))?
    }

    /// Runs `task` on a thread in the namespace, and returns its result.
    ///
    /// # Errors
    /// If this process may not enter the namespace.
    ///
    /// # Panics
    /// `task` panics.
    pub fn run<T: Send>(&self, task: impl FnOnce() -> T + Send) -> io::Result<T> {
        let enter = || -> io::Result<()> {
            Ok(move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?)
        };
        thread::scope(|scope| {
            let thread = scope.spawn(|| enter().map(|()| task()));
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Returns the option with which the program `nsenter` starts a process in the namespace.
    pub fn nsenter_option(&self) -> String {
        format!("--net=/proc/{}/fd/{}", process::id(), self.file.as_raw_fd())
    }
}

fn make(local: Ipv4Addr, peer: Ipv4Addr) -> io::Result<(NetworkNamespace, File)> {
    // SAFETY: descriptors stay shared; only the flag FILES would change that.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    let device = open_device()?;
    let (local, peer) = (local.to_string(), peer.to_string());
    run_ip(&["link", "set", "lo", "up"])?;
    run_ip(&["address", "add", &local, "peer", &peer, "dev", DEVICE])?;
    run_ip(&["link", "set", DEVICE, "txqueuelen", DEVICE_QUEUE, "up"])?;
    Ok((NetworkNamespace { file: File::open("/proc/thread-self/ns/net")? }, device))
}

fn open_device() -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let device = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open("/dev/net/tun")?;
    let mut request = InterfaceRequest { name: [0; NAME_LEN], flags: TUN | NO_PACKET_INFORMATION, unused: [0; 22] };
    request.name[..DEVICE.len()].copy_from_slice(DEVICE.as_bytes());
    // SAFETY: TUNSETIFF reads an ifreq, which is 40 bytes long, and keeps no pointer.
    unsafe { ioctl(&device, Setter::<SET_INTERFACE, InterfaceRequest>::new(request)) }?;
    Ok(device)
}

/// Runs iproute2's command `ip` in the namespace of the calling thread.
fn run_ip(arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("ip {}: {said}", arguments.join(" "))))
}
