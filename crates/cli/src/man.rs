//! Generates the man page, `haul.1`.
//!
//! ```
//! let page = haul_cli::man::page();
//! assert!(page.starts_with(".TH HAUL 1") && page.contains(r"\fB\-o\fR, \fB\-\-output\fR \fIfile\fR"));
//! ```

use crate::flags::{FLAGS, FlagSpec, FlagSyntax};
use crate::program_persona::VERSION;

/// Returns the text of haul's man page in roff.
pub fn page() -> String {
    let mut text = format!(
        ".TH HAUL 1 \"\" \"haul {VERSION}\" \"haul\"\n.SH NAME\nhaul \\- move HTTP bodies, one or millions\n.SH SYNOPSIS\n\
         .B haul\n.RI [ options ...]\n.IR url ...\n.br\n.B haul curl\n.RI [ options ...]\n.IR url ...\n.br\n\
         .B haul ftp | haul fetch | haul apt\\-method\n.SH DESCRIPTION\n\
         haul fetches and sends HTTP bodies: one large body over several connections where that helps, thousands of small ones \
         over a few. Where curl has an option for something, haul uses the same name. Called as \"haul curl\", or through a link named \
         curl, it also has curl's defaults, messages and exit codes. \"haul ftp\", \"haul fetch\" and \"haul apt\\-method\" replace \
         OpenBSD's ftp(1), FreeBSD's fetch(1) and apt's http method (docs/package\\-managers.md).\n.SH EXAMPLES\n.nf\n\
         haul https://example.com/\nhaul \\-\\-input\\-file urls.txt > pages\nhaul \\-O https://example.com/file.tar.gz\n\
         haul https://example.com/file.tar.gz | tar zx\n.fi\n.SH OPTIONS\n"
    );
    for flag in FLAGS {
        option(&mut text, flag.spec());
    }
    text.push_str(&sections());
    text
}

/// The sections of the man page after the options. Each has a heading, and entries with their
/// descriptions.
const SECTIONS: &[(&str, &[(&str, &str)])] = &[
    (
        "FILES",
        &[
            ("~/.netrc", "User names and passwords, with --netrc."),
            (
                "$CURL_HOME/.curlrc, $XDG_CONFIG_HOME/curlrc, ~/.curlrc, ~/.config/curlrc",
                "Options. The first file that exists is read, only in curl's place.",
            ),
            (
                ".NAME.haul-part",
                "Beside NAME: the part of a large body that has arrived so far. The same command continues from there.",
            ),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("http_proxy, https_proxy, all_proxy, no_proxy", "Proxies to use, and hosts to reach without one."),
            ("CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR", "CA certificates to trust."),
            ("SSLKEYLOGFILE", "File to which the secrets of TLS connections are written, for tools that decrypt them."),
            ("NETRC", "The file that --netrc reads."),
            ("HAUL_AGENT", "The socket of an agent, as with --agent=SOCKET."),
            ("XDG_RUNTIME_DIR", "Directory of the socket of --agent if none is named."),
            ("TMPDIR", "Directory of temporary files for --sort and --unique, when their values do not fit in memory."),
        ],
    ),
    (
        "EXIT STATUS",
        &[
            ("0", "Everything was delivered in full."),
            ("2", "The command line cannot be used."),
            ("6, 7", "The host name has no address, or no address accepts the connection."),
            ("18, 52, 56", "The reply broke off, or there was none."),
            ("22", "The status was 400 or above."),
            ("23", "The output could not be written."),
            ("28", "A time limit was reached."),
            ("35, 60", "The TLS handshake failed, or the certificate is not acceptable."),
            ("47", "More redirects than --max-redirs."),
            (
                "others",
                "The numbers are curl's; docs/exit-codes.md lists them. With many URLs the code is that of the first failure in \
                 input order.",
            ),
        ],
    ),
];

fn sections() -> String {
    let mut text = String::new();
    for (heading, entries) in SECTIONS {
        text.push_str(&format!(".SH {heading}\n"));
        for (name, what) in *entries {
            text.push_str(&format!(".TP\n.B {}\n{}\n", escaped(name), line(what)));
        }
    }
    text + ".SH SEE ALSO\n.BR curl (1)\n"
}

fn option(text: &mut String, spec: &FlagSpec) {
    let letter = spec.short.map(|letter| format!("\\fB\\-{}\\fR, ", escaped(&letter.to_string()))).unwrap_or_default();
    let value = match spec.syntax {
        FlagSyntax::Switch | FlagSyntax::Once => String::new(),
        FlagSyntax::Value(name) | FlagSyntax::Trailing(name) => format!(" \\fI{}\\fR", escaped(name)),
        FlagSyntax::Optional(name) => format!("[=\\fI{}\\fR]", escaped(name)),
    };
    text.push_str(&format!(".TP\n{letter}\\fB\\-\\-{}\\fR{value}\n{}\n", escaped(spec.long), line(spec.doc)));
    if spec.syntax == FlagSyntax::Switch {
        text.push_str(&format!("Turned off by \\fB\\-\\-no\\-{}\\fR.\n", escaped(spec.long)));
    }
    text.push_str(&format!(".sp\n.RS 4\n.nf\n{}\n.fi\n.RE\n", line(spec.example)));
}

/// Returns a line of text in roff. Escapes a first character that would make the line a roff
/// request.
fn line(text: &str) -> String {
    let escaped = escaped(text);
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn man_page_has_every_flag_and_valid_requests() {
        let page = page();
        for flag in FLAGS {
            assert!(page.contains(&format!("\\fB\\-\\-{}\\fR", escaped(flag.spec().long))), "{}", flag.spec().long);
        }
        let requests = [".TH", ".SH", ".TP", ".B", ".RI", ".IR", ".br", ".I", ".BR", ".sp", ".RS", ".RE", ".nf", ".fi"];
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            let request = line.split(' ').next().unwrap_or_default();
            assert!(requests.contains(&request), "{line}");
        }
    }
}
