//! The option `--write-out` (`-w`): prints values of a transfer, such as its status code, after its
//! end.

use super::prelude::*;
use crate::parsed_args::TextOrFile;

pub(super) struct WriteOutFlag;

impl FlagDefinition for WriteOutFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "write-out",
            short: Some('w'),
            syntax: FlagSyntax::Value("format"),
            category: HelpCategory::Verbose,
            important: true,
            help: "Print facts after a transfer",
            doc: "Prints FORMAT after each transfer, with %{NAME} for a fact: certs, conn_id, content_type, errormsg, exitcode, \
                  filename_effective, ftp_entry_path, http_code, http_connect, http_version, local_ip, local_port, \
                  method, num_certs, num_connects, num_headers, num_redirects, num_retries, \
                  proxy_ssl_verify_result, proxy_used, redirect_url, referer, remote_ip, remote_port, response_code, \
                  scheme, size_delivered, size_download, size_header, size_request, size_upload, speed_download, \
                  speed_upload, ssl_verify_result, time_appconnect, time_connect, time_namelookup, time_posttransfer, \
                  time_pretransfer, time_queue, time_redirect, time_starttransfer, time_total, tls_earlydata, url, \
                  url_effective, urlnum and xfer_id; url.PART is a part of the URL as given, urle.PART of the one \
                  fetched last, with fragment, host, options, password (always empty), path, port, query, scheme, user and zoneid. \
                  %{json} is all facts as one JSON object, %{header_json} the fields of the last reply, \
                  %header{NAME} one of them, %header{NAME:all:SEPARATOR} all of that name; %time{FORMAT} is the time of day by \
                  strftime, in UTC. %{stdout}, %{stderr} and %output{FILE} (%output{>>FILE} adds to it) choose where \
                  what follows goes; what follows %{onerror} is for failures only. %% is a percent sign; \\n, \\r and \\t \
                  are understood. \"@file\" reads the format from a file.",
            example: "haul -w '%{http_code} %{url}\\n' -o page https://example.com/",
            see_also: "stats",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().write_out = Some(TextOrFile::new(value.bytes())?);
        Ok(())
    }
}
