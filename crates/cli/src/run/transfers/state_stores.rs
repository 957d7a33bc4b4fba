//! The cookies, HSTS hosts and alternative services of a run. Their files are read before the first
//! transfer that uses them, and written at the end of each URL group.

use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use haul::state::alt_svc::AltSvcCache;
use haul::state::cookie_jar::{CookieFileConventions, SharedCookieJar};
use haul::state::hsts::HstsCache;
use haul::state::http3::Http3Cache;
use haul::{Error, ErrorKind, RequestOptions, Result, Target};

use crate::file_and_environment_access::{Stdout, stdin};
use crate::plan::{CookieArgs, StageArgs, StateFileArg, UrlGroup, UrlSource};
use crate::run::transfers::expected_checksum::ChecksumLists;

/// The stores of cookies, HSTS hosts and alternative services, which all URL groups (`--next`) and
/// stages (`--then`) of a run share. A clone shares the stores that exist when the clone is made.
/// Stores that are opened later belong only to the value that opened them.
#[derive(Clone, Default)]
pub(crate) struct StateStores {
    pub(crate) checksums: ChecksumLists,
    jars: Vec<(CookieArgs, SharedCookieJar)>,
    hsts: Vec<(StateFileArg, HstsCache)>,
    alt_svc: Vec<(StateFileArg, AltSvcCache)>,
    /// The HTTP/3 endpoints that the run has learned, and the endpoints where HTTP/3 failed.
    http3: Http3Cache,
    /// The time at which the current URL group (`--next` separates groups) began; `None` before
    /// the first one.
    began: Option<Instant>,
    /// The host of the first URL in the current URL group; `None` if there is none. A `Set-Cookie`
    /// line without a domain in a cookie file is assigned to this host.
    host: Option<String>,
}

/// The time for which saving a file waits for the lock of another process before the user is
/// notified.
const LOCK_NOTICE_DELAY: Duration = Duration::from_secs(5);

/// Calls `save`, which saves a file and waits for a lock that another process may hold. If the wait
/// is longer than [`LOCK_NOTICE_DELAY`], calls `notify` and waits on, until `deadline`.
fn save_with_notice(
    deadline: Option<Instant>,
    notify: &dyn Fn(&Error),
    save: &dyn Fn(Option<Instant>) -> Result<()>,
) -> Result<()> {
    let soon = Instant::now() + LOCK_NOTICE_DELAY;
    match save(Some(deadline.map_or(soon, |at| at.min(soon)))) {
        Err(error) if error.is_timeout() && deadline.is_none_or(|at| at > soon) => {
            notify(&error);
            save(deadline)
        }
        outcome => outcome,
    }
}

fn cookie_file_style(args: &CookieArgs) -> CookieFileConventions {
    if args.as_curl { CookieFileConventions::Curl } else { CookieFileConventions::Standard }
}

/// Returns true if the file of `-c` is `-`, which means standard output.
fn is_output(jar: &Path) -> bool {
    jar == Path::new("-")
}

impl StateStores {
    /// Records that a URL group (`--next` separates groups) begins now, and the host of its
    /// first URL.
    pub(crate) fn begin_group(&mut self, group: &UrlGroup) {
        self.began = Some(Instant::now());
        let reads = group.stages.iter().any(|stage| !stage.transfer.cookies.files.is_empty());
        self.host = match group.urls.get(0) {
            Some(UrlSource::Argument(url)) if reads => {
                Target::parse(url).ok().map(|target| target.host_text().to_owned())
            }
            _ => None,
        };
    }

    /// Sets the stores of cookies, HSTS hosts and alternative services in the request options of a
    /// stage, according to its settings. Reads the files of the stores when they are first used.
    pub(crate) fn set_stores(&mut self, stage: &StageArgs, options: &mut RequestOptions) -> Result<()> {
        let transfer = &stage.transfer;
        options.http3_cache = self.http3.clone();
        if transfer.cookies.are_enabled() {
            options.jar = Some(self.jar(&transfer.cookies)?);
        }
        if transfer.hsts != StateFileArg::Off {
            if !self.hsts.iter().any(|(store, _)| *store == transfer.hsts) {
                let hsts = HstsCache::with_style(cookie_file_style(&transfer.cookies));
                if let StateFileArg::File(path) = &transfer.hsts {
                    hsts.load(path)?;
                }
                self.hsts.push((transfer.hsts.clone(), hsts));
            }
            options.hsts = self.hsts.iter().find(|(store, _)| *store == transfer.hsts).map(|(_, hsts)| hsts.clone());
        }
        if transfer.alt_svc != StateFileArg::Off {
            if !self.alt_svc.iter().any(|(store, _)| *store == transfer.alt_svc) {
                let alt_svc = AltSvcCache::with_style(cookie_file_style(&transfer.cookies));
                if let StateFileArg::File(path) = &transfer.alt_svc {
                    alt_svc.load(path)?;
                }
                self.alt_svc.push((transfer.alt_svc.clone(), alt_svc));
            }
            let found = self.alt_svc.iter().find(|(store, _)| *store == transfer.alt_svc);
            options.alt_svc = found.map(|(_, alt_svc)| alt_svc.clone());
        }
        Ok(())
    }

    fn jar(&mut self, args: &CookieArgs) -> Result<SharedCookieJar> {
        if let Some((_, jar)) = self.jars.iter().find(|(other, _)| other == args) {
            return Ok(jar.clone());
        }
        let read = SharedCookieJar::with_style(cookie_file_style(args));
        for file in &args.files {
            if file == Path::new("-") {
                let mut text = Vec::new();
                stdin()
                    .and_then(|mut stdin| stdin.read_to_end(&mut text))
                    .map_err(|error| Error::with_source(ErrorKind::Read, "failed to read the cookies", error))?;
                read.import_text_of(&text, self.host.as_deref());
            } else if file.exists() {
                if args.jar.as_ref() == Some(file) {
                    read.load(file)?
                } else {
                    read.import_of(file, self.host.as_deref())?
                };
            }
        }
        if args.junk_session {
            read.clear_session();
        }
        // curl has one for all groups that use cookies.
        let jar = match self.jars.first().filter(|_| args.as_curl) {
            Some((_, shared)) => {
                shared.import_text(&read.to_text());
                shared.clone()
            }
            None => read,
        };
        self.jars.push((args.clone(), jar.clone()));
        Ok(jar)
    }

    /// Returns the cookie jars that a URL group writes to files (`-c`): the cookie options, the
    /// path of the file, and the jar.
    fn written_jars<'s>(
        &'s self,
        group: &UrlGroup,
    ) -> impl Iterator<Item = (&'s CookieArgs, &'s Path, &'s SharedCookieJar)> {
        let is_used = |args: &CookieArgs| group.stages.iter().any(|stage| stage.transfer.cookies == *args);
        let used = self.jars.iter().filter(move |(args, _)| is_used(args));
        used.filter_map(|(args, jar)| Some((args, args.jar.as_deref()?, jar)))
    }

    /// Returns the time at which waiting for the locks of files must end because of `--max-time`;
    /// `None` without this option. For a single URL, the time limit counts from the start of the
    /// URL group. For several URLs, it counts from now.
    fn deadline(&self, group: &UrlGroup) -> Option<Instant> {
        let limit = group.stages.iter().filter_map(|stage| stage.transfer.max_time).max()?;
        let from = self.began.filter(|_| crate::run::only_url(group).is_some()).unwrap_or_else(Instant::now);
        from.checked_add(limit)
    }

    /// Prints the cookie jars of `-c -` on standard output. Returns the errors that occurred.
    pub(crate) fn print_jars(&self, group: &UrlGroup) -> Vec<Error> {
        let jars = self.written_jars(group).filter(|(_, path, _)| is_output(path));
        let cannot = |error| Error::with_source(ErrorKind::Write, "failed to write the cookies", error);
        jars.filter_map(|(_, _, jar)| Stdout.write_all(&jar.to_text()).map_err(cannot).err()).collect()
    }

    /// Writes the stores that a URL group uses to their files, so that the next group can read
    /// them. Returns the errors of files that could not be written. Calls `notify` if another
    /// process holds a lock for a long time.
    pub(crate) fn save(&self, group: &UrlGroup, notify: &dyn Fn(&Error)) -> Vec<Error> {
        let mut failed = Vec::new();
        let save_with_notice =
            |save: &dyn Fn(Option<Instant>) -> Result<()>| save_with_notice(self.deadline(group), notify, save);
        for (args, path, jar) in self.written_jars(group).filter(|(_, path, _)| !is_output(path)) {
            // Cookies that were not read are not kept, as in curl: a new login has none of the old
            // session.
            let is_fresh = args.as_curl && !args.files.iter().any(|file| file == path);
            let save = |by| if is_fresh { jar.replace_by(path, by) } else { jar.save_by(path, by) };
            failed.extend(save_with_notice(&save).err());
        }
        for (store, hsts) in &self.hsts {
            if let StateFileArg::File(path) = store {
                failed.extend(save_with_notice(&|by| hsts.save_by(path, by)).err());
            }
        }
        for (store, alt_svc) in &self.alt_svc {
            if let StateFileArg::File(path) = store {
                failed.extend(save_with_notice(&|by| alt_svc.save_by(path, by)).err());
            }
        }
        failed
    }
}
