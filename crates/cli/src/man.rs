//! The man page, `haul.1`.
//!
//! ```
//! let page = haul_cli::man::page();
//! assert!(page.starts_with(".TH HAUL 1") && page.contains(r"\fB\-o\fR, \fB\-\-output\fR \fIfile\fR"));
//! ```

use crate::flags::{FLAGS, Spec, Takes};
use crate::usage::VERSION;

/// The page, in roff.
pub fn page() -> String {
    let mut text = format!(
        ".TH HAUL 1 \"\" \"haul {VERSION}\" \"haul\"\n.SH NAME\nhaul \\- move HTTP bodies, one or millions\n.SH SYNOPSIS\n\
         .B haul\n.RI [ options ...]\n.IR url ...\n.br\n.B haul curl\n.RI [ options ...]\n.IR url ...\n.SH DESCRIPTION\n\
         haul fetches and sends HTTP bodies: one large body over several connections where that helps, thousands of small ones \
         over few. Its options are curl's wherever curl has them. Called as \"haul curl\", or by a link of the name curl, it has \
         curl's defaults, messages and exit codes too.\n.SH OPTIONS\n"
    );
    for flag in FLAGS {
        option(&mut text, flag.spec());
    }
    text.push_str(
        ".SH FILES\n.TP\n.I ~/.netrc\nWho one is, with \\fB\\-\\-netrc\\fR.\n.TP\n.I ~/.curlrc\nOptions, read first as curl alone.\n\
         .SH ENVIRONMENT\n.TP\n.B http_proxy, https_proxy, all_proxy, no_proxy\nThrough whom connections go.\n.TP\n\
         .B CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR\nWhom to trust.\n.TP\n.B SSLKEYLOGFILE\nWhere the keys of TLS \
         connections are written, to look into them.\n.SH EXIT STATUS\nThe numbers are curl's; docs/exit\\-codes.md lists them.\n\
         .SH SEE ALSO\n.BR curl (1)\n",
    );
    text
}

fn option(text: &mut String, spec: &Spec) {
    let letter = spec.short.map(|letter| format!("\\fB\\-{}\\fR, ", escaped(&letter.to_string()))).unwrap_or_default();
    let value = match spec.takes {
        Takes::Switch | Takes::Once => String::new(),
        Takes::Value(name) | Takes::Trailing(name) => format!(" \\fI{}\\fR", escaped(name)),
        Takes::Optional(name) => format!("[=\\fI{}\\fR]", escaped(name)),
    };
    text.push_str(&format!(".TP\n{letter}\\fB\\-\\-{}\\fR{value}\n{}\n", escaped(spec.long), line(spec.doc)));
    if spec.takes == Takes::Switch {
        text.push_str(&format!("Turned off by \\fB\\-\\-no\\-{}\\fR.\n", escaped(spec.long)));
    }
    text.push_str(&format!(".sp\n.RS 4\n.nf\n{}\n.fi\n.RE\n", line(spec.example)));
}

/// Text of which no line begins with what roff takes for its own.
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
    fn every_flag_is_on_the_page_and_no_line_of_text_is_a_request() {
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
