//! Creates the requests for the records of a list (`--jsonl-in`).
//!
//! A record takes precedence over the command line. The list may come from an untrusted source.
//! Therefore the credentials, the query and the content of the command line are sent only to the
//! origin of the command line's URL, and not to another virtual host of that server.

use std::sync::{Arc, OnceLock};

use haul::body::upload::RequestBody;
use haul::fleet::PerItemRequestOptions;
use haul::request::{RequestOverrides, method};
use haul::state::auth::{AuthCache, AuthOptions};
use haul::{Error, ErrorKind, RequestOptions, Result, Target};
use haul_policy::target::Scheme;

use crate::plan::{HeaderArg, RecordInputArgs, RequestArgs, UrlGroup, append_query};
use crate::record_input::{JsonlRequest, RecordAuth, RecordBody};
use crate::run::transfers::list_reader::ListLineNumber;
use crate::run::transfers::virtual_host_credential_guard::{for_other_host, names_other_host, url_without_login};

/// The settings from which the requests for the records (lines of a `--jsonl-in` list) are created.
pub(crate) struct RecordRequestBase {
    /// The request options for the origin of the command line's URL, with the credentials of the
    /// command line.
    trusted: OptionsWithAndWithoutContent,
    /// The request options for origins other than that of the command line's URL. They contain
    /// neither the credentials nor the content of the command line.
    untrusted: Arc<RequestOptions>,
    /// The URL of the command line, as a text and in parsed form. `None` if the command line has no
    /// URL, or its URL is invalid.
    base: Option<(String, Target)>,
    /// The method for records that do not name a method; `None` if it depends on whether the record
    /// has content.
    method: Option<String>,
    /// True if the command line has content. A request to another origin than that of the command
    /// line is sent without this content. The default method of such a request is GET, unless its
    /// record has content.
    has_content: bool,
    /// True if `-H` sets the `Content-Type` for all content.
    has_content_type: bool,
    allow_body_files: bool,
    is_curl: bool,
    /// The scheme of URLs that are written without a scheme.
    default_scheme: Scheme,
}

/// A request that a record of a `--jsonl-in` list or a row of a `--csv-in` or `--tsv-in` list
/// describes.
pub(crate) struct ListedRequest {
    pub(crate) url: String,
    pub(crate) request: PerItemRequestOptions,
    /// True if the request may contain the credentials of the command line: the command line names
    /// the URL's origin, and no header field of the record or row (such as `Host`) names another
    /// host.
    pub(crate) is_trusted: bool,
}

/// Two variants of the request options: one with the content of the command line, and one without
/// that content, for records that have their own content.
struct OptionsWithAndWithoutContent {
    whole: Arc<RequestOptions>,
    without_content: OnceLock<Arc<RequestOptions>>,
}

impl OptionsWithAndWithoutContent {
    fn new(whole: Arc<RequestOptions>) -> Self {
        Self { whole, without_content: OnceLock::new() }
    }

    fn variant(&self, has_own_content: bool) -> &Arc<RequestOptions> {
        match has_own_content {
            false => &self.whole,
            true => self.without_content.get_or_init(|| Arc::new(without_content(RequestOptions::clone(&self.whole)))),
        }
    }
}

/// Returns `options` without the request content and its header fields.
pub(super) fn without_content(options: RequestOptions) -> RequestOptions {
    RequestOptions { body: None, content_type: None, content_range: None, ..options }
}

impl RecordRequestBase {
    /// Creates the settings for the records in a URL group's lists, from the request options of the
    /// group.
    pub(crate) fn new(group: &UrlGroup, args: &RecordInputArgs, options: &Arc<RequestOptions>) -> Self {
        let stage = &group.stages[0];
        let RequestArgs { custom_method, is_post, head, method, fields, body, .. } = &stage.request;
        let names_method = *custom_method || is_post.is_some() || *head;
        let default_scheme = stage.transfer.redirect.default_scheme;
        // Without the query of the command line, which is added to each URL later.
        let target = |url| Target::parse_with(url, default_scheme, stage.transfer.options.path_as_is).ok();
        let is_content_type = |field: &HeaderArg| field.name().eq_ignore_ascii_case("content-type");
        Self {
            untrusted: Arc::new(without_content(options.without_secrets())),
            trusted: OptionsWithAndWithoutContent::new(Arc::clone(options)),
            base: args.urls.first().and_then(|url| Some((url.clone(), target(url)?))),
            method: names_method.then(|| method.clone()),
            has_content: body.is_some(),
            // With a body on the command line, the type is that of this body.
            has_content_type: body.is_none() && fields.iter().any(is_content_type),
            allow_body_files: args.allow_body_files,
            is_curl: group.in_place,
            default_scheme,
        }
    }

    /// Returns the request of a record. `position` is the line of the record in its list, for
    /// messages.
    pub(crate) fn request(&self, record: JsonlRequest, position: &ListLineNumber) -> Result<ListedRequest> {
        let JsonlRequest { url, method: own_method, headers, query, body, auth, timeout, .. } = record;
        let url = self.url(url, position)?;
        let names_host = names_other_host(&headers, || Target::parse_with(&url, self.default_scheme, false).ok());
        let url = if names_host { self.without_userinfo_of_base(url) } else { url };
        let url = match query {
            Some(query) => append_query(&url, &query),
            None => url,
        };
        let is_trusted = !names_host && self.is_trusted(&url);
        let mut options = match (is_trusted, names_host) {
            (true, _) => Arc::clone(self.trusted.variant(body.is_some())),
            (false, true) => Arc::new(for_other_host(&self.untrusted)),
            (false, false) => Arc::clone(&self.untrusted),
        };
        let mut overrides = RequestOverrides::default();
        let own_content_type = headers.iter().any(|field| field.name().eq_ignore_ascii_case("content-type"));
        for field in headers {
            match field {
                HeaderArg::Set { name, value } => overrides.fields.push((name, value)),
                HeaderArg::Empty { name } => overrides.fields.push((name, Vec::new())),
                HeaderArg::Remove { name } => {
                    let options = Arc::make_mut(&mut options);
                    options.fields.retain(|(field, _)| !field.eq_ignore_ascii_case(&name));
                    options.without.push(name);
                }
            }
        }
        overrides.method = own_method.as_deref().or(self.method.as_deref()).map(method);
        if let Some(body) = body {
            let content_type = self.set_body(&mut overrides, body, position)?;
            if let Some(content_type) = content_type.filter(|_| !own_content_type && !self.has_content_type) {
                overrides.fields.push(("Content-Type".to_owned(), content_type.into()));
            }
            overrides.method.get_or_insert_with(|| method("POST"));
        } else if self.has_content && !is_trusted {
            overrides.method.get_or_insert_with(|| method("GET"));
        }
        if let Some(auth) = auth {
            set_auth(Arc::make_mut(&mut options), auth);
        }
        if let Some(limit) = timeout {
            let options = Arc::make_mut(&mut options);
            let of_transfer = if self.is_curl { &mut options.max_time } else { &mut options.total_time };
            *of_transfer = Some(limit);
        }
        Ok(ListedRequest { url, request: PerItemRequestOptions { options: Some(options), overrides }, is_trusted })
    }

    /// Sets the content of the request. Returns the media type of the content, if the record
    /// implies one.
    fn set_body(
        &self,
        overrides: &mut RequestOverrides,
        body: RecordBody,
        position: &ListLineNumber,
    ) -> Result<Option<&'static str>> {
        let wrong = |reason: &str| Error::new(ErrorKind::Read, format!("{position}: key \"body_file\": {reason}"));
        match body {
            RecordBody::Bytes { bytes, content_type } => {
                overrides.body = Some(bytes.as_slice().into());
                Ok(content_type)
            }
            RecordBody::File(_) if !self.allow_body_files => {
                Err(wrong("a list may name files to send only with --allow-body-files"))
            }
            RecordBody::File(path) => {
                let content = RequestBody::file(&path);
                overrides.body =
                    Some(content.map_err(|error| wrong(&format!("failed to read {}: {error}", path.display())))?);
                Ok(None)
            }
        }
    }

    /// Returns the URL of a record, which may be relative to the URL on the command line.
    fn url(&self, url: Option<String>, position: &ListLineNumber) -> Result<String> {
        let wrong = |reason: &str| Error::new(ErrorKind::Read, format!("{position}: key \"url\": {reason}"));
        match (url, &self.base) {
            (Some(url), None) => Ok(url),
            (Some(url), Some(_)) if has_scheme(&url) => Ok(url),
            (None, Some((base, _))) => Ok(base.clone()),
            (None, None) => Err(wrong("the key is missing, and the command line names no URL")),
            (Some(url), Some((_, base))) => {
                let target = base.join(&url).map_err(|error| {
                    Error::with_source(ErrorKind::Url, format!("{position}: the URL cannot be used"), error)
                })?;
                Ok(with_userinfo(base, &target))
            }
        }
    }

    /// Removes the userinfo from a URL that has the same origin as the command line's URL, because
    /// the userinfo may have been copied from the command line's URL.
    fn without_userinfo_of_base(&self, url: String) -> String {
        if self.is_trusted(&url) { url_without_login(url, self.default_scheme) } else { url }
    }

    /// Returns true if a URL has the same origin as the URL on the command line.
    fn is_trusted(&self, url: &str) -> bool {
        let Some((text, base)) = &self.base else { return false };
        if url == text {
            return true;
        }
        let origin = base.origin();
        let target = Target::parse_near(url, Some(&origin), self.default_scheme, false);
        target.is_ok_and(|target| target.origin() == origin)
    }
}

/// Returns true if a text begins with a scheme and `://`, so that it is an absolute URL.
fn has_scheme(url: &str) -> bool {
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    url.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// Returns the URL of a target that was resolved against `base`. The URL contains the userinfo of
/// `base` if both have the same origin.
fn with_userinfo(base: &Target, target: &Target) -> String {
    let url = target.to_url();
    let userinfo = base.userinfo_bytes().filter(|_| target.origin() == base.origin());
    match (userinfo, url.split_once("://")) {
        (Some((user, password)), Some((scheme, rest))) => {
            let encoded = [&user, &password].map(|text| haul_policy::urlencode::percent_encode(text));
            format!("{scheme}://{}:{}@{rest}", encoded[0], encoded[1])
        }
        _ => url,
    }
}

/// Replaces the credentials in the options by the credentials of a record.
fn set_auth(options: &mut RequestOptions, auth: RecordAuth) {
    options.authorization = None;
    options.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    // The answers to challenges that are in the cache belong to other credentials.
    let shared = AuthOptions { memory: AuthCache::default(), user: None, bearer: None, ..options.auth.clone() };
    options.auth = match auth {
        RecordAuth::User(user) => AuthOptions { user: Some(user), ..shared },
        RecordAuth::Bearer(token) => {
            options.fields.push(("Authorization".to_owned(), [b"Bearer ", &*token].concat()));
            shared
        }
    };
}
