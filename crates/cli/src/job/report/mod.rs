//! `haul job report`: a self-contained HTML page about a job. It needs no other file and no
//! request, and shows its numbers even without scripts.
//!
//! URLs and error messages come from outside. They are escaped, and never become links. A
//! Content-Security-Policy in the page allows only the page's own style and script, by their
//! digests.

mod charts;
mod collect;
mod histogram;
mod html;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul::Result;

use super::job_error_from_sqlite_or_io::database_error;
use super::open_and_lock_job_file::{self, StoredJobSettings};
use super::stored_command_line;
use collect::{ReportFigures, SlowUrl};
use html::{HtmlPage, TableCell, group_digits, time_text};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// The SHA-256 digest of [`STYLE`] in Base64, by which the page's Content-Security-Policy allows
/// it.
const STYLE_DIGEST: &str = "tTvIu/H83RQVRRD2muUyteuU53G4Tx/rs3FXCrlKhi8=";
const SCRIPT_DIGEST: &str = "rbEaS86+GOzNqVs9iEPW2RClumgm5ygeIS1Kw3ufDak=";

/// The maximum number of hosts that the table of hosts shows.
const MAX_HOSTS_SHOWN: usize = 200;

/// Returns the HTML of the report about a job.
pub(super) fn page(path: &Path) -> Result<String> {
    let (connection, settings) = open_and_lock_job_file::open_to_read(path)?;
    let mut figures = ReportFigures::read(&connection).map_err(|error| database_error(path, error))?;
    let mut page = HtmlPage::default();
    head(&mut page, path, &settings);
    summary(&mut page, &settings, &figures);
    outcomes(&mut page, &figures);
    charts::throughput_chart(&mut page, &figures.timeline);
    latency(&mut page, &figures);
    hosts(&mut page, &figures);
    slowest(&mut page, figures.take_slowest());
    charts::waterfall_chart(&mut page, &figures.waterfall);
    page.push_html(format_args!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    Ok(page.into_text())
}

fn head(page: &mut HtmlPage, path: &Path, settings: &StoredJobSettings) {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    page.push_html("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_html(format_args!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_DIGEST}'; \
         script-src 'sha256-{SCRIPT_DIGEST}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" \
         content=\"no-referrer\">\n<title>Job "
    ));
    page.push_text(&name);
    page.push_html(format_args!("</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Job "));
    page.push_text(&name);
    page.push_html("</h1>\n<p><code>");
    page.push_text(&stored_command_line::to_shell_text(&settings.command));
    page.push_html("</code></p>\n<p>In ");
    page.push_text(&settings.directory.to_string_lossy());
    page.push_html(", since ");
    page.push_text(&date(settings.created));
    page.push_html(".</p>\n");
}

fn summary(page: &mut HtmlPage, settings: &StoredJobSettings, figures: &ReportFigures) {
    let seconds = figures.timeline.length as f64 / 1000.0;
    page.push_html("<div class=\"numbers\">\n");
    page.push_named_number("URLs", &group_digits(figures.urls));
    page.push_named_number("failed", &group_digits(figures.failed()));
    let left = settings.total.map_or("unknown".to_owned(), |total| group_digits(total.saturating_sub(figures.urls)));
    page.push_named_number("left", &left);
    page.push_named_number("of bodies", &indicatif::HumanBytes(figures.bytes).to_string());
    page.push_named_number("of runs", &time_text(figures.timeline.length * 1000));
    let rate = figures.urls as f64 / seconds.max(1e-3);
    let rate = if rate < 100.0 { format!("{rate:.1}") } else { group_digits(rate.round() as u64) };
    page.push_named_number("URLs a second", &rate);
    page.push_named_number("attempts", &group_digits(figures.attempts));
    page.push_html("</div>\n");
}

fn outcomes(page: &mut HtmlPage, figures: &ReportFigures) {
    page.push_html("<h2>Outcome by status and cause</h2>\n");
    page.begin_table(&["State", "#Status", "#Exit code", "#URLs", "#Share", "Message of one"]);
    let mut outcomes: Vec<_> = figures.outcomes.iter().collect();
    outcomes.sort_by_key(|(_, outcome)| std::cmp::Reverse(outcome.count));
    for ((state, code, status), outcome) in outcomes.into_iter().take(100) {
        let status = match status {
            Some(status) => TableCell::Number(status.to_string(), f64::from(*status)),
            None => TableCell::Number("–".to_owned(), 0.0),
        };
        let (code, count) = (TableCell::count((*code).into()), TableCell::count(outcome.count));
        let share = TableCell::percent(outcome.count, figures.urls);
        let error = TableCell::text(outcome.error.as_deref().unwrap_or_default());
        page.push_row(&[TableCell::Word(state), status, code, count, share, error]);
    }
    page.end_table();
}

fn latency(page: &mut HtmlPage, figures: &ReportFigures) {
    page.push_html("<h2>Latency</h2>\n<p>Percentiles are at most 1.6 % above the exact values.</p>\n");
    page.begin_table(&["Time to", "#Transfers", "#50 %", "#75 %", "#90 %", "#95 %", "#99 %", "#99.9 %", "#Longest"]);
    for (name, times) in [("the first byte", &figures.first_byte), ("the end", &figures.total)] {
        let percentiles = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999].map(|part| TableCell::time(times.percentile(part)));
        let mut cells = vec![TableCell::Word(name), TableCell::count(times.count())];
        cells.extend(percentiles);
        cells.push(TableCell::time(times.max()));
        page.push_row(&cells);
    }
    page.end_table();
}

fn hosts(page: &mut HtmlPage, figures: &ReportFigures) {
    page.push_html("<h2>Hosts</h2>\n");
    let mut hosts: Vec<_> = figures.hosts.iter().map(|(name, host)| (&**name, host)).collect();
    hosts.sort_by(|(a, first), (b, second)| (second.failed, second.urls, *a).cmp(&(first.failed, first.urls, *b)));
    if hosts.len() > MAX_HOSTS_SHOWN {
        page.push_html(format_args!(
            "<p>{MAX_HOSTS_SHOWN} of {} hosts: those with the most failures and URLs.</p>\n",
            group_digits(hosts.len() as u64)
        ));
        hosts.truncate(MAX_HOSTS_SHOWN);
    }
    if figures.other_hosts.urls > 0 {
        hosts.push(("all later hosts", &figures.other_hosts));
    }
    page.begin_table(&[
        "Host",
        "#URLs",
        "#Failed",
        "#Failed share",
        "#Bytes",
        "#Mean to first byte",
        "#Mean to end",
        "#Longest",
    ]);
    for (name, host) in hosts {
        let mean = |sum: u64| TableCell::time(sum / host.timed.max(1));
        page.push_row(&[
            TableCell::text(name),
            TableCell::count(host.urls),
            TableCell::count(host.failed),
            TableCell::percent(host.failed, host.urls),
            TableCell::bytes(host.bytes),
            mean(host.first_byte_us),
            mean(host.total_us),
            TableCell::time(host.max_us),
        ]);
    }
    page.end_table();
}

fn slowest(page: &mut HtmlPage, slowest: Vec<SlowUrl>) {
    page.push_html("<h2>Slowest</h2>\n");
    page.begin_table(&["URL", "#Status", "#Time"]);
    for (time, url, status) in slowest {
        let status = status.map_or(TableCell::Number("–".to_owned(), 0.0), |status| TableCell::count(status.into()));
        page.push_row(&[TableCell::text(&url), status, TableCell::time(time)]);
    }
    page.end_table();
}

/// Formats a time, given in milliseconds since 1970, as an HTTP date.
fn date(millis: u64) -> String {
    let at: SystemTime = UNIX_EPOCH + Duration::from_millis(millis.min(253_402_300_799_000));
    httpdate::fmt_http_date(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_security_policy_allows_style_and_script() {
        let digest = |text: &str| {
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
            crate::base64::encode(digest.as_ref())
        };
        assert_eq!((digest(STYLE).as_str(), digest(SCRIPT).as_str()), (STYLE_DIGEST, SCRIPT_DIGEST));
    }
}
