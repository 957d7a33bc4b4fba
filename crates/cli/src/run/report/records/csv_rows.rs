//! The rows of CSV that the values of one page make.

use csv::{QuoteStyle, Terminator, WriterBuilder};
use haul::sink::match_list::MatchList;
use haul::{Error, ErrorKind, Result};

use crate::plan::StageArgs;

/// The column of values without a name.
const UNNAMED: &str = "value";

/// Returns the header line of a stage: the names of its columns.
pub(crate) fn header(stage: &StageArgs, with_url: bool) -> Vec<u8> {
    let url = with_url.then_some("url");
    let names = stage.value_names.iter().map(crate::value_name::ValueName::as_str);
    let unnamed = stage.value_names.is_empty().then_some(UNNAMED);
    let mut line = row(url.into_iter().chain(names).chain(unnamed).map(str::as_bytes));
    line.push(b'\n');
    line
}

/// Returns the rows of a page, without their line feeds. `columns` is the number of named columns; 0
/// if the values have no names. `url` is the first column, if there is one.
///
/// # Errors
/// The columns have different numbers of values, so that nobody knows which values belong together.
pub(super) fn rows(values: &MatchList, names: &[&str], url: Option<&str>) -> Result<MatchList> {
    let columns = names.len().max(1);
    let mut of_columns: Vec<Vec<usize>> = vec![Vec::new(); columns];
    for index in 0..values.len() {
        let column = if names.is_empty() { 0 } else { values.expression(index).min(columns - 1) };
        of_columns[column].push(index);
    }
    let count = of_columns.iter().map(Vec::len).max().unwrap_or(0);
    if let Some(short) = of_columns.iter().position(|column| !column.is_empty() && column.len() != count) {
        let long = of_columns.iter().position(|column| column.len() == count).unwrap_or(0);
        let message = format!(
            "its values are no rows: {} has {} and {} has {count}",
            names[short],
            of_columns[short].len(),
            names[long]
        );
        return Err(Error::new(ErrorKind::Write, message));
    }
    let mut rows = MatchList::default();
    for number in 0..count {
        let cell = |column: &Vec<usize>| column.get(number).map_or(&b""[..], |&index| values.get(index));
        rows.push(&row(url.into_iter().map(str::as_bytes).chain(of_columns.iter().map(cell))));
    }
    Ok(rows)
}

/// Returns a row without its line feed.
fn row<'c>(cells: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::Any(b'\n'))
        .quote_style(QuoteStyle::Necessary)
        .buffer_capacity(256)
        .from_writer(Vec::new());
    writer.write_record(cells).expect("a vector takes every write");
    let mut line = writer.into_inner().expect("a vector takes every write");
    line.pop();
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(found: &[(usize, &str)], names: &[&str], url: Option<&str>) -> Result<String> {
        let mut values = MatchList::default();
        found.iter().for_each(|(expression, value)| values.push_found(*expression, value.as_bytes()));
        Ok(String::from_utf8(rows(&values, names, url)?.to_lines()).expect("UTF-8"))
    }

    #[test]
    fn columns_of_equal_length_are_rows() {
        let found = [(0, "a"), (1, "1"), (0, "b,\"c\""), (1, "2\n3")];
        let expected = "a,1\n\"b,\"\"c\"\"\",\"2\n3\"\n";
        assert_eq!(lines(&found, &["x", "y"], None).unwrap(), expected);
        assert_eq!(lines(&found[..2], &["x", "y", "z"], Some("u")).unwrap(), "u,a,1,\n");
        assert_eq!(lines(&found[..1], &[], None).unwrap(), "a\n");
        assert_eq!(lines(&found, &[], Some("u")).unwrap().lines().count(), 5);
        assert_eq!(lines(&[], &["x"], Some("u")).unwrap(), "");
        assert_eq!(lines(&[(0, " ")], &["x"], None).unwrap(), " \n");
    }

    #[test]
    fn columns_of_different_length_are_an_error() {
        let error = lines(&[(0, "a"), (1, "1"), (0, "b")], &["name", "price"], None).unwrap_err();
        assert_eq!(error.to_string(), "its values are no rows: price has 1 and name has 2");
    }
}
