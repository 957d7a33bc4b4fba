//! Creates the requests for the rows of a `--csv-in` list: the columns replace the placeholders
//! `{name}` of the command line.
//!
//! A value is data, never syntax: it is encoded for the part of the request in which it is
//! inserted. The list may come from an untrusted source. Therefore the credentials of the command
//! line are sent only to origins that the command line names, and so are its query and its content
//! if they contain no column.

use std::borrow::Cow;
use std::sync::Arc;

use haul::fleet::PerItemRequestOptions;
use haul::request::{RequestOverrides, method};
use haul::{Error, ErrorKind, RequestOptions, Result, Target};
use haul_policy::output_name_placeholders::{has_url_part, placeholder, placeholder_names};
use haul_policy::target::{Origin, Scheme};
use haul_policy::url_template::UrlTemplate;

use crate::plan::{
    OutputArg, PAGE_PLACEHOLDER, PlaceholderEncoding, PlaceholderSyntax, RecordInputArgs, RequestBodyArg, UrlGroup,
    ValueTemplate,
};
use crate::record_input::CsvRow;
use crate::run::engine_options::url_to_allowed_target::parse_target;
use crate::run::transfers::jsonl_record_requests::{ListedRequest, without_content};
use crate::run::transfers::virtual_host_credential_guard::{
    for_other_host, is_host_field, is_host_of, url_without_login,
};

/// The name of the column that contains the URL if the command line has no URL.
const URL_COLUMN: &str = "url";

/// Creates the requests for the rows of a `--csv-in` or `--tsv-in` list.
pub(crate) struct RowRequestBuilder {
    columns: Arc<[String]>,
    urls: Vec<RowUrl>,
    /// The origins of the command line's URLs, which may receive its credentials.
    origins: Vec<Origin>,
    options: Arc<RequestOptions>,
    /// The request options for origins other than those of the command line's URLs. They have no
    /// credentials. They also lack the request content of the command line (such as `-d`), unless
    /// this content contains placeholders, which the columns of a row replace.
    secretless: Arc<RequestOptions>,
    /// The method of requests with the options `secretless`: GET if these options lack the content
    /// of the command line, and the command line names no method (by `-X` or `-I`, for example).
    /// `None` keeps the method of the options.
    method_without_content: Option<&'static str>,
    /// The header fields (`-H`) whose values contain placeholders.
    fields: Vec<FieldTemplate>,
    /// The values of `-A`, `-e` and `-b`, as far as they contain placeholders.
    own_values: AgentRefererCookieTemplates,
    body: Option<ValueTemplate>,
    query: Option<ValueTemplate>,
    /// The scheme of URLs that are written without a scheme.
    default_scheme: Scheme,
}

/// A header field whose value contains placeholders.
struct FieldTemplate {
    name: String,
    /// The value of the field as given on the command line.
    written: Vec<u8>,
    template: ValueTemplate,
}

/// The values of `-A`, `-e` and `-b`, in which the columns of a row replace placeholders.
struct AgentRefererCookieTemplates {
    user_agent: Option<ValueTemplate>,
    referer: Option<ValueTemplate>,
    cookie: Option<ValueTemplate>,
}

/// A URL of the command line, into which the values of a row are inserted.
enum RowUrl {
    Literal(String),
    /// A URL template, with the index of the column for each of its placeholders.
    Template(UrlTemplate, Vec<usize>),
}

impl RowRequestBuilder {
    /// Prepares the requests for a list with these columns. `list` is the name of the list.
    ///
    /// # Errors
    /// The command line names a column that the list does not have.
    pub(crate) fn new(
        group: &UrlGroup,
        args: &RecordInputArgs,
        options: &Arc<RequestOptions>,
        columns: &[String],
        list: &str,
    ) -> Result<Self> {
        let stage = &group.stages[0];
        let request = &stage.request;
        let url_column = format!("{{{URL_COLUMN}}}");
        let texts: Vec<&str> = match args.urls.as_slice() {
            [] => vec![&url_column],
            urls => urls.iter().map(String::as_str).collect(),
        };
        let default_scheme = stage.transfer.redirect.default_scheme;
        let lookup = ColumnNames { columns, list, default_scheme };
        let mut urls = Vec::new();
        let mut origins = Vec::new();
        for text in texts {
            let url = if args.urls.is_empty() && lookup.index_of(URL_COLUMN).is_none() {
                return Err(lookup.without_url());
            } else {
                lookup.url(text)?
            };
            origins.extend(match &url {
                RowUrl::Literal(url) => parse_target(stage, url).ok().map(|target| target.origin()),
                RowUrl::Template(template, _) => template.literal_origin(),
            });
            urls.push(url);
        }
        let fields = request.fields_by_value.iter();
        let fields = fields.map(|(name, value)| {
            let template = lookup.template(value)?;
            Ok(FieldTemplate { name: name.clone(), written: template.to_source_text(), template })
        });
        let own = |value: &Option<Vec<u8>>| value.as_deref().map(|value| lookup.template(value)).transpose();
        let with_columns = |value: Option<ValueTemplate>| value.filter(|value| value.literal_text().is_none());
        for output in &group.outputs {
            lookup.check_output(output, stage.pagination.is_some())?;
        }
        let has_whole_content = request.body.as_ref().is_some_and(|body| !matches!(body, RequestBodyArg::ByValue(_)));
        let names_method = request.custom_method || request.is_post.is_some() || request.head;
        let secretless = options.without_secrets();
        Ok(Self {
            fields: fields.collect::<Result<_>>()?,
            own_values: AgentRefererCookieTemplates {
                user_agent: with_columns(own(&request.user_agent)?),
                referer: with_columns(own(&request.referer)?),
                cookie: with_columns(own(&request.cookie)?),
            },
            body: match &request.body {
                Some(RequestBodyArg::ByValue(body)) => Some(body.clone()),
                _ => None,
            },
            query: match &request.query {
                Some(query) => {
                    lookup.template(query.as_bytes())?;
                    let form = PlaceholderEncoding::Form;
                    Some(ValueTemplate::parse(query.as_bytes(), form, PlaceholderSyntax::Column))
                }
                None => None,
            },
            columns: columns.into(),
            urls,
            origins,
            options: Arc::clone(options),
            secretless: Arc::new(if has_whole_content { without_content(secretless) } else { secretless }),
            method_without_content: (has_whole_content && !names_method).then_some("GET"),
            default_scheme,
        })
    }

    /// Returns the number of requests for each row: one for each URL of the command line, or one if
    /// the URL is in a column.
    pub(crate) fn per_row(&self) -> usize {
        self.urls.len()
    }

    /// Returns the names of the list's columns, in order.
    pub(crate) fn columns(&self) -> &Arc<[String]> {
        &self.columns
    }

    /// Returns the value of a column in a row; `None` if there is no such column.
    pub(crate) fn value<'r>(&self, row: &'r CsvRow, column: &str) -> Option<Cow<'r, [u8]>> {
        self.columns.iter().position(|name| name == column).map(|index| row.field(index).into())
    }

    /// Returns the request for a row. `number` is the index of the URL on the command line into
    /// which the row's values are inserted. The query of `-G` and `--url-query` is added to the
    /// URL.
    ///
    /// # Errors
    /// The row has another number of fields than the header, or a value cannot be inserted.
    pub(crate) fn request(&self, row: &CsvRow, number: usize) -> Result<ListedRequest> {
        if row.len() != self.columns.len() {
            let (has, wants) = (row.len(), self.columns.len());
            let message = format!("the row has {has} fields, but the header line has {wants}");
            return Err(Error::new(ErrorKind::Read, message));
        }
        let mut url = match &self.urls[number] {
            RowUrl::Literal(url) => url.clone(),
            RowUrl::Template(template, columns) => template
                .expand_each(&|at| row.field(columns[at]))
                .map_err(|error| Error::with_source(ErrorKind::Url, "the row cannot be made a URL", error))?,
        };
        let target = Target::parse_with(&url, self.default_scheme, false).ok();
        let is_host = |value: &[u8]| target.as_ref().is_some_and(|target| is_host_of(value, target));
        let mut overrides = RequestOverrides::default();
        let mut names_other_host = false;
        for field in self.fields.iter().filter(|field| is_host_field(&field.name)) {
            let value = self.field_value(&field.template, row)?;
            names_other_host |= !is_host(&value);
            overrides.fields.push((field.name.clone(), value));
        }
        if names_other_host {
            url = url_without_login(url, self.default_scheme);
        }
        let is_written = target.is_some_and(|target| self.origins.contains(&target.origin()));
        let is_trusted = is_written && !names_other_host;
        if let Some(query) = self.query.as_ref().filter(|query| is_trusted || query.literal_text().is_none()) {
            let query = query.fill_by(|name| self.lookup(row, name));
            url = crate::plan::append_query(&url, &String::from_utf8_lossy(&query));
        }
        let mut options = match (is_trusted, names_other_host) {
            (true, _) => Arc::clone(&self.options),
            (false, true) => Arc::new(for_other_host(&self.secretless)),
            (false, false) => Arc::clone(&self.secretless),
        };
        self.fill_fields(&mut options, row)?;
        overrides.body = self.body.as_ref().map(|body| body.fill_by(|name| self.lookup(row, name)).as_slice().into());
        overrides.method = self.method_without_content.filter(|_| !is_trusted).map(method);
        Ok(ListedRequest { url, request: PerItemRequestOptions { options: Some(options), overrides }, is_trusted })
    }

    fn lookup<'r>(&self, row: &'r CsvRow, name: Option<&str>) -> Option<&'r [u8]> {
        let name = name?;
        self.columns.iter().position(|column| column == name).map(|index| row.field(index))
    }

    /// Returns the value of a header field: `template`, with the values of `row` in place of the
    /// placeholders.
    ///
    /// # Errors
    /// The value contains control characters, with which the list could add a header field.
    fn field_value(&self, template: &ValueTemplate, row: &CsvRow) -> Result<Vec<u8>> {
        let value = template.fill_by(|name| self.lookup(row, name));
        let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        match value.iter().any(is_control) {
            true => Err(Error::new(ErrorKind::Url, "a value has control characters, which no header may have")),
            false => Ok(value),
        }
    }

    /// Inserts the values of a row into the header fields whose values contain placeholders, and
    /// sets these fields in the options.
    fn fill_fields(&self, options: &mut Arc<RequestOptions>, row: &CsvRow) -> Result<()> {
        let AgentRefererCookieTemplates { user_agent, referer, cookie } = &self.own_values;
        if self.fields.is_empty() && user_agent.is_none() && referer.is_none() && cookie.is_none() {
            return Ok(());
        }
        let filled = |template: &ValueTemplate| self.field_value(template, row);
        let options = Arc::make_mut(options);
        // Each field is filled once: a value that looks like a template is a value.
        for (field, value) in &mut options.fields {
            let template = self.fields.iter().find(|known| known.name == *field && known.written == *value);
            if let Some(known) = template {
                *value = filled(&known.template)?;
            }
        }
        let own =
            [(user_agent, &mut options.user_agent), (referer, &mut options.referer), (cookie, &mut options.cookie)];
        for (template, value) in own {
            if let (Some(template), Some(value)) = (template, value) {
                *value = filled(template)?;
            }
        }
        Ok(())
    }
}

/// The column names of a list, and the list's name for messages.
struct ColumnNames<'a> {
    columns: &'a [String],
    list: &'a str,
    default_scheme: Scheme,
}

impl ColumnNames<'_> {
    fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    fn unknown(&self, name: &str) -> Error {
        let message = format!(
            "{} has no column {name:?} for the placeholder {{{name}}}; its columns are {}",
            self.list,
            self.columns.join(", ")
        );
        Error::new(ErrorKind::Setup, message)
    }

    /// Returns an error if the text contains, in braces, the name of a column that cannot be a
    /// placeholder, for example because the name contains a slash. Without this error, the name and
    /// its braces would be sent unchanged.
    fn check_names_in(&self, text: &[u8]) -> Result<()> {
        let is_misused = |column: &&String| {
            let written = format!("{{{column}}}");
            placeholder(written.as_bytes()).is_none() && memchr::memmem::find(text, written.as_bytes()).is_some()
        };
        let Some(column) = self.columns.iter().find(|column| !column.is_empty() && is_misused(column)) else {
            return Ok(());
        };
        let message = format!(
            "the column {column:?} of {} cannot be a placeholder, because its name has a brace, a slash, a quotation \
             mark or a control character, or is too long; rename it in the header line",
            self.list
        );
        Err(Error::new(ErrorKind::Setup, message))
    }

    fn without_url(&self) -> Error {
        let message = format!(
            "{} has no column \"{URL_COLUMN}\", and the command line names no URL: add one with placeholders, such \
             as 'https://h/{{{}}}'",
            self.list,
            self.columns.first().map_or("", String::as_str)
        );
        Error::new(ErrorKind::Setup, message)
    }

    /// Parses a URL of the command line. Each text in braces must be the name of a column.
    fn url(&self, text: &str) -> Result<RowUrl> {
        self.check_names_in(text.as_bytes())?;
        let mut template = String::new();
        let mut columns = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            template.push_str(&rest[..at]);
            rest = &rest[at..];
            let name = placeholder(rest.as_bytes());
            let Some((name, length)) = name else {
                // Two braces would be the placeholder of a template.
                if rest.starts_with("{}") {
                    return Err(self.unknown(""));
                }
                template.push('{');
                rest = &rest[1..];
                continue;
            };
            columns.push(self.index_of(name).ok_or_else(|| self.unknown(name))?);
            template.push_str("{}");
            rest = &rest[length..];
        }
        template.push_str(rest);
        if columns.is_empty() {
            return Ok(RowUrl::Literal(template));
        }
        let template = UrlTemplate::parse(&template)
            .map_err(|error| Error::with_source(ErrorKind::Url, "the URL cannot be used", error))?;
        Ok(RowUrl::Template(template.with_default_scheme(self.default_scheme), columns))
    }

    /// Parses the value of a header field or a query. Each text in braces must be the name of a
    /// column.
    fn template(&self, text: &[u8]) -> Result<ValueTemplate> {
        self.check_names_in(text)?;
        if let Some(name) = placeholder_names(text).find(|name| self.index_of(name).is_none()) {
            return Err(self.unknown(name));
        }
        Ok(ValueTemplate::parse(text, PlaceholderEncoding::Plain, PlaceholderSyntax::Column))
    }

    /// Refuses an `-o` file name with an unknown text in braces. The known texts are the names of
    /// the columns, the parts of the URL and, if `has_pages` is true, `{page}`.
    fn check_output(&self, output: &OutputArg, has_pages: bool) -> Result<()> {
        let OutputArg::File(name) = output else { return Ok(()) };
        self.check_names_in(name.as_encoded_bytes())?;
        let is_known = |name: &str| {
            let text = format!("{{{name}}}");
            let is_page = has_pages && text.as_bytes() == PAGE_PLACEHOLDER;
            is_page || self.index_of(name).is_some() || has_url_part(text.as_bytes())
        };
        match placeholder_names(name.as_encoded_bytes()).find(|name| !is_known(name)) {
            Some(name) => Err(self.unknown(name)),
            None => Ok(()),
        }
    }
}
