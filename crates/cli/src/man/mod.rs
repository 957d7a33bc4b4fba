//! Generates the man pages: `haul.1`, `haul-curl.1`, `haul-ftp.1` and `haul-recipes.7`.
//!
//! ```
//! let page = haul_cli::man::page();
//! assert!(page.starts_with(".TH HAUL 1") && page.contains(r"\fB\-o\fR, \fB\-\-output\fR \fIfile\fR"));
//! ```

mod curl_and_ftp_pages;
mod markdown_to_roff;
mod roff_text;

use crate::flags::{FLAGS, FlagSpec, FlagSyntax, HelpCategory};
use crate::program_persona::VERSION;
use roff_text::{escaped, text_line};

pub use curl_and_ftp_pages::{curl_page, ftp_page};

/// Returns the text of haul's man page in roff: first steps, the syntax of URLs and file names,
/// exit codes, files and environment, then the options by topic.
pub fn page() -> String {
    let mut text = title_line("haul", "1", "move HTTP bodies, one or millions");
    text.push_str(
        ".SH SYNOPSIS\n.B haul\n.RI [ options ...]\n.IR url ...\n.br\n\
         .B haul job status | list | retry | report | vacuum\n.IR file\n.br\n\
         .B haul doctor\n.RB [ \\-\\-format\n.IR text | json ]\n.RI [ options ...]\n.IR url\n.br\n\
         .B haul curl\n.RI [ options ...]\n.IR url ...\n.br\n\
         .B haul ftp | haul fetch | haul apt\\-method\n",
    );
    for (heading, paragraphs) in INTRODUCTION {
        text.push_str(&format!(".SH {heading}\n"));
        for (number, paragraph) in paragraphs.iter().enumerate() {
            let break_before = if number > 0 { ".PP\n" } else { "" };
            text.push_str(&format!("{break_before}{}\n", text_line(paragraph)));
        }
        for (_, example, meaning) in EXAMPLES.iter().filter(|(of, ..)| of == heading) {
            text.push_str(&format!(".TP\n.B {}\n{}\n", escaped(example), text_line(meaning)));
        }
    }
    for (heading, entries) in SECTIONS {
        text.push_str(&format!(".SH {heading}\n"));
        for (name, what) in *entries {
            text.push_str(&format!(".TP\n.B {}\n{}\n", escaped(name), text_line(what)));
        }
    }
    text.push_str(".SH OPTIONS\n");
    for category in HelpCategory::ALL {
        text.push_str(&format!(".SS {}\n", escaped(category.about())));
        FLAGS.iter().map(|flag| flag.spec()).filter(|spec| spec.category == *category).for_each(|spec| {
            append_option(&mut text, &spec);
        });
    }
    text.push_str(".SH SEE ALSO\n.BR haul\\-recipes (7),\n.BR haul\\-curl (1),\n.BR haul\\-ftp (1),\n.BR curl (1)\n");
    text
}

/// Returns the text of the page `haul-recipes.7`, which is made from the guide `docs/recipes.md`.
pub fn recipes(guide: &str) -> String {
    let mut text = title_line("haul-recipes", "7", "whole jobs in one or two commands");
    text.push_str(&markdown_to_roff::to_roff(guide));
    text.push_str(".SH SEE ALSO\n.BR haul (1)\n");
    text
}

/// Returns the title and the section NAME, with which a man page begins.
fn title_line(name: &str, section: &str, about: &str) -> String {
    format!(
        ".TH {} {section} \"\" \"haul {VERSION}\" \"haul\"\n.SH NAME\n{} \\- {about}\n",
        escaped(&name.to_uppercase()),
        escaped(name)
    )
}

/// The sections at the beginning of haul's man page. Each has a heading and paragraphs.
const INTRODUCTION: &[(&str, &[&str])] = &[
    ("FIRST STEPS", &[]),
    (
        "DESCRIPTION",
        &[
            "haul fetches and sends HTTP bodies: one large body over several connections where that helps, thousands of \
             small ones over a few. Where curl has an option for something, haul uses the same name. Four defaults differ: \
             redirects are followed, a status of 400 or above is a failure, failures that may pass are retried up to three \
             times, and many URLs are fetched in parallel and printed in their order.",
            "Called as \"haul curl\", or through a link named curl, it also has curl's defaults, messages and exit codes: \
             haul-curl(1). \"haul ftp\", \"haul fetch\" and \"haul apt-method\" replace OpenBSD's ftp(1), FreeBSD's fetch(1) \
             and apt's http method: haul-ftp(1).",
            "haul --help WORD searches the options and the guides; haul --help --OPTION explains one option. haul doctor \
             shows what happens when a URL is fetched: name lookup, addresses, TLS, versions of HTTP, redirects, \
             compression, ranges, validators, rate and proxy. It has no secrets, and \"--format json\" is for programs.",
        ],
    ),
    ("GLOBS", &["A URL may stand for several. -g takes brackets and braces literally."]),
    (
        "STAGES",
        &[
            "--extract, --select and --select-json print values of the pages instead of the pages. --then makes a URL of \
           each value, and its pages are the next stage. --unique drops repeated values, --sort sorts the last ones.",
        ],
    ),
    (
        "NAMES OF FILES",
        &[
            "-o FILE names the file of the next URL, -O takes the name from the URL, and --output-dir is the directory. A \
           name may have parts of the URL, each safe as the name of a file.",
        ],
    ),
];

/// The examples in the sections of [`INTRODUCTION`]: the section's heading, an example, and its
/// meaning.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("FIRST STEPS", "haul https://example.com/", "Prints a page."),
    ("FIRST STEPS", "haul -O https://example.com/file.tar.gz", "Stores it as file.tar.gz, once it is complete."),
    ("FIRST STEPS", "haul https://example.com/file.tar.gz | tar zx", "Unpacks it while it comes."),
    (
        "FIRST STEPS",
        "haul --input-file urls.txt > pages",
        "Fetches many, in parallel; the output has the order of the list.",
    ),
    (
        "FIRST STEPS",
        "haul --job site.job --remote-name-all --input-file urls.txt",
        "The same with files, and goes on after a kill.",
    ),
    (
        "FIRST STEPS",
        "haul -d name=me https://example.com/form",
        "Sends a form. --json sends JSON, -T FILE uploads a file.",
    ),
    (
        "FIRST STEPS",
        "haul -u me https://example.com/private",
        "Asks for the password, and sends it to that server only.",
    ),
    (
        "GLOBS",
        "https://example.com/[1-100]",
        "Numbers; [001-100] keeps the zeros, [1-100:5] is every fifth, [a-z] are letters.",
    ),
    ("GLOBS", "https://{www,ftp}.example.com/", "Words; {<name>a,b} names them for -o '#<name>'."),
    (
        "STAGES",
        "haul 'https://example.com/list' --select 'li > a@href' --then '{}' -O",
        "Stores each page that the list links to.",
    ),
    (
        "STAGES",
        "haul 'https://example.com/[1-9]' --extract 'id=([0-9]+)' --unique --sort",
        "Prints the ids of nine pages, each once.",
    ),
    ("NAMES OF FILES", "-o 'page_#1.html'", "#1, #2 are the values of the first and second glob."),
    ("NAMES OF FILES", "-o '{host}/{path}' --create-dirs", "Parts of the URL; also {scheme}, {port}, {name}, {query}."),
    ("NAMES OF FILES", "--mirror-paths", "The host and the path, with their directories."),
];

/// The sections of haul's man page about exit codes, files and environment. Each has a heading, and
/// entries with their descriptions.
const SECTIONS: &[(&str, &[(&str, &str)])] = &[
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
    (
        "FILES",
        &[
            ("~/.netrc", "User names and passwords, with --netrc."),
            (
                "$CURL_HOME/.curlrc, $XDG_CONFIG_HOME/curlrc, ~/.curlrc, ~/.config/curlrc",
                "Options, only in curl's place. The first file that exists is read. ~/.config/curlrc is \
                 not searched if CURL_HOME or XDG_CONFIG_HOME is set; $CURL_HOME/.config/curlrc is searched if \
                 CURL_HOME is set and XDG_CONFIG_HOME is not.",
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
            (
                "http_proxy, https_proxy, all_proxy, no_proxy",
                "Proxies to use, and hosts to reach without one. The names in upper case work, too, except for HTTP_PROXY.",
            ),
            (
                "CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR",
                "CA certificates to trust. CURL_CA_BUNDLE takes precedence over SSL_CERT_FILE.",
            ),
            ("SSLKEYLOGFILE", "File to which the secrets of TLS connections are written, for tools that decrypt them."),
            ("NETRC", "The file that --netrc reads."),
            ("HAUL_AGENT", "The socket of an agent, as with --agent=SOCKET."),
            ("XDG_RUNTIME_DIR", "Directory of the socket of --agent if none is named."),
            ("NO_COLOR", "If set and not empty, output has no colors."),
            ("TMPDIR", "Directory of temporary files for --sort and --unique, when their values do not fit in memory."),
        ],
    ),
];

fn append_option(text: &mut String, spec: &FlagSpec) {
    let letter = spec.short.map(|letter| format!("\\fB\\-{}\\fR, ", escaped(&letter.to_string()))).unwrap_or_default();
    let value = match spec.syntax {
        FlagSyntax::Switch | FlagSyntax::Once => String::new(),
        FlagSyntax::Value(name) | FlagSyntax::Trailing(name) => format!(" \\fI{}\\fR", escaped(name)),
        FlagSyntax::Optional(name) => format!("[=\\fI{}\\fR]", escaped(name)),
    };
    text.push_str(&format!(".TP\n{letter}\\fB\\-\\-{}\\fR{value}\n{}\n", escaped(spec.long), text_line(spec.doc)));
    if spec.is_turned_off_by_no() {
        text.push_str(&format!("Turned off by \\fB\\-\\-no\\-{}\\fR.\n", escaped(spec.long)));
    }
    text.push_str(&format!(".sp\n.RS 4\n.nf\n{}\n.fi\n.RE\n", text_line(spec.example)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics if a man page contains a roff request that these pages do not use.
    fn assert_valid(page: &str) {
        let requests = [
            ".TH", ".SH", ".SS", ".TP", ".PP", ".IP", ".B", ".RI", ".IR", ".br", ".I", ".BR", ".sp", ".RS", ".RE",
            ".nf", ".fi", ".RB",
        ];
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            let request = line.split(' ').next().unwrap_or_default();
            assert!(requests.contains(&request), "{line}");
        }
        assert!(page.starts_with(".TH ") && page.contains("\n.SH NAME\n") && page.ends_with('\n'));
    }

    #[test]
    fn man_page_has_every_flag_and_valid_roff() {
        let page = page();
        for flag in FLAGS {
            assert!(page.contains(&format!("\\fB\\-\\-{}\\fR", escaped(flag.spec().long))), "{}", flag.spec().long);
        }
        assert_valid(&page);
        let position = |heading: &str| page.find(&format!(".SH {heading}\n")).expect(heading);
        let headings = ["SYNOPSIS", "FIRST STEPS", "GLOBS", "STAGES", "EXIT STATUS", "FILES", "ENVIRONMENT", "OPTIONS"];
        assert!(headings.map(position).is_sorted(), "examples come first");
        assert!(EXAMPLES.iter().all(|(of, ..)| INTRODUCTION.iter().any(|(heading, _)| heading == of)));
    }

    #[test]
    fn man_pages_of_curl_and_ftp_are_valid() {
        for page in [curl_page(), ftp_page(), recipes("# R\n\nText.\n\n## S\n```sh\n.x\n```\n")] {
            assert_valid(&page);
        }
    }
}
