//! The man pages of the programs that haul can replace: curl, and ftp and fetch.

use super::roff_text::{escaped, literal_block, text_line};
use super::title_line;
use crate::flags::unsupported;
use crate::ftp;
use crate::program_persona::CURL_VERSION;

/// The differences between calling the program as `haul` and as `curl`, for the man page.
const DIFFERENCES: &[(&str, &str)] = &[
    ("Redirects", "are followed only with -L."),
    ("Statuses", "of 400 and above are failures only with -f."),
    ("Many URLs", "are fetched one after the other, in parallel with -Z. The exit code is that of the last transfer."),
    ("Failures", "are retried only with --retry. -m limits each try."),
    ("Large bodies", "come over one connection."),
    ("Files", "are written in place, not under a temporary name until they are complete."),
    ("file: URLs", "are read and written, but never through a redirect."),
    ("Messages", "are curl's: the progress meter, the lines of errors and of -v, the text of --help and --version."),
    ("~/.curlrc", "is read first, unless -q is the first option."),
];

/// Returns the text of the page `haul-curl.1`.
pub fn curl_page() -> String {
    let mut text = title_line("haul-curl", "1", "haul in curl's place");
    text.push_str(
        ".SH SYNOPSIS\n.B haul curl\n.RI [ options ...]\n.IR url ...\n.br\n.B curl\n.RI [ options ...]\n.IR url ...\n\
         .SH FIRST STEPS\n",
    );
    text.push_str(&literal_block(["haul curl -s https://example.com/", "ln -s \"$(command -v haul)\" ~/bin/curl"]));
    text.push_str(&format!(
        ".SH DESCRIPTION\n{}\n",
        text_line(&format!(
            "As \"haul curl\", or through a link named curl, haul behaves like curl {CURL_VERSION}, so that scripts that call \
             curl run unchanged. Options, exit codes and the variables of -w are curl's, and so are these defaults:"
        ))
    ));
    append_entries(&mut text, DIFFERENCES);
    text.push_str(".SH OPTIONS\n");
    text.push_str(&text_line(
        "The options are those of haul(1); those that only haul has work, too, except for --job and --refresh. These are refused, with the reason:",
    ));
    text.push('\n');
    for (reason, names) in unsupported::refusal_reasons() {
        let names: Vec<String> = names.split_ascii_whitespace().map(|name| format!("--{name}")).collect();
        text.push_str(&format!(".TP\n.B {}\n{}.\n", escaped(&names.join(", ")), text_line(reason)));
    }
    text.push_str(".SH EXIT STATUS\n");
    text.push_str(&text_line("As curl's; docs/exit-codes.md lists them."));
    text.push_str("\n.SH SEE ALSO\n.BR haul (1),\n.BR curl (1)\n");
    text
}

/// Returns the text of the page `haul-ftp.1`.
pub fn ftp_page() -> String {
    let mut text = title_line("haul-ftp", "1", "haul in place of ftp(1), fetch(1) and apt's http method");
    text.push_str(
        ".SH SYNOPSIS\n.B haul ftp\n.RI [ options ...]\n.IR url ...\n.br\n.B haul fetch\n.RI [ options ...]\n.IR url ...\n.br\n\
         .B haul apt\\-method\n.SH FIRST STEPS\n",
    );
    text.push_str(&literal_block([
        "haul ftp -o file.tgz https://example.com/file.tgz",
        "haul fetch https://example.com/file.tgz",
        "FETCH_CMD='haul ftp --agent' pkg_add something",
    ]));
    text.push_str(&format!(
        ".SH DESCRIPTION\n{}\n",
        text_line(
            "These programs fetch URLs with the command lines of OpenBSD's ftp(1) and FreeBSD's fetch(1), and with the protocol \
             of apt's methods, so that package managers can call them. docs/package-managers.md says how to set each one up."
        )
    ));
    for (heading, help) in [("OPTIONS OF HAUL FTP", ftp::FTP_HELP), ("OPTIONS OF HAUL FETCH", ftp::FETCH_HELP)] {
        text.push_str(&format!(".SH {heading}\n"));
        let options = help.lines().filter_map(|text| text.strip_prefix("  ")?.trim().split_once("  "));
        let options: Vec<(&str, &str)> = options.map(|(names, what)| (names, what.trim())).collect();
        append_entries(&mut text, &options);
    }
    text.push_str(".PP\nLetters that concern the FTP protocol are accepted and mean nothing.\n");
    text.push_str(".SH SEE ALSO\n.BR haul (1)\n");
    text
}

fn append_entries(text: &mut String, entries: &[(&str, &str)]) {
    for (name, what) in entries {
        text.push_str(&format!(".TP\n.B {}\n{}\n", escaped(name), text_line(what)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_and_ftp_pages_list_their_options() {
        let (curl, ftp) = (curl_page(), ftp_page());
        assert!(curl.contains("\\-\\-ntlm") && curl.contains("password can be recovered"), "{curl}");
        assert!(
            ftp.contains(".B \\-o FILE\nWrite to FILE") && ftp.matches("\\-\\-agent[=SOCKET]").count() == 2,
            "{ftp}"
        );
    }
}
