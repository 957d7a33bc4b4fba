//! The names of `-w` variables.

macro_rules! variables {
    ($($name:literal $variant:ident $doc:literal;)*) => {
        /// A variable of `-w`, such as `%{http_code}`. `Self::NAMES` lists curl's names for the
        /// variables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WriteOutVariable {
            $(#[doc = $doc] $variant,)*
        }

        impl WriteOutVariable {
            /// Every name of a `-w` variable with its variable, sorted by name. One variable can
            /// have two names, such as `http_code` and `response_code`.
            pub const NAMES: &[(&str, WriteOutVariable)] = &[
                $(($name, WriteOutVariable::$variant),)*
            ];
        }
    };
}

variables! {
    "certs" Certs "The server's certificates, in words and as PEM.";
    "conn_id" ConnId "Number of the last connection, from 0; -1 without one.";
    "content_type" ContentType "`Content-Type` of the last reply.";
    "errormsg" ErrorMessage "What went wrong; empty after a success.";
    "exitcode" ExitCode "The exit code of this transfer.";
    "filename_effective" FilenameEffective "The file written to.";
    "ftp_entry_path" FtpEntryPath "Of FTP: always empty.";
    "http_code" HttpCode "Status of the last reply, three digits; `000` without one.";
    "http_connect" HttpConnect "Status of a proxy's last answer to CONNECT; `000` without one.";
    "http_version" HttpVersion "`1`, `1.1`, `2`, `3`; `0` without a reply.";
    "local_ip" LocalIp "The local address of the last connection.";
    "local_port" LocalPort "The local port of the last connection; -1 without one.";
    "method" Method "The method of the last request.";
    "num_certs" NumCerts "How many certificates `certs` has.";
    "num_connects" NumConnects "New connections made.";
    "num_headers" NumHeaders "Fields of the last reply.";
    "num_redirects" NumRedirects "Redirects followed.";
    "num_retries" NumRetries "Further tries made.";
    "proxy_ssl_verify_result" ProxyVerifyResult "What is wrong with an https proxy's certificate, by OpenSSL's numbers; 0 if nothing is.";
    "proxy_used" ProxyUsed "1 through a proxy, else 0.";
    "redirect_url" RedirectUrl "Where the last reply would lead, were it followed.";
    "referer" Referer "`Referer` of the last request.";
    "remote_ip" RemoteIp "The address connected to, or the file of a Unix socket.";
    "remote_port" RemotePort "The port connected to; -1 without one, as over a Unix socket.";
    "response_code" ResponseCode "Status of the last reply, three digits; `000` without one.";
    "scheme" Scheme "Scheme of the last URL.";
    "size_delivered" SizeDelivered "Bytes of the body, as written: decoded, with --compressed.";
    "size_download" SizeDownload "Bytes of the body, as transferred.";
    "size_header" SizeHeader "Bytes of all heads received.";
    "size_request" SizeRequest "Bytes of all requests sent, heads and content.";
    "size_upload" SizeUpload "Bytes of content sent.";
    "speed_download" SpeedDownload "Bytes a second over the whole transfer.";
    "speed_upload" SpeedUpload "Bytes of content sent a second over the whole transfer.";
    "ssl_verify_result" VerifyResult "What is wrong with the server's certificate, by OpenSSL's numbers; 0 if nothing is.";
    "time_appconnect" TimeAppConnect "Seconds until TLS was up.";
    "time_connect" TimeConnect "Seconds until the connection was up.";
    "time_namelookup" TimeNameLookup "Seconds until the name was resolved.";
    "time_posttransfer" TimePostTransfer "Seconds until the last byte of the request had gone.";
    "time_pretransfer" TimePreTransfer "Seconds until the request began to go.";
    "time_queue" TimeQueue "Seconds it waited for its turn: always 0, waiting is no part of a transfer.";
    "time_redirect" TimeRedirect "Seconds that redirects took.";
    "time_starttransfer" TimeStartTransfer "Seconds until the first byte of the reply.";
    "time_total" TimeTotal "Seconds until the end.";
    "tls_earlydata" TlsEarlyData "Bytes sent as early data: always 0.";
    "url" Url "The URL as given.";
    "url.fragment" UrlFragment "Its fragment.";
    "url.host" UrlHost "Its host.";
    "url.options" UrlOptions "Of mail protocols: always empty.";
    "url.password" UrlPassword "Always empty: nothing secret is printed.";
    "url.path" UrlPath "Its path.";
    "url.port" UrlPort "Its port.";
    "url.query" UrlQuery "Its query.";
    "url.scheme" UrlScheme "Its scheme.";
    "url.user" UrlUser "Its user.";
    "url.zoneid" UrlZoneId "Its zone, of an IPv6 address.";
    "url_effective" UrlEffective "The URL fetched last.";
    "urle.fragment" UrleFragment "The fragment of the URL fetched last.";
    "urle.host" UrleHost "Its host.";
    "urle.options" UrleOptions "Always empty.";
    "urle.password" UrlePassword "Always empty: nothing secret is printed.";
    "urle.path" UrlePath "Its path.";
    "urle.port" UrlePort "Its port.";
    "urle.query" UrleQuery "Its query.";
    "urle.scheme" UrleScheme "Its scheme.";
    "urle.user" UrleUser "Its user.";
    "urle.zoneid" UrleZoneId "Its zone, of an IPv6 address.";
    "urlnum" UrlNumber "Position of the URL in its operation, from 0; as curl, among all URLs.";
    "xfer_id" XferId "Number of the transfer, from 0.";
}

impl WriteOutVariable {
    /// Returns true if the value of the variable is a number in the output of `%{json}`.
    pub fn is_number(self) -> bool {
        let named = WriteOutVariable::NAMES.iter().find(|(_, variable)| *variable == self);
        let name = named.map_or("", |&(name, _)| name);
        ["size_", "speed_", "time_", "num_", "http_co"].iter().any(|start| name.starts_with(start))
            || matches!(
                name,
                "conn_id"
                    | "exitcode"
                    | "local_port"
                    | "proxy_used"
                    | "remote_port"
                    | "response_code"
                    | "urlnum"
                    | "xfer_id"
                    | "tls_earlydata"
                    | "ssl_verify_result"
                    | "proxy_ssl_verify_result"
            )
    }

    /// Returns the variable with this name, such as `http_code`; `None` for an unknown name.
    pub fn from_name(name: &[u8]) -> Option<WriteOutVariable> {
        let found = WriteOutVariable::NAMES.iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|&(_, variable)| variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_out_variable_names_are_unique() {
        for (at, (name, _)) in WriteOutVariable::NAMES.iter().enumerate() {
            assert!(WriteOutVariable::NAMES[..at].iter().all(|(other, _)| other != name), "{name}");
        }
    }
}
