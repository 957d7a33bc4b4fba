//! The `Debug` output of requests. It contains names and lengths only, because field values,
//! content and user names may be secrets (`docs/design/trust.md`).

use std::fmt;

use super::{MultipartForm, RequestOptions, RequestOverrides};
use crate::body::upload::{BodyPiece, RequestBody};

/// A secret, for `Debug` output: only its length in bytes is shown.
struct HiddenBytes(usize);

impl HiddenBytes {
    fn from_option(value: Option<&[u8]>) -> Option<Self> {
        value.map(|value| Self(value.len()))
    }
}

impl fmt::Debug for HiddenBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

/// Header fields, for `Debug` output: only their names are shown, since their values may be
/// secrets.
struct FieldsWithoutValues<'a>(&'a [(String, Vec<u8>)]);

impl fmt::Debug for FieldsWithoutValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, value)| (name, HiddenBytes(value.len())))).finish()
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("method", &self.method)
            .field("fields", &FieldsWithoutValues(&self.fields))
            .field("without", &self.without)
            .field("user_agent", &self.user_agent.as_deref().map(String::from_utf8_lossy))
            .field("authorization", &HiddenBytes::from_option(self.authorization.as_deref()))
            .field("auth", &self.auth)
            .field("cookie", &HiddenBytes::from_option(self.cookie.as_deref()))
            .field("jar", &self.jar)
            .field("range", &self.range)
            .field("body", &self.body)
            .field("content_type", &self.content_type)
            .field("decode", &self.decode)
            .field("decode_limits", &self.decode_limits)
            .field("fail", &self.fail)
            .field("redirects", &self.redirects)
            .field("retry", &self.retry)
            .field("max_time", &self.max_time)
            .field("total_time", &self.total_time)
            .field("read_timeout", &self.read_timeout)
            .field("write_timeout", &self.write_timeout)
            .field("pool_timeout", &self.pool_timeout)
            .field("stall", &self.stall)
            .field("max_size", &self.max_size)
            .field("resume_from", &self.resume_from)
            .field("span", &self.span)
            .field("split", &self.split)
            .field("family", &self.family)
            .field("connect", &self.connect)
            .field("connect_to", &self.connect_to)
            .field("prior_knowledge", &self.prior_knowledge)
            .field("fresh_connection", &self.fresh_connection)
            .field("closes_connection", &self.closes_connection)
            .field("http3", &self.http3)
            .field("http3_cache", &self.http3_cache)
            .field("tls", &self.tls)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RequestOverrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Particulars")
            .field("method", &self.method)
            .field("fields", &FieldsWithoutValues(&self.fields))
            .field("body", &self.body)
            .field("trailers", &self.trailers)
            .field("max_time", &self.max_time)
            .finish()
    }
}

impl fmt::Debug for MultipartForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("parts", &self.parts.len()).field("sources", &self.sources).finish()
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.debug_tuple("Bytes").field(&HiddenBytes(bytes.len())).finish(),
            Self::Pieces(pieces) => f.debug_tuple("Pieces").field(pieces).finish(),
        }
    }
}

impl fmt::Debug for BodyPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.debug_tuple("Bytes").field(&HiddenBytes(bytes.len())).finish(),
            Self::File { path, offset, length } => {
                f.debug_struct("File").field("path", path).field("offset", offset).field("length", length).finish()
            }
            Self::Once(once) => once.fmt(f),
            Self::Source(source) => source.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Client;
    use crate::body::upload::{BodyPiece, RequestBody};
    use crate::request::MultipartForm;

    const SECRET: &str = "hunter2";

    fn hides(shown: &str) {
        let bytes = format!("{:?}", SECRET.as_bytes());
        let listed = bytes.trim_matches(['[', ']']);
        assert!(!shown.contains(SECRET) && !shown.contains(listed) && !shown.contains("104,\n"), "{shown}");
    }

    #[test]
    fn debug_output_shows_no_secret_values() {
        let client = Client::builder().header("X-Api-Key", SECRET).options(|options| {
            options.authorization = Some(SECRET.into());
            options.cookie = Some(SECRET.into());
            options.referer = Some(format!("http://u:{SECRET}@h/").into());
            options.body = Some(SECRET.into());
        });
        hides(&format!("{client:?} {client:#?}"));
        let client = client.build();
        for url in [format!("http://u:{SECRET}@h/p?q"), format!("u:{SECRET}@h"), format!("http://u:a@{SECRET}@h/")] {
            let builder =
                client.post(&url).bearer(SECRET).basic_auth("u", SECRET).header("Cookie", SECRET).body(SECRET);
            let shown = format!("{builder:?} {builder:#?}");
            hides(&shown);
            assert!(shown.contains("\"Cookie\": 7 bytes") && shown.contains("Bytes(7 bytes)"), "{shown}");
            if let Ok(request) = builder.build() {
                hides(&format!("{request:?} {request:#?} {:?} {:#?}", request.options(), request.overrides()));
            }
        }
        let pieces = RequestBody::pieces([BodyPiece::Bytes(SECRET.as_bytes().into())]);
        hides(&format!("{pieces:?} {pieces:#?}"));
        let form = MultipartForm::new().text("a", SECRET).bytes("b", "c", SECRET);
        hides(&format!("{form:?} {form:#?} {:?}", client.post("http://h/").multipart(form.clone())));
    }
}
