//! Cookies, HSTS and Alt-Svc of a run: read before its first transfer, written behind its last.

use std::io::{Read, Write, stdout};
use std::path::Path;

use haul::state::alt_svc::AltSvc;
use haul::state::hsts::Hsts;
use haul::state::jar::{Jar, Manner};
use haul::{Error, ErrorKind, RequestOptions, Result, Target};

use crate::files::stdin;
use crate::plan::{CookieArgs, Operation, StageArgs, Store, UrlSource};

/// What the stages of an operation share.
#[derive(Default)]
pub(super) struct Stores {
    jars: Vec<(CookieArgs, Jar)>,
    hsts: Vec<(Store, Hsts)>,
    alt_svc: Vec<(Store, AltSvc)>,
    /// The host of the first URL: a `Set-Cookie` line of a file that names none is its.
    host: Option<String>,
}

fn manner(args: &CookieArgs) -> Manner {
    if args.as_curl { Manner::Curl } else { Manner::Standard }
}

impl Stores {
    /// An operation begins.
    pub(super) fn begin(&mut self, operation: &Operation) {
        let reads = operation.stages.iter().any(|stage| !stage.transfer.cookies.files.is_empty());
        self.host = match operation.urls.get(0) {
            Some(UrlSource::Argument(url)) if reads => {
                Target::parse(url).ok().map(|target| target.host_text().to_owned())
            }
            _ => None,
        };
    }

    /// Gives a stage's requests what it shares with others.
    pub(super) fn give(&mut self, stage: &StageArgs, options: &mut RequestOptions) -> Result<()> {
        let transfer = &stage.transfer;
        if transfer.cookies.is_on() {
            options.jar = Some(self.jar(&transfer.cookies)?);
        }
        if transfer.hsts != Store::Off {
            if !self.hsts.iter().any(|(store, _)| *store == transfer.hsts) {
                let hsts = Hsts::of(manner(&transfer.cookies));
                if let Store::File(path) = &transfer.hsts {
                    hsts.load(path)?;
                }
                self.hsts.push((transfer.hsts.clone(), hsts));
            }
            options.hsts = self.hsts.iter().find(|(store, _)| *store == transfer.hsts).map(|(_, hsts)| hsts.clone());
        }
        if transfer.alt_svc != Store::Off {
            if !self.alt_svc.iter().any(|(store, _)| *store == transfer.alt_svc) {
                let alt_svc = AltSvc::of(manner(&transfer.cookies));
                if let Store::File(path) = &transfer.alt_svc {
                    alt_svc.load(path)?;
                }
                self.alt_svc.push((transfer.alt_svc.clone(), alt_svc));
            }
            let found = self.alt_svc.iter().find(|(store, _)| *store == transfer.alt_svc);
            options.alt_svc = found.map(|(_, alt_svc)| alt_svc.clone());
        }
        Ok(())
    }

    fn jar(&mut self, args: &CookieArgs) -> Result<Jar> {
        if let Some((_, jar)) = self.jars.iter().find(|(other, _)| other == args) {
            return Ok(jar.clone());
        }
        let jar = Jar::of(manner(args));
        for file in &args.files {
            if file == Path::new("-") {
                let mut text = Vec::new();
                stdin()
                    .read_to_end(&mut text)
                    .map_err(|error| Error::with_source(ErrorKind::Read, "failed to read the cookies", error))?;
                jar.import_text_of(&text, self.host.as_deref());
            } else if file.exists() {
                if args.jar.as_ref() == Some(file) {
                    jar.load(file)?
                } else {
                    jar.import_of(file, self.host.as_deref())?
                };
            }
        }
        if args.junk_session {
            jar.clear_session();
        }
        self.jars.push((args.clone(), jar.clone()));
        Ok(jar)
    }

    /// Writes what is to be kept; the answer is what could not be written.
    pub(super) fn save(&self) -> Vec<Error> {
        let jars = self.jars.iter().filter_map(|(args, jar)| Some((args, args.jar.as_ref()?, jar)));
        let mut failed = Vec::new();
        for (args, path, jar) in jars {
            if path == Path::new("-") {
                let cannot = |error| Error::with_source(ErrorKind::Write, "failed to write the cookies", error);
                failed.extend(stdout().write_all(&jar.to_text()).map_err(cannot).err());
            } else if args.as_curl && !args.files.contains(path) {
                // What was not read is not kept, as by curl: a login afresh has none of the old session.
                failed.extend(jar.replace(path).err());
            } else {
                failed.extend(jar.save(path).err());
            }
        }
        for (store, hsts) in &self.hsts {
            if let Store::File(path) = store {
                failed.extend(hsts.save(path).err());
            }
        }
        for (store, alt_svc) in &self.alt_svc {
            if let Store::File(path) = store {
                failed.extend(alt_svc.save(path).err());
            }
        }
        failed
    }
}
