//! The scorecard: haul and its peers do the same job in turn, and each answer is checked before its time counts.
//!
//! ```text
//! bench --list
//! bench site --rounds 7 --haul target/release/haul
//! bench fetch small pipeline
//! bench get:pipe get-tls --size 64M
//! ```
//!
//! A job ([`jobs`]) sets up a server ([`server`]) and names its contestants ([`card`]); [`contest`] runs them A B A B
//! after a warm-up round; [`measure`] takes wall time, CPU time and peak memory of each process tree; [`report`] prints medians
//! and ratios and keeps the raw figures under `bench/results/`.
//!
//! Absolute times drift from run to run: ratios against a peer in the same round are what counts.

mod bodies;
mod card;
mod contest;
mod digest;
mod identity;
mod instructions;
mod jobs;
mod limit;
mod measure;
mod options;
mod report;
mod server;
mod tools;

use std::error::Error;
use std::process::ExitCode;

use options::{Asked, Options};

/// What every fallible step here returns: a bench that cannot go on says why and stops.
type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    match options::parse()? {
        Asked::Help => print!("{}", options::USAGE),
        Asked::List => {
            for job in jobs::ALL {
                println!("{:10} {}", job.name, job.about);
            }
        }
        Asked::Measure(run) => return measure::in_this_process(&run),
        Asked::Instructions(arguments) => return instructions::run(&arguments),
        Asked::Limit(arguments) => limit::run(&arguments)?,
        Asked::ReadPackages(arguments) => jobs::fetcher::read(&arguments)?,
        Asked::Run(options) => {
            for asked in &options.jobs {
                let (name, part) = match asked.split_once(':') {
                    Some((name, part)) => (name, Some(part)),
                    None => (asked.as_str(), None),
                };
                let job = jobs::ALL.iter().find(|job| job.name == name).ok_or_else(|| format!("no job {name}"))?;
                score(job, part, &options)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn score(job: &jobs::Job, part: Option<&str>, options: &Options) -> Result<()> {
    let mut bench = jobs::Bench::new(job.name, options)?;
    let mut cards = (job.set_up)(&mut bench)?;
    if let Some(part) = part {
        let parts: Vec<&str> = cards.iter().map(|card| card.part).collect();
        let unknown = format!("{} has the parts {}, not {part}", job.name, parts.join(", "));
        cards.retain(|card| card.part == part);
        if cards.is_empty() {
            return Err(unknown.into());
        }
    }
    for card in cards {
        let rounds = options.rounds.unwrap_or(card.rounds);
        let outcome = contest::run(&bench, card, rounds)?;
        report::print(&outcome);
        if options.save {
            let path = report::save(&bench, &outcome)?;
            println!("raw figures: {path}");
        }
    }
    Ok(())
}
