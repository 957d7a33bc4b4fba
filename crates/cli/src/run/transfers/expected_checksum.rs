//! The digest that a response body must have (`--checksum`). It comes from the command line, or
//! from a checksum list (SHA256SUMS).

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haul::buffer_pool::OfferedBodyBytes;
use haul::sink::Sink;
use haul::sink::checksum::{ExpectedChecksum, HashAlgorithm};
use haul::state::auth::AuthOptions;
use haul::{Client, Error, ErrorKind, RequestOptions, Result, Target};
use haul_policy::urlencode;

use crate::checksum::{self as asked, ChecksumList, DigestLookupError, LIST_MAX};
use crate::file_and_environment_access::{FilesAndEnvironment, SystemFilesAndEnvironment};
use crate::plan::UrlGroup;

/// The checksum lists (SHA256SUMS) that the run has read, each with the URL or file name in the
/// value of `--checksum`. A list is read only once.
#[derive(Clone, Default)]
pub(crate) struct ChecksumLists(Vec<(String, Arc<ChecksumList>)>);

impl ChecksumLists {
    /// Returns the checksum list for a URL group (`--next` separates groups) with many URLs,
    /// with the URL or file name of the list. Returns `None` if `--checksum` is not given or does
    /// not name a list.
    pub(crate) fn list_for_many(
        &mut self,
        client: &Client,
        request: &RequestOptions,
        group: &UrlGroup,
    ) -> Result<Option<(Arc<ChecksumList>, String)>> {
        match &group.checksum {
            Some(asked::ChecksumArg::From(url_or_path)) => {
                Ok(Some((self.list_at(client, request, None, url_or_path)?, url_or_path.clone())))
            }
            Some(asked::ChecksumArg::Digest(_)) | None => Ok(None),
        }
    }

    /// Returns the digest that the response body of `target` must have; `None` without
    /// `--checksum`.
    ///
    /// A checksum list is fetched with the request options of the body. Credentials are sent only
    /// if the list has the same origin as the body.
    pub(crate) fn expected_checksum(
        &mut self,
        client: &Client,
        request: &RequestOptions,
        group: &UrlGroup,
        target: &Target,
        file: Option<&Path>,
    ) -> Result<Option<ExpectedChecksum>> {
        match &group.checksum {
            None => Ok(None),
            Some(asked::ChecksumArg::Digest(digest)) => Ok(to_engine_checksum(digest)),
            Some(asked::ChecksumArg::From(url_or_path)) => {
                let list = self.list_at(client, request, Some(target), url_or_path)?;
                find_in_list(&list, url_or_path, target, file).map(Some)
            }
        }
    }

    fn list_at(
        &mut self,
        client: &Client,
        request: &RequestOptions,
        target: Option<&Target>,
        url_or_path: &str,
    ) -> Result<Arc<ChecksumList>> {
        if let Some((_, list)) = self.0.iter().find(|(known, _)| known == url_or_path) {
            return Ok(Arc::clone(list));
        }
        let list = Arc::new(ChecksumList::new(read_list(client, request, target, url_or_path)?));
        self.0.push((url_or_path.to_owned(), Arc::clone(&list)));
        Ok(list)
    }
}

/// Returns the digest that a checksum list contains for `target`. The list is searched for the path
/// of the URL, and then for the path of the output file.
pub(crate) fn find_in_list(
    list: &ChecksumList,
    url_or_path: &str,
    target: &Target,
    file: Option<&Path>,
) -> Result<ExpectedChecksum> {
    let path = target.path();
    let decoded = urlencode::percent_decode(path.as_bytes());
    let names = [Some(path), std::str::from_utf8(&decoded).ok(), file.and_then(Path::to_str)];
    let mut digests = names.into_iter().flatten().map(|name| list.find(name));
    let first = digests.next().unwrap_or(Err(DigestLookupError::NotListed));
    let digest = first.or_else(|error| digests.find_map(Result::ok).ok_or(error));
    let found = digest.map(|digest| to_engine_checksum(&digest));
    found
        .map_err(|error| Error::with_source(ErrorKind::Checksum, format!("no checksum in {url_or_path}"), error))
        .and_then(|checksum| {
            checksum.ok_or_else(|| Error::new(ErrorKind::Checksum, "the checksum has the wrong length"))
        })
        .map_err(|error| error.with_url(target.to_url()))
}

fn to_engine_checksum(digest: &asked::ExpectedDigest) -> Option<ExpectedChecksum> {
    let algorithm = match digest.algorithm() {
        asked::ChecksumAlgorithm::Sha1 => HashAlgorithm::Sha1,
        asked::ChecksumAlgorithm::Sha256 => HashAlgorithm::Sha256,
        asked::ChecksumAlgorithm::Sha384 => HashAlgorithm::Sha384,
        asked::ChecksumAlgorithm::Sha512 => HashAlgorithm::Sha512,
    };
    ExpectedChecksum::new(algorithm, digest.bytes().to_vec())
}

/// Reads a checksum list (SHA256SUMS). `url_or_path` is its URL or file name, or `-` for standard
/// input.
fn read_list(client: &Client, request: &RequestOptions, target: Option<&Target>, url_or_path: &str) -> Result<Vec<u8>> {
    let scheme = url_or_path.get(..8).unwrap_or(url_or_path).to_ascii_lowercase();
    if scheme.starts_with("http://") || scheme.starts_with("https://") {
        return fetch_list(client, request, target, url_or_path);
    }
    let mut list = Vec::new();
    SystemFilesAndEnvironment
        .open(Path::new(url_or_path))
        .and_then(|source| source.take(LIST_MAX as u64 + 1).read_to_end(&mut list))
        .map_err(|error| {
            Error::with_source(ErrorKind::Read, format!("failed to read the checksums {url_or_path}"), error)
        })?;
    if list.len() > LIST_MAX {
        return Err(Error::new(ErrorKind::Read, format!("the checksums {url_or_path} are too long for a list")));
    }
    Ok(list)
}

fn fetch_list(
    client: &Client,
    request: &RequestOptions,
    target: Option<&Target>,
    url_or_path: &str,
) -> Result<Vec<u8>> {
    let list = Target::parse(url_or_path)
        .map_err(|error| Error::with_source(ErrorKind::Url, "the URL of the checksums cannot be used", error))?;
    // A list is got: what is sent to the body's URL is not sent to that of the list.
    let mut options = RequestOptions {
        method: "GET".to_owned(),
        body: None,
        range: None,
        resume_from: None,
        include_head: false,
        fail: true,
        max_size: Some(LIST_MAX as u64),
        ..request.clone()
    };
    if target.is_none_or(|target| list.origin() != target.origin()) {
        options.authorization = None;
        options.auth = AuthOptions::default();
        options.cookie = None;
        options.fields.clear();
        options.tls.identity = None;
        options.tls.passphrase = None;
    }
    let kept = Arc::new(Mutex::new(Vec::new()));
    client.fetch(list, Arc::new(options), Box::new(ChecksumListSink(Arc::clone(&kept)))).result?;
    let mut bytes = kept.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *bytes))
}

/// A sink that collects a fetched checksum list in memory.
struct ChecksumListSink(Arc<Mutex<Vec<u8>>>);

impl Sink for ChecksumListSink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(offered.bytes());
        Ok(())
    }

    fn restart(&mut self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        true
    }
}
