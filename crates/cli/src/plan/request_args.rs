//! The requests of a stage: method, header fields, body and conditions.

use std::path::PathBuf;

use super::{AuthArgs, RequestBodyArg, UploadArg};

/// The request settings of a stage (`--then` separates stages).
///
/// `auth`, `cookie`, and `Authorization` and `Cookie` among `fields` are secrets. They are sent
/// only to the origin of the first URL or, after `--then`, to an origin that the URL template
/// contains literally. `Debug` shows no value that may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestArgs {
    /// The request method, a valid token (RFC 9110 section 9.1). An upload may have another method,
    /// which [`RequestArgs::method_for`] returns.
    pub method: String,
    /// True if the method comes from `-X`. Redirects then do not change it.
    pub custom_method: bool,
    /// The rule for redirects if both `--follow` and `-X` are given; `None` otherwise.
    /// `Some(true)`: the other options, such as `-d`, select POST, so redirects treat the method of
    /// `-X` like POST, whatever its name. `Some(false)`: redirects do not treat that method like
    /// POST, not even `-X POST`.
    pub is_post: Option<bool>,
    /// `-I`: requests only the head of the response, and prints its header fields.
    pub head: bool,
    /// `-H`: the fields to send, to leave out, or to send without a value. Names are tokens; values
    /// contain no CR, LF or NUL.
    pub fields: Vec<HeaderArg>,
    /// The value of `User-Agent`. If it is `None`, the field is sent only if `fields` contains it.
    pub user_agent: Option<Vec<u8>>,
    /// `-e`: the value of `Referer` in the first request. `None` without the option.
    pub referer: Option<Vec<u8>>,
    /// `-e ';auto'`: sets the `Referer` of the request after a redirect to the URL that redirected.
    pub auto_referer: bool,
    /// `-b TEXT`: cookies that are sent before the cookies of the jar, and only to the origin of a
    /// transfer's first request. `None` without the option.
    pub cookie: Option<Vec<u8>>,
    /// The credentials for the servers of the stage's URLs.
    pub auth: AuthArgs,
    /// The request body. `None` for a request without content, and for an upload.
    pub body: Option<RequestBodyArg>,
    /// The fields whose values contain placeholders: `{}` in a stage after `--then`, the names of
    /// columns with `--csv-in`. Each is a name and a value.
    pub fields_by_value: Vec<(String, Vec<u8>)>,
    /// The `Content-Type` of the body, unless `fields` contains that field. `None` without a body,
    /// and for a multipart form (`-F`), whose `Content-Type` contains the boundary of its parts.
    pub content_type: Option<String>,
    /// `--request-target`: the request target to send in place of the URL's path and query. `None`
    /// without the option.
    pub request_target: Option<String>,
    /// `-z`: the condition that the modification date of the content must meet. `None` without a
    /// condition.
    pub time_cond: Option<TimeCond>,
    /// `--etag-save`: the file in which the entity tag of the response is stored. `None` without
    /// the option.
    pub etag_save: Option<PathBuf>,
    /// `--disallow-username-in-url`: refuses URLs with a user.
    pub no_user_in_url: bool,
    /// `-G` and `--url-query`: the text that [`append_query`](crate::plan::append_query) adds to
    /// each URL of the stage, but not to the targets of redirects. `None` without these options. In
    /// a stage after `--then`, `{}` in the text stands for the extracted value.
    pub query: Option<String>,
    /// `-r`: the value of the header field `Range` without `bytes=`. `None` without the option.
    pub range: Option<String>,
    /// `-C`: the offset at which a download or upload resumes. Always `None` if `range` is set, if
    /// `fields` contains `Range`, or if the stage extracts values.
    pub continue_at: Option<ContinueAt>,
}

impl std::fmt::Debug for RequestArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.fields.iter().map(HeaderArg::name).collect();
        f.debug_struct("RequestArgs")
            .field("method", &self.method)
            .field("head", &self.head)
            .field("fields", &names)
            .field("cookie", &self.cookie.is_some())
            .field("auth", &self.auth)
            .field("body", &self.body)
            .field("range", &self.range)
            .field("continue_at", &self.continue_at)
            .finish_non_exhaustive()
    }
}

impl RequestArgs {
    /// Returns true if two requests have equal settings except the content. If only one of them has
    /// content, returns false.
    pub fn is_equal_except_body(&self, other: &Self) -> bool {
        let Self {
            method,
            custom_method,
            is_post,
            head,
            fields,
            user_agent,
            referer,
            auto_referer,
            cookie,
            auth,
            body,
            fields_by_value,
            content_type,
            request_target,
            time_cond,
            etag_save,
            no_user_in_url,
            query,
            range,
            continue_at,
        } = self;
        *method == other.method
            && *custom_method == other.custom_method
            && *is_post == other.is_post
            && *head == other.head
            && *fields == other.fields
            && *user_agent == other.user_agent
            && *referer == other.referer
            && *auto_referer == other.auto_referer
            && *cookie == other.cookie
            && *auth == other.auth
            && body.is_some() == other.body.is_some()
            && *fields_by_value == other.fields_by_value
            && *content_type == other.content_type
            && *request_target == other.request_target
            && *time_cond == other.time_cond
            && *etag_save == other.etag_save
            && *no_user_in_url == other.no_user_in_url
            && *query == other.query
            && *range == other.range
            && *continue_at == other.continue_at
    }

    /// Returns the request method of a transfer. `upload` is the `-T` value that the transfer
    /// sends. The method is PUT for an upload if neither `-X` nor `--follow` is given, and
    /// [`RequestArgs::method`] in all other cases.
    pub fn method_for(&self, upload: Option<&UploadArg>) -> &str {
        let is_given = self.custom_method || self.is_post.is_some();
        match upload {
            Some(_) if !is_given => "PUT",
            _ => &self.method,
        }
    }
}

/// The condition of `-z`. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeCond {
    /// `-z DATE`: requests the content only if it was modified after this time.
    NewerThan(u64),
    /// `-z -DATE`: requests the content only if it was not modified after this time.
    OlderThan(u64),
}

/// The value of one `-H` or `--proxy-header`. `Debug` does not show the field's value.
#[derive(Clone, PartialEq, Eq)]
pub enum HeaderArg {
    /// `Name: value`: adds the field, or replaces the field of this name that haul would send.
    Set {
        /// The name of the header field.
        name: String,
        /// The value of the header field, without surrounding blanks.
        value: Vec<u8>,
    },
    /// `Name:`: leaves out the field that haul would send.
    Remove {
        /// The name of the header field.
        name: String,
    },
    /// `Name;`: sends the field without a value.
    Empty {
        /// The name of the header field.
        name: String,
    },
}

impl HeaderArg {
    /// Returns the name of the header field.
    pub fn name(&self) -> &str {
        match self {
            HeaderArg::Set { name, .. } | HeaderArg::Remove { name } | HeaderArg::Empty { name } => name,
        }
    }
}

impl std::fmt::Debug for HeaderArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let form = match self {
            HeaderArg::Set { .. } => "Set",
            HeaderArg::Remove { .. } => "Remove",
            HeaderArg::Empty { .. } => "Empty",
        };
        write!(f, "{form}({})", self.name())
    }
}

/// `-C`: the offset at which a download or upload resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinueAt {
    /// Resumes at this offset in bytes. Never 0, because `-C 0` does not resume.
    Offset(u64),
    /// `-C -`: resumes at the size of the output file, which is 0 if the file does not exist.
    OutputSize,
}
