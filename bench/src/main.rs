//! The benchmark: haul and its competitors do the same work in turn, and the output of each is
//! checked before its time counts.
//!
//! ```text
//! bench --list
//! bench site --rounds 7 --haul target/release/haul
//! bench fetch small pipeline
//! bench get:pipe get-tls --size 64M
//! bench all --budget 1440                every job; then bench scorecard
//! bench all --smoke                      haul alone, everything tiny: is it right?
//! bench scorecard [--check] [FILE]       documents and charts of a file of results
//! bench instructions [--update]          instructions of fixed cases against their baseline
//! bench engines                          tables of URLs in Ray Data
//! bench partition                        simulation of tasks that share a list of URLs
//! ```
//!
//! A job ([`jobs`]) sets up a server ([`server`]) and lists the programs to compare
//! ([`compared_programs_and_goals`]). [`rounds`] runs them in turn after a warm-up round.
//! [`measure`] measures wall time, CPU time and peak memory of all processes of a program.
//! [`terminal_table`] prints medians and ratios. [`bench_results_file`] is stored under
//! `bench/results/`, and [`scorecard`] makes documents, charts and the README's figures from it.
//! [`run_jobs`] divides the time among the jobs of `bench all`.
//!
//! Absolute times drift from run to run, so only ratios to another program in the same round count.

mod bench_results_file;
mod body_files;
mod compared_programs_and_goals;
mod fetched_page_check;
mod http3_server;
mod installed_programs;
mod instruction_counts;
mod jobs;
mod lower_limit_programs;
mod machine_info;
mod measure;
mod one_core;
mod options;
mod output_digest;
mod quinn_client;
mod ray_data_comparison;
mod rounds;
mod run_jobs;
mod scorecard;
mod server;
mod terminal_table;
mod tls_files;
mod url_partition_simulation;
mod versioned_site;

use std::error::Error;
use std::process::ExitCode;

use options::BenchCommand;

/// The result type of the bench program. An error ends the program with a message.
type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<ExitCode> {
    match options::parse()? {
        BenchCommand::Help => print!("{}", options::USAGE),
        BenchCommand::List => {
            for job in jobs::ALL {
                println!("{:10} {}", job.name, job.about);
            }
        }
        BenchCommand::Measure(run) => return measure::measure_in_this_process(&run),
        BenchCommand::LowerLimit(arguments) => lower_limit_programs::run(&arguments)?,
        BenchCommand::RayDataComparison(arguments) => ray_data_comparison::run(&arguments)?,
        BenchCommand::Partition(arguments) => url_partition_simulation::run(&arguments)?,
        BenchCommand::QuinnClient(arguments) => quinn_client::run(&arguments)?,
        BenchCommand::ReadPackages(arguments) => jobs::package_fetcher::read(&arguments)?,
        BenchCommand::ReadWarc(arguments) => jobs::warc::read(&arguments)?,
        BenchCommand::Render(arguments) => scorecard::run(&arguments)?,
        BenchCommand::Instructions(arguments) => return instruction_counts::run(&arguments),
        BenchCommand::Run(options) => return run_jobs::run(&options),
    }
    Ok(ExitCode::SUCCESS)
}
