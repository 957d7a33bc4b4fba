//! The names of the facts that `-w` can print.

macro_rules! variables {
    ($($name:literal $variant:ident $doc:literal;)*) => {
        /// A fact that `-w` can print. `Self::NAMES` holds curl's names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Variable {
            $(#[doc = $doc] $variant,)*
        }

        impl Variable {
            /// Every name with its fact. `http_code` and `response_code` are the same.
            pub const NAMES: &[(&str, Variable)] = &[
                ("http_code", Variable::ResponseCode),
                $(($name, Variable::$variant),)*
            ];
        }
    };
}

variables! {
    "content_type" ContentType "`Content-Type` of the last reply.";
    "errormsg" ErrorMessage "What went wrong; empty after a success.";
    "exitcode" ExitCode "The exit code of this transfer.";
    "filename_effective" FilenameEffective "The file written to.";
    "http_version" HttpVersion "`1`, `1.1`, `2`, `3`; `0` without a reply.";
    "local_ip" LocalIp "The local address of the last connection.";
    "local_port" LocalPort "The local port of the last connection.";
    "method" Method "The method of the last request.";
    "num_connects" NumConnects "New connections made.";
    "num_redirects" NumRedirects "Redirects followed.";
    "remote_ip" RemoteIp "The address connected to.";
    "remote_port" RemotePort "The port connected to.";
    "response_code" ResponseCode "Status of the last reply, three digits; `000` without one.";
    "scheme" Scheme "Scheme of the last URL.";
    "size_download" SizeDownload "Bytes of the body, as transferred.";
    "speed_download" SpeedDownload "Bytes a second over the whole transfer.";
    "time_appconnect" TimeAppConnect "Seconds until TLS was up.";
    "time_connect" TimeConnect "Seconds until the connection was up.";
    "time_namelookup" TimeNameLookup "Seconds until the name was resolved.";
    "time_starttransfer" TimeStartTransfer "Seconds until the first byte of the reply.";
    "time_total" TimeTotal "Seconds until the end.";
    "url" Url "The URL as given.";
    "url_effective" UrlEffective "The URL fetched last.";
    "urlnum" UrlNumber "Position of the URL in its operation, from 0.";
}

impl Variable {
    /// The fact of this name.
    pub fn named(name: &[u8]) -> Option<Variable> {
        let found = Variable::NAMES.iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|&(_, variable)| variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (at, (name, _)) in Variable::NAMES.iter().enumerate() {
            assert!(Variable::NAMES[..at].iter().all(|(other, _)| other != name), "{name}");
        }
    }
}
