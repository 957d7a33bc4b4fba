//! Conversions from and to the requests and responses of the crate [`http`] (feature `http`).
//!
//! ```
//! # let origin = testkit::origin::Origin::builder().start().unwrap();
//! # let url = origin.url("/echo");
//! let client = haul::Client::new();
//! let request = http::Request::put(&url).header("x-trace", "7").body("text")?;
//! let response: http::Response<Vec<u8>> = client.request_from(request).send()?.try_into()?;
//! assert_eq!(response.status(), http::StatusCode::OK);
//! assert_eq!(response.headers()["content-type"], "application/json");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use haul_proto::response_head::{ProtocolVersion, ResponseHead};
use http::{HeaderName, HeaderValue, request::Parts};

use crate::body::upload::RequestBody;
use crate::response::{BufferedResponse, Response, ResponseInfo};
use crate::{Client, Error, ErrorKind, RequestBuilder, Result};

impl Client {
    /// Starts a request with the method, URL, header fields and body of a request of the crate
    /// `http`. The version and the extensions of that request are ignored. The builder's `options`
    /// choose the version.
    pub fn request_from<B: Into<RequestBody>>(&self, request: http::Request<B>) -> RequestBuilder {
        let (parts, body) = request.into_parts();
        self.request_from_parts(&parts).body(body)
    }

    /// Starts a request with the method, URL and header fields of a request of the crate `http`,
    /// without a body.
    pub fn request_from_parts(&self, parts: &Parts) -> RequestBuilder {
        let builder = self.request(&parts.method, parts.uri.to_string());
        // A name of several fields is repeated, so that each of them is sent.
        builder.headers(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
    }
}

impl ResponseInfo {
    /// Returns the status, version and header fields as a response of the crate `http`, without a
    /// body. To add a body, use `response.to_http()?.map(|()| body)`.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if the types of that crate cannot represent the status or a field.
    /// Those types are stricter than haul is with servers (for example, about control characters in
    /// a value).
    pub fn to_http(&self) -> Result<http::Response<()>> {
        to_http_response(self.head(), ()).map_err(|error| conversion_error(error, self.url()))
    }
}

impl TryFrom<BufferedResponse> for http::Response<Vec<u8>> {
    type Error = Error;

    fn try_from(response: BufferedResponse) -> Result<Self> {
        let BufferedResponse { head, target, body, .. } = response;
        to_http_response(&head, body).map_err(|error| conversion_error(error, target.to_url()))
    }
}

impl TryFrom<Response> for http::Response<Vec<u8>> {
    type Error = Error;

    /// Converts a response to the type of the crate `http`. Reads the whole body into memory.
    fn try_from(response: Response) -> Result<Self> {
        let head = response.to_http()?;
        let body = response.bytes()?;
        Ok(head.map(|()| body))
    }
}

fn to_http_response<B>(head: &ResponseHead, body: B) -> http::Result<http::Response<B>> {
    let mut response = http::Response::new(body);
    *response.status_mut() = head.status().try_into()?;
    *response.version_mut() = match head.version() {
        ProtocolVersion::Http10 => http::Version::HTTP_10,
        ProtocolVersion::Http2 => http::Version::HTTP_2,
        ProtocolVersion::Http3 => http::Version::HTTP_3,
        _ => http::Version::HTTP_11,
    };
    for (name, value) in head.field_bytes() {
        response.headers_mut().append(HeaderName::from_bytes(name)?, HeaderValue::from_bytes(value)?);
    }
    Ok(response)
}

fn conversion_error(error: http::Error, url: String) -> Error {
    Error::with_source(ErrorKind::Protocol, "the head does not fit the types of the crate http", error).with_url(url)
}

#[cfg(test)]
mod tests {
    use testkit::h1_peer::{H1Peer, ScriptStep};

    use super::*;

    fn reply(text: &'static str) -> (H1Peer, Response) {
        let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(text)]]);
        let response = Client::new().get(peer.url("/")).send().unwrap();
        (peer, response)
    }

    #[test]
    fn http_request_keeps_method_repeated_fields_and_body() {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let steps = vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(4), ScriptStep::send(answer)];
        let peer = H1Peer::start(vec![steps]);
        let request = http::Request::builder()
            .method("PROPFIND")
            .uri(peer.url("/a?b=c"))
            .header("x-a", "1")
            .header("x-a", &b"\xff"[..])
            .body("text");
        Client::new().request_from(request.unwrap()).send().unwrap();
        let sent = peer.received(0);
        assert!(sent.starts_with(b"PROPFIND /a?b=c HTTP/1.1\r\n"));
        let text = String::from_utf8_lossy(&sent);
        assert!(text.contains("\r\nx-a: 1\r\n") && text.ends_with("\r\n\r\ntext"), "{text}");
        assert!(sent.windows(7).any(|bytes| bytes == b"x-a: \xff\r"));
    }

    #[test]
    fn http_request_parts_without_body_send_no_body() {
        let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 204 No Content\r\n\r\n")]]);
        let (parts, ()) = http::Request::get(peer.url("/")).body(()).unwrap().into_parts();
        let response = Client::new().request_from_parts(&parts).send().unwrap();
        assert_eq!(response.to_http().unwrap().status(), http::StatusCode::NO_CONTENT);
        assert!(!String::from_utf8(peer.received(0)).unwrap().to_lowercase().contains("content-length"));
    }

    #[test]
    fn http_response_keeps_repeated_and_non_ascii_fields() {
        let (_peer, response) = reply("HTTP/1.0 299 Odd\r\nA: 1\r\na: \u{e4}\r\nContent-Length: 2\r\n\r\nok");
        let response: http::Response<Vec<u8>> = response.try_into().unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (299, http::Version::HTTP_10));
        let values: Vec<&[u8]> = response.headers().get_all("a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [&b"1"[..], "\u{e4}".as_bytes()]);
        assert_eq!(response.body(), b"ok");
    }
}
