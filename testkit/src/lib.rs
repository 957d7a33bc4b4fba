//! Servers that haul is tested, measured and shown against.
//!
//! | module | what it is |
//! |---|---|
//! | [`site`] | the site of the first job: index pages, AS pages, and the right answer |
//! | [`origin`] | an HTTP/1.1 and HTTP/2 server, plain and TLS, with that site and a set of useful routes |
//! | [`faulty`] | an origin of one long body that answers ranges, rightly or with a fault asked for in the URL |
//! | [`raw`] | a scripted peer that sends exactly the bytes it is told to, for hostile framing |
//! | [`frames`] | the same for HTTP/2: a peer that sends the frames it is told to |
//! | [`hostile`] | replies that no honest server sends, made by a grammar from a seed, and a server of them |
//! | [`packages`] | a mirror of packages, and who reads only their beginnings |
//! | [`relay`] | a link with a round trip and a rate, on loopback |
//! | [`pattern`] | bytes whose value is a function of their offset |
//! | [`coding`] | content codings, as a server makes them, and a decompression bomb |
//! | [`child`] | a program run to its end under a hard limit of time |
//! | [`identity`] | a certificate authority and a server certificate made on the spot |
//!
//! Nothing here depends on haul: the origin speaks through hyper, the raw peers and the fault
//! origin through plain sockets. The program `faults` runs haul by its path only.
//!
//! ```
//! use testkit::{origin::Origin, site::Site};
//!
//! let origin = Origin::builder().site(Site::scaled(1, 12)).start().unwrap();
//! let url = format!("http://{}/1", origin.http_addr());
//! assert!(url.ends_with("/1"));
//! assert_eq!(origin.requests(), 0);
//! ```

mod byte_range;
pub mod child;
pub mod coding;
pub mod faulty;
pub mod frames;
pub mod hostile;
pub mod identity;
mod lock;
pub mod origin;
pub mod packages;
pub mod pattern;
mod peer_stream;
pub mod raw;
pub mod relay;
pub mod rng;
mod scripted;
pub mod site;
