//! Creates the requests and output files of a stage after `--then`. Each URL of this stage is made
//! from a value that the previous stage extracted. The response of a stage is called a page.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use haul::extraction::PageQuery;
use haul::fleet::{BodyDestination, ExtractedValueMapper};
use haul::sink::file::FileOptions;
use haul::system::file_metadata_and_flags::NULL_DEVICE;
use haul::{Error, ErrorKind, RequestOptions, Result, Target};
use haul_policy::file_names_by_system::OsFamily;
use haul_policy::filename::from_decoded_path;
use haul_policy::glob::{ValuePlaceholder, fill_by_value, placeholders};
use haul_policy::output_name_placeholders::{fill_url_parts, mirrored_path, no_columns};
use haul_policy::urlencode::percent_encode;

use super::output_options::{
    avoid_blocked_path, chosen_name, chosen_path, fill_page_number, in_output_dir, options_for, reserve_output_name,
    unnamed_output_error,
};
use super::url_to_allowed_target::{refuse_login, refuse_protocol};
use crate::plan::{OutputArg, PlaceholderEncoding, RequestBodyArg, UrlGroup, append_query};
use crate::run::transfers::reserved_output_names::ReservedOutputNames;
use crate::run::transfers::virtual_host_credential_guard::{for_other_host, is_host_field, url_without_login};
use crate::system::os_text::OsStrExt;

/// The placeholder in a URL, header field or body of a stage after `--then`. A value that
/// `--extract` found replaces it.
const PLACEHOLDER: &[u8] = b"{}";

/// A stage after `--then`. `group` is the URL group (`--next` separates groups) that
/// contains the stage, and `number` is the index of the stage in this group, from 1.
pub(crate) struct LaterStage {
    group: UrlGroup,
    number: usize,
    names: ReservedOutputNames,
}

impl LaterStage {
    /// Creates the stage with the index `number`. `before` is the query with which the previous
    /// stage extracts values.
    ///
    /// # Errors
    /// The name of the stage's output contains a placeholder for a glob, or for a named group of
    /// the previous stage's regular expressions, that does not exist.
    pub(crate) fn new(
        group: &UrlGroup,
        number: usize,
        before: Option<&PageQuery>,
        names: &ReservedOutputNames,
    ) -> Result<Self> {
        if let OutputArg::File(template) = &group.stages[number].output {
            for placeholder in placeholders(template.as_bytes()) {
                let is_known = match placeholder {
                    ValuePlaceholder::Value => true,
                    ValuePlaceholder::Number(digits) => digits.parse() == Ok(1),
                    ValuePlaceholder::Name(name) => {
                        before.is_some_and(|query| query.value_names().any(|known| known == name))
                    }
                };
                if !is_known {
                    let message = format!(
                        "-o {} names a placeholder that does not exist: behind --then, #1 and {{}} are the value, and #<name> is it where \
                         the --extract before has (?<name>...) as group 1",
                        template.display()
                    );
                    return Err(Error::new(ErrorKind::Setup, message));
                }
            }
        }
        Ok(Self { group: group.clone(), number, names: names.clone() })
    }

    /// Returns the output file of the page that was requested for the extracted value `value`.
    /// Returns `None` if the page is written to standard output or to a file that all pages share.
    fn output_path(&self, value: &[u8], target: &Target, page: u64) -> Result<Option<PathBuf>> {
        let stage = &self.group.stages[self.number];
        let is_shared = self.number + 1 == self.group.stages.len() && self.group.shared_output().is_some();
        Ok(match &stage.output {
            _ if is_shared => None,
            OutputArg::Stdout => None,
            OutputArg::Null => Some(NULL_DEVICE.into()),
            OutputArg::File(template) => {
                let template = fill_page_number(stage, template, page);
                let text = |text: &[u8]| fill_by_value(OsFamily::CURRENT, text, value);
                let name = match self.group.in_place {
                    true => text(template.as_bytes()),
                    false => fill_url_parts(OsFamily::CURRENT, template.as_bytes(), target, &no_columns, &text)
                        .map_err(|error| unnamed_output_error(&error, target))?,
                };
                Some(in_output_dir(&self.group, chosen_path(&template, name)))
            }
            OutputArg::RemoteName => {
                let name = from_decoded_path(target).map_err(|error| unnamed_output_error(&error, target))?;
                Some(in_output_dir(&self.group, chosen_name(name)))
            }
            OutputArg::MirroredPath => {
                let name = mirrored_path(target).map_err(|error| unnamed_output_error(&error, target))?;
                Some(in_output_dir(&self.group, chosen_path(OsStr::new(""), name.into_bytes())))
            }
        })
    }

    /// Returns the options for the output file of a page. With `-O`, the file must stay in the
    /// directory of `path`, because pages choose its name.
    fn options_for(&self, path: &Path) -> FileOptions {
        let output = &self.group.stages[self.number].output;
        let options = options_for(&self.group, output, None, Some(&self.names));
        let is_chosen = *output == OutputArg::RemoteName && !self.group.in_place;
        let directory = || is_chosen.then(|| path.parent().map(Path::to_owned)).flatten();
        FileOptions { beneath: options.beneath.or_else(directory), ..options }
    }

    /// Returns true if `Host`, or another field by which servers select a virtual host, contains
    /// the placeholder `{}`. The extracted value, and so the page, then chooses the host.
    fn page_names_host(&self) -> bool {
        self.group.stages[self.number].request.fields_by_value.iter().any(|(name, _)| is_host_field(name))
    }

    /// Returns true if a header field of this stage's requests contains the placeholder of the
    /// extracted value.
    fn has_field_by_value(&self) -> bool {
        let request = &self.group.stages[self.number].request;
        let texts = [&request.user_agent, &request.referer, &request.cookie];
        !request.fields_by_value.is_empty() || texts.into_iter().flatten().any(|text| contains_placeholder(text))
    }
}

impl ExtractedValueMapper for LaterStage {
    fn url(&self, value: &[u8], url: String) -> String {
        let scheme = self.group.stages[self.number].transfer.redirect.default_scheme;
        let url = if self.page_names_host() { url_without_login(url, scheme) } else { url };
        match &self.group.stages[self.number].request.query {
            Some(query) => append_query(&url, &query.replace("{}", &percent_encode(value))),
            None => url,
        }
    }

    fn destination(&self, value: &[u8], target: &Target) -> Result<Option<BodyDestination>> {
        let stage = &self.group.stages[self.number];
        refuse_protocol(stage, target)?;
        refuse_login(stage, target)?;
        // What a page gives must not add a field.
        let has_control = value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
        if has_control && self.has_field_by_value() {
            return Err(Error::new(ErrorKind::Url, "the value has control characters, which no header may have"));
        }
        let Some(path) = self.output_path(value, target, 1)? else { return Ok(Some(BodyDestination::Output)) };
        let path = avoid_blocked_path(&self.group, &self.names, &stage.output, path);
        if !reserve_output_name(&self.group, &self.names, &stage.output, &path, &target.to_url())? {
            return Ok(None);
        }
        let options = self.options_for(&path);
        Ok(Some(BodyDestination::File { path, options }))
    }

    fn page_destination(&self, value: &[u8], page: u64, target: &Target) -> Result<BodyDestination> {
        let stage = &self.group.stages[self.number];
        refuse_protocol(stage, target)?;
        let Some(path) = self.output_path(value, target, page)? else { return Ok(BodyDestination::Output) };
        let path = avoid_blocked_path(&self.group, &self.names, &stage.output, path);
        reserve_output_name(&self.group, &self.names, &stage.output, &path, &target.to_url())?;
        let options = self.options_for(&path);
        Ok(BodyDestination::File { path, options })
    }

    fn options(&self, value: &[u8], options: &RequestOptions) -> Option<RequestOptions> {
        let request = &self.group.stages[self.number].request;
        if !self.has_field_by_value() && !matches!(request.body, Some(RequestBodyArg::ByValue(_))) {
            return None;
        }
        let mut filled = if self.page_names_host() { for_other_host(options) } else { options.clone() };
        let by_value = |name: &str, text: &[u8]| {
            request.fields_by_value.iter().any(|(known, template)| known == name && template == text)
        };
        for (name, text) in &mut filled.fields {
            if by_value(name, text) {
                *text = fill_value(text, value);
            }
        }
        for text in [&mut filled.user_agent, &mut filled.referer, &mut filled.cookie].into_iter().flatten() {
            if contains_placeholder(text) {
                *text = fill_value(text, value);
            }
        }
        if let Some(RequestBodyArg::ByValue(body)) = &request.body {
            filled.body = Some(body.fill(value).as_slice().into());
        }
        Some(filled)
    }
}

fn contains_placeholder(text: &[u8]) -> bool {
    text.windows(PLACEHOLDER.len()).any(|bytes| bytes == PLACEHOLDER)
}

/// Replaces each placeholder in `text`, the value of a header field, by the extracted value
/// `value`, without encoding.
fn fill_value(text: &[u8], value: &[u8]) -> Vec<u8> {
    crate::plan::ValueTemplate::with_placeholders(text, PlaceholderEncoding::Plain).fill(value)
}
