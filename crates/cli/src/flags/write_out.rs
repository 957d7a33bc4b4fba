//! `-w`, `--write-out`.

use super::prelude::*;
use crate::args::TextOrFile;

pub(super) struct WriteOut;

impl Flag for WriteOut {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "write-out",
            short: Some('w'),
            takes: Takes::Value("format"),
            category: Category::Verbose,
            important: true,
            help: "Print facts after a transfer",
            doc: "Prints FORMAT after each transfer, with %{name} for content_type, errormsg, \
                  exitcode, filename_effective, http_code, http_version, local_ip, local_port, method, \
                  num_connects, num_redirects, remote_ip, remote_port, response_code, scheme, \
                  size_download, speed_download, time_appconnect, time_connect, time_namelookup, \
                  time_starttransfer, time_total, url, url_effective and urlnum; %{stdout} and \
                  %{stderr} choose the stream, what follows %{onerror} is for failures only. %% is a \
                  percent sign; \\n, \\r and \\t are understood. \"@file\" reads the format from a file.",
            example: "haul -w '%{http_code} %{url}\\n' -o page https://example.com/",
            see_also: &["stats"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.stage().write_out = Some(TextOrFile::new(value.bytes())?);
        Ok(())
    }
}
