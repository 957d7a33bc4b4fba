//! Renders the HTML of the pages.
//!
//! Rows are assembled from constant texts and a few numbers, at several GB/s, so that the origin is
//! never the bottleneck. The text around the blocks resembles that of real pages. It contains
//! strings that an inexact regular expression would match: paths, host names, dates, addresses
//! without a mask, IPv6 prefixes.

use crate::rng::{Rng, mix};

/// The length in bytes of the longest table row of any kind in a page.
const LONGEST_ROW: usize = 640;
const PAD_OPEN: &[u8] = b"<!-- ";
const PAD_CLOSE: &[u8] = b" -->\n";
const FOOTER: &[u8] = b"</tbody></table>\n<div id=\"footer\">Updated 21 Nov 2026 06:53 UTC &copy; 2026 \
    <a href=\"/about/\">About</a> <a href=\"/contact/\">Contact</a></div>\n</body></html>\n";
/// One CIDR block in this many is drawn from a pool that all pages share.
const SHARED_ONE_IN: u64 = 12;
const SHARED_POOL: u64 = 4_096;

const COUNTRIES: [[&str; 2]; 12] = [
    ["au", "Australia"],
    ["br", "Brazil"],
    ["ca", "Canada"],
    ["de", "Germany"],
    ["fr", "France"],
    ["gb", "United Kingdom"],
    ["id", "Indonesia"],
    ["in", "India"],
    ["jp", "Japan"],
    ["nl", "Netherlands"],
    ["us", "United States"],
    ["za", "South Africa"],
];
const NAMES: [&str; 12] = [
    "Northern Lights Broadband",
    "Meridian Exchange Ltd.",
    "Copperline Telecom",
    "Harbour Networks GmbH",
    "Open Campus Consortium",
    "Blue Delta Hosting B.V.",
    "Prairie Fibre Cooperative",
    "City of Example, Department of IT",
    "Sunrise Data S.A.",
    "Kestrel Internet Services",
    "Palisade Cloud, Inc.",
    "Institute of Applied Packets",
];

/// Renders the index page with this index into `out`. The page lists a third of the AS numbers,
/// some of them with an upstream AS.
pub(super) fn index_page(out: &mut Vec<u8>, seed: u64, index: usize, numbers: &[u32]) {
    let share = numbers.len().div_ceil(super::INDEXES);
    let from = (index * share).min(numbers.len());
    let to = (from + share).min(numbers.len());
    let mut rng = Rng::new(mix(seed, index as u64 + 1));
    push_text(out, "<!DOCTYPE html>\n<html><head><title>Networks, page ");
    decimal(out, index as u64 + 1);
    push_text(
        out,
        "</title>\n<link rel=\"stylesheet\" href=\"/css/site.css?1282328089\" type=\"text/css\"></head>\n<body>\n",
    );
    push_text(
        out,
        "<table id=\"asns\"><thead><tr><th>ASN</th><th>Name</th><th>Adjacencies</th><th>Routes</th></tr></thead><tbody>\n",
    );
    for number in &numbers[from..to] {
        let number = u64::from(*number);
        let [code, country] = COUNTRIES[rng.below(12) as usize];
        let name = rng.pick(&NAMES);
        push_text(out, "<tr><td><div class=\"flag\"><img alt=\"");
        push_text(out, country);
        push_text(out, "\" src=\"/images/flags/");
        push_text(out, code);
        push_text(out, ".gif?1282328089\"></div> <a href=\"/AS");
        decimal(out, number);
        push_text(out, "\" title=\"AS");
        decimal(out, number);
        push_text(out, " - ");
        push_text(out, name);
        push_text(out, "\">AS");
        decimal(out, number);
        push_text(out, "</a></td><td>");
        push_text(out, name);
        if rng.below(8) == 0 {
            push_text(out, " (by way of <a href=\"/AS");
            let upstream = u64::from(numbers[rng.below(numbers.len() as u64) as usize]);
            decimal(out, upstream);
            push_text(out, "\">its upstream</a>)");
        }
        push_text(out, "</td><td class=\"alignright\">");
        decimal(out, rng.below(4000));
        push_text(out, "</td><td class=\"alignright\">");
        decimal(out, rng.below(90_000));
        push_text(out, "</td></tr>\n");
    }
    out.extend_from_slice(FOOTER);
}

/// Renders the page about the autonomous system `number` into `out`. `seed` and `number` determine
/// the content and the exact length of the page. Calls `wrote` with each CIDR block (such as
/// `192.0.2.0/24`) in the page that matches the regular expression of the benchmark that collects
/// CIDR blocks.
pub(super) fn as_page(out: &mut Vec<u8>, seed: u64, number: u32, mut wrote: impl FnMut(&[u8])) {
    let target = super::autonomous_system_numbers::page_len(seed, number);
    out.reserve(target);
    let mut rng = Rng::new(mix(seed, u64::from(number)));
    header(out, &mut rng, number);
    let rows_end = target - FOOTER.len() - PAD_OPEN.len() - PAD_CLOSE.len() - LONGEST_ROW;
    while out.len() <= rows_end {
        match rng.below(64) {
            0..6 => prefix_row(out, &mut rng, seed, &mut wrote),
            6..30 => peer_row(out, &mut rng),
            30..38 => prefix6_row(out, &mut rng),
            38..50 => whois_lines(out, &mut rng),
            _ => dns_row(out, &mut rng),
        }
    }
    out.extend_from_slice(PAD_OPEN);
    out.resize(target - FOOTER.len() - PAD_CLOSE.len(), b'.');
    out.extend_from_slice(PAD_CLOSE);
    out.extend_from_slice(FOOTER);
}

fn header(out: &mut Vec<u8>, rng: &mut Rng, number: u32) {
    let name = rng.pick(&NAMES);
    push_text(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>AS");
    decimal(out, u64::from(number));
    push_text(out, " ");
    push_text(out, name);
    push_text(
        out,
        "</title>\n<link rel=\"stylesheet\" href=\"/css/site.css?1282328089\" type=\"text/css\">\n\
         <script src=\"/javascripts/jquery-1.4.2.min.js\"></script>\n\
         <link rel=\"archives\" href=\"/archive/2026.11.21/as\">\n</head>\n<body>\n<h1><a href=\"/AS",
    );
    decimal(out, u64::from(number));
    push_text(out, "\">");
    push_text(out, name);
    push_text(out, "</a></h1>\n<table id=\"table_prefixes4\" class=\"w100p\"><thead><tr><th>Prefix</th>");
    push_text(out, "<th>Description</th></tr></thead><tbody>\n");
}

fn prefix_row(out: &mut Vec<u8>, rng: &mut Rng, seed: u64, wrote: &mut impl FnMut(&[u8])) {
    let mut block = CidrBlock::default();
    block.draw(rng, seed);
    let [code, country] = COUNTRIES[rng.below(12) as usize];
    push_text(out, "<tr>\n  <td class=\"nowrap\">\n    <a href=\"/net/");
    out.extend_from_slice(block.bytes());
    push_text(out, "\">");
    out.extend_from_slice(block.bytes());
    push_text(out, "</a>\n    <div class=\"flag alignright\"><img alt=\"");
    push_text(out, country);
    push_text(out, "\" src=\"/images/flags/");
    push_text(out, code);
    push_text(out, ".gif?1282328089\" title=\"");
    push_text(out, country);
    push_text(out, "\"></div>\n  </td>\n  <td>");
    push_text(out, rng.pick(&NAMES));
    wrote(block.bytes());
    if rng.below(64) == 0 {
        // A run of digits and dots longer than 15: the expression finds its last 15 bytes.
        push_text(out, " (zone serial ");
        let from = out.len();
        push_text(out, "20261121.");
        out.extend_from_slice(block.bytes());
        let slash = block.bytes().iter().position(|b| *b == b'/').expect("a block has a slash");
        let run_end = from + "20261121.".len() + slash;
        wrote(&out[run_end - 15..]);
        push_text(out, ")");
    }
    push_text(out, "</td>\n</tr>\n");
}

fn peer_row(out: &mut Vec<u8>, rng: &mut Rng) {
    let [code, country] = COUNTRIES[rng.below(12) as usize];
    let number = 1 + rng.below(400_000);
    push_text(out, "<tr class=\"");
    push_text(out, if rng.below(2) == 0 { "odd" } else { "even" });
    push_text(out, "\"><td class=\"aligncenter\">");
    decimal(out, rng.below(5000));
    push_text(out, "</td><td><div class=\"flag\"><img alt=\"");
    push_text(out, country);
    push_text(out, "\" src=\"/images/flags/");
    push_text(out, code);
    push_text(out, ".gif?1282328089\" title=\"");
    push_text(out, country);
    push_text(out, "\"></div> ");
    push_text(out, rng.pick(&NAMES));
    push_text(out, "</td><td class=\"aligncenter\"><a href=\"/AS");
    decimal(out, number);
    push_text(out, "\" title=\"AS");
    decimal(out, number);
    push_text(out, "\">AS");
    decimal(out, number);
    push_text(out, "</a></td><td class=\"aligncenter\">X</td></tr>\n");
}

fn prefix6_row(out: &mut Vec<u8>, rng: &mut Rng) {
    let (high, low) = (rng.below(0x1000) | 0x2000, rng.below(0x1_0000));
    push_text(out, "<tr><td class=\"nowrap\"><a href=\"/net/");
    for _ in 0..2 {
        hex(out, high);
        push_text(out, ":db8:");
        hex(out, low);
        push_text(out, "::/48\">");
    }
    push_text(out, "</a></td><td>");
    push_text(out, rng.pick(&NAMES));
    push_text(out, "</td></tr>\n");
}

fn whois_lines(out: &mut Vec<u8>, rng: &mut Rng) {
    push_text(out, "<tr><td colspan=\"2\"><pre>inetnum:        ");
    let mut address = CidrBlock::default();
    address.dotted(rng.next());
    out.extend_from_slice(address.bytes());
    push_text(out, " - ");
    address.dotted(rng.next());
    out.extend_from_slice(address.bytes());
    push_text(out, "\nnetname:        EXAMPLE-NET\ndescr:          ");
    push_text(out, rng.pick(&NAMES));
    push_text(
        out,
        "\nremarks:        see https://www.example.net/noc/contact.html, tel. +1.555.0100\nchanged:        noc@example.net ",
    );
    decimal(out, 20_100_101 + rng.below(160_000));
    push_text(
        out,
        "\nlast-modified:  2026/11/21 06:53:16.000/UTC\nsource:         EXAMPLE # Filtered\n</pre></td></tr>\n",
    );
}

fn dns_row(out: &mut Vec<u8>, rng: &mut Rng) {
    let mut address = CidrBlock::default();
    address.dotted(rng.next());
    push_text(out, "<tr><td><a href=\"/ip/");
    out.extend_from_slice(address.bytes());
    push_text(out, "\">");
    out.extend_from_slice(address.bytes());
    push_text(out, "</a></td><td><a href=\"/dns/ns");
    decimal(out, rng.below(9));
    push_text(out, ".example.net\">ns");
    decimal(out, rng.below(9));
    push_text(out, ".example.net</a>, mail.example.org, www.example.com</td></tr>\n");
}

/// A CIDR block, or an address without a mask, as text.
#[derive(Default)]
struct CidrBlock {
    text: [u8; 18],
    len: usize,
}

impl CidrBlock {
    fn bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// Replaces the block by a random CIDR block. One in [`SHARED_ONE_IN`] blocks comes from a pool
    /// that all pages share; the first block of the pool is `0.0.0.0/0`. The others come from the
    /// page's own random numbers.
    fn draw(&mut self, rng: &mut Rng, seed: u64) {
        const MASKS: [u8; 16] = [24, 24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 20, 19, 16, 8];
        let mut random = rng.next();
        if random.is_multiple_of(SHARED_ONE_IN) {
            let shared = rng.below(SHARED_POOL);
            if shared == 0 {
                self.len = 0;
                return self.push(b"0.0.0.0/0");
            }
            random = mix(seed ^ 0x706f_6f6c, shared);
        }
        let mask = MASKS[(random >> 60) as usize];
        let network = (random as u32) & (u32::MAX << (32 - mask));
        let [a, b, c, d] = network.to_be_bytes();
        self.quad([1 + a % 223, b, c, d]);
        self.push(b"/");
        self.octet(mask);
    }

    fn dotted(&mut self, random: u64) {
        let [_, b, c, d] = (random as u32).to_be_bytes();
        self.quad([1 + (random >> 32) as u8 % 223, b, c, d]);
    }

    fn quad(&mut self, octets: [u8; 4]) {
        self.len = 0;
        for (i, octet) in octets.into_iter().enumerate() {
            if i > 0 {
                self.push(b".");
            }
            self.octet(octet);
        }
    }

    fn octet(&mut self, octet: u8) {
        if octet >= 100 {
            self.push(&[b'0' + octet / 100]);
        }
        if octet >= 10 {
            self.push(&[b'0' + octet / 10 % 10]);
        }
        self.push(&[b'0' + octet % 10]);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.text[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

#[inline]
fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn decimal(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn hex(out: &mut Vec<u8>, n: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for shift in [12, 8, 4, 0] {
        out.push(DIGITS[(n >> shift) as usize & 15]);
    }
}
