//! Iterates over the URLs of a URL group (operation). They come from arguments, globs and files of
//! URLs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use haul::fleet::{BodyDestination, FleetItem};
use haul::{Error, ErrorKind, Result, Target};
use haul_policy::glob::{GlobExpansions, GlobValues};
use haul_policy::protocols::ProtocolSet;
use haul_policy::target::{Origin, Scheme};

use crate::checksum::ChecksumList;
use crate::file_access::stdin;
use crate::plan::{NetrcArg, UrlGroup, UrlSource, append_query};
use crate::run::engine_options::output_options::{claims_name, file_for, options_for};
use crate::run::engine_options::target_url::{refuse_login, target_of};
use crate::run::report::url_number::UrlNumbers;
use crate::run::transfers::checksums;
use crate::run::transfers::output_names::OutputNames;
use crate::url_list;

/// The length limit in bytes of a line in a file of URLs: 8 MiB.
const MAX_LINE: u64 = 8 << 20;

/// Iterates over the URLs of a URL group, as items for the engine's fleet. A file of URLs is read
/// line by line as items are needed.
pub(crate) struct UrlItems {
    operation: UrlGroup,
    /// The checksum list (SHA256SUMS), with its URL or file name; `None` if `--checksum` names
    /// none.
    list: Option<(Arc<ChecksumList>, String)>,
    at: usize,
    current: OpenUrlSource,
    /// The origin of the last URL. The next URL often has the same origin, and then shares its
    /// text.
    near: Option<Origin>,
    made: u64,
    numbers: UrlNumbers,
    names: OutputNames,
}

enum OpenUrlSource {
    None,
    Glob(GlobExpansions),
    File { reader: Box<dyn BufRead + Send>, name: String },
}

impl UrlItems {
    pub(crate) fn new(
        operation: &UrlGroup,
        list: Option<(Arc<ChecksumList>, String)>,
        numbers: UrlNumbers,
        names: OutputNames,
    ) -> Self {
        Self {
            operation: operation.clone(),
            list,
            at: 0,
            current: OpenUrlSource::None,
            near: None,
            made: 0,
            numbers,
            names,
        }
    }

    /// Returns the item for the engine's fleet for a URL of the source at this index. Returns
    /// `None` if `--skip-existing` skips the URL.
    fn item(&mut self, source: usize, url: String, parts: &GlobValues) -> Result<Option<FleetItem>> {
        let url = self.prepared(url)?;
        let Some(destination) = self.destination(source, &url, parts)? else { return Ok(None) };
        let stage = &self.operation.stages[0];
        if (stage.request.no_user_in_url || stage.request.auth.netrc == NetrcArg::Missing)
            && let Ok(target) = target_of(stage, &url)
        {
            refuse_login(stage, &target).map_err(|error| error.with_url(crate::usage_error::shown_url(&url)))?;
        }
        Ok(Some(FleetItem { url, destination }))
    }

    /// Returns the destination of the response body of a URL. Returns `None` if its file exists and
    /// `--skip-existing` is given.
    fn destination(&mut self, source: usize, url: &str, parts: &GlobValues) -> Result<Option<BodyDestination>> {
        let output = self.operation.output_of(source);
        let is_shared = self.operation.stages.len() == 1 && self.operation.shared_output().is_some();
        if is_shared || output.is_stdout() {
            if self.list.is_some() {
                let message = "a list of checksums requires a file for each body; use -O or -o with #1";
                return Err(Error::new(ErrorKind::Setup, message).with_url(crate::usage_error::shown_url(url)));
            }
            return Ok(Some(BodyDestination::Output));
        }
        // Only a name taken from the URL needs a URL that can be parsed; the engine says why
        // another one cannot.
        let path_as_is = self.operation.stages[0].transfer.options.path_as_is;
        let parsed = Target::parse_near(url, self.near.as_ref(), Scheme::Http, path_as_is);
        self.near = parsed.as_ref().map(Target::origin).ok();
        Ok(Some(match parsed {
            Ok(target) => match file_for(&self.operation, source, &target, url, parts)? {
                Some(path) => {
                    if !claims_name(&self.operation, &self.names, output, &path, url)? {
                        return Ok(None);
                    }
                    let list = self.list.as_ref();
                    let checksum =
                        list.map(|(list, place)| checksums::listed(list, place, &target, Some(&path))).transpose()?;
                    let options = options_for(&self.operation, output, checksum, Some(&self.names));
                    BodyDestination::File { path, options }
                }
                None => BodyDestination::Output,
            },
            Err(_) => BodyDestination::Output,
        }))
    }

    /// Returns the URL with the query of `-G` and `--url-query`. If the URL has no scheme, adds
    /// that of `--proto-default`.
    fn prepared(&self, url: String) -> Result<String> {
        let stage = &self.operation.stages[0];
        let redirect = &stage.transfer.redirect;
        if redirect.protocols != ProtocolSet::default() {
            target_of(stage, &url)?;
        }
        let url = match &stage.request.query {
            Some(query) => append_query(&url, query),
            None => url,
        };
        let has_scheme = redirect.default_scheme == Scheme::Http || url.contains("://");
        Ok(if has_scheme { url } else { format!("{}://{url}", redirect.default_scheme.as_str()) })
    }

    /// Opens the next source of URLs. For a URL that is no glob, returns its item. Returns
    /// `Some(Ok(None))` if a glob or a file of URLs was opened or the URL is skipped, and `None`
    /// after the last source.
    fn open_next(&mut self) -> Option<Result<Option<FleetItem>>> {
        let index = self.at;
        let source = self.operation.urls.get(index)?;
        self.at += 1;
        Some(match source {
            UrlSource::Argument(url) if !self.operation.is_glob(index, url) => {
                let url = url.to_owned();
                self.item(index, url, &GlobValues::default())
            }
            UrlSource::Argument(url) => crate::run::glob(url).map(|glob| {
                self.current = OpenUrlSource::Glob(glob.iter());
                None
            }),
            UrlSource::InputFile(name) => {
                let reader: std::io::Result<Box<dyn BufRead + Send>> = match name {
                    "-" => stdin().map(|stdin| Box::new(BufReader::with_capacity(64 << 10, stdin)) as _),
                    name => File::open(name).map(|file| Box::new(BufReader::with_capacity(64 << 10, file)) as _),
                };
                match reader {
                    Ok(reader) => {
                        self.current = OpenUrlSource::File { reader, name: name.to_owned() };
                        Ok(None)
                    }
                    Err(error) => Err(unreadable(name, error)),
                }
            }
        })
    }

    fn next_item(&mut self) -> Option<Result<FleetItem>> {
        loop {
            let found = match self.next_of_current() {
                Some(found) => found,
                None => self.open_next()?,
            };
            if let Some(item) = found.transpose() {
                return Some(item);
            }
        }
    }

    /// Returns the next item of the open glob or file of URLs. Returns `None` at its end, or if none
    /// is open, and `Some(Ok(None))` for a URL that `--skip-existing` skips.
    fn next_of_current(&mut self) -> Option<Result<Option<FleetItem>>> {
        let source = self.at.saturating_sub(1);
        let next = match &mut self.current {
            OpenUrlSource::None => return None,
            OpenUrlSource::Glob(expansions) => Ok(expansions.next().map(|expansion| (expansion.url, expansion.parts))),
            OpenUrlSource::File { reader, name } => {
                next_line(reader, name).map(|url| url.map(|url| (url, GlobValues::default())))
            }
        };
        if let Ok(Some((url, parts))) = next {
            return Some(self.item(source, url, &parts));
        }
        // A list that cannot be read has no further lines.
        self.current = OpenUrlSource::None;
        next.err().map(Err)
    }
}

impl Iterator for UrlItems {
    type Item = Result<FleetItem>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_item()?;
        // Only curl numbers URLs by their source; haul numbers transfers.
        if self.operation.in_place {
            self.numbers.add(self.made, self.at.saturating_sub(1) as u64);
            self.made += 1;
        }
        Some(item)
    }
}

fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::with_source(ErrorKind::Read, format!("failed to read the list {name}"), error)
}

/// Returns the next line of a file of URLs that contains a URL, without surrounding blanks. Returns
/// `None` at the end of the file.
fn next_line(reader: &mut dyn BufRead, name: &str) -> Result<Option<String>> {
    loop {
        let mut line = Vec::new();
        let read = reader.take(MAX_LINE).read_until(b'\n', &mut line).map_err(|error| unreadable(name, error))?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 == MAX_LINE {
            return Err(Error::new(ErrorKind::Read, format!("a line of the list {name} is longer than a URL can be")));
        }
        let Some(text) = url_list::in_line(&line) else { continue };
        return Ok(Some(url_list::as_text(text).into_owned()));
    }
}
