//! Converts the extracted values of one page to rows of CSV.

use csv::{QuoteStyle, Terminator, WriterBuilder};
use haul::fleet::{RecordTextIterator, WholeOrPiecewiseText};
use haul::sink::extracted_value_list::ExtractedValues;
use haul::{Error, ErrorKind, Result};

use crate::plan::StageArgs;

/// The maximum total size, in bytes, of a page's rows that are formatted as one text. If the rows
/// are larger, they are formatted in pieces of about the size [`PIECE`].
const MAX_WHOLE_TEXT: usize = 256 << 10;
const PIECE: usize = 64 << 10;

/// The name of the CSV column for values without a name.
const UNNAMED_COLUMN: &str = "value";

/// Returns the CSV header line of a stage (`--then` separates stages): the names of its columns.
/// The first column is `url` if `with_url` is true.
pub(crate) fn header_line(stage: &StageArgs, with_url: bool) -> Vec<u8> {
    let url = with_url.then_some("url");
    let names = stage.value_names.iter().map(crate::extracted_value_name::ValueName::as_str);
    let unnamed = stage.value_names.is_empty().then_some(UNNAMED_COLUMN);
    let mut line = encode_row(url.into_iter().chain(names).chain(unnamed).map(str::as_bytes));
    line.push(b'\n');
    line
}

/// The way in which the rows of a page are output: piece by piece as they are found, or only when
/// all of them are in memory, so that they can be sorted or compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowBuffering {
    /// The rows are output in the order of the page, piece by piece.
    AsFound,
    /// The rows are sorted or compared (`--sort`, `--unique`). The rows of one page may take at
    /// most this many bytes.
    Compared(u64),
}

/// The CSV rows (`--csv`) of one page, made from the values that its stage has extracted from the
/// page. The n-th row has the n-th value of each column. The rows are formatted in pieces, so that
/// a large page needs little memory for the text.
pub(super) struct PageValuesCsv {
    values: ExtractedValues,
    /// For each column, the indexes in `values` of the column's values.
    columns: Vec<Vec<u32>>,
    /// The page's URL, which is the first column of each row; `None` if the rows have no such
    /// column.
    url: Option<String>,
    /// The number of rows on the page.
    count: usize,
    next: usize,
}

impl PageValuesCsv {
    /// Assigns the values of a page to columns. `names` are the names of the columns; empty if the
    /// values have no names. `url` is the value of the first column; `None` without a column for
    /// the URL.
    ///
    /// # Errors
    /// The columns have different numbers of values, so that the values cannot be assigned to rows.
    pub(super) fn new(values: ExtractedValues, names: &[&str], url: Option<String>) -> Result<Self> {
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); names.len().max(1)];
        let last = columns.len() - 1;
        for index in 0..values.len() {
            let column = if names.is_empty() { 0 } else { values.expression(index).min(last) };
            columns[column].push(u32::try_from(index).unwrap_or(u32::MAX));
        }
        let count = columns.iter().map(Vec::len).max().unwrap_or(0);
        if let Some(short) = columns.iter().position(|column| !column.is_empty() && column.len() != count) {
            let long = columns.iter().position(|column| column.len() == count).unwrap_or(0);
            let message = format!(
                "its values are no rows: {} has {} and {} has {count}",
                names[short],
                columns[short].len(),
                names[long]
            );
            return Err(Error::new(ErrorKind::Write, message));
        }
        Ok(Self { values, columns, url, count, next: 0 })
    }

    /// Returns the rows as text.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] if the rows must be sorted or compared with each other, and need
    /// more memory than allowed.
    pub(super) fn into_text(mut self, order: RowBuffering) -> Result<WholeOrPiecewiseText> {
        let own = self.values.memory_size() + self.columns.iter().map(|column| column.capacity() * 4).sum::<usize>();
        let urls = self.url.as_ref().map_or(0, |url| url.len().saturating_mul(self.count));
        match order {
            RowBuffering::AsFound if own.saturating_add(urls) <= MAX_WHOLE_TEXT => {
                Ok(WholeOrPiecewiseText::Whole(self.by_ref().flatten().collect()))
            }
            RowBuffering::AsFound => {
                Ok(WholeOrPiecewiseText::Pieces(RecordTextIterator { pieces: Box::new(self), cost: own }))
            }
            RowBuffering::Compared(most) => {
                let mut rows = ExtractedValues::default();
                while let Some(row) = self.next_row() {
                    rows.push(&row);
                    if rows.memory_size() as u64 > most {
                        let remedy = if self.url.is_some() { ", or leave --with-url out" } else { "" };
                        let message = format!(
                            "its rows need more than the {most} bytes that a record may have; raise \
                             --max-memory{remedy}"
                        );
                        return Err(Error::new(ErrorKind::TooLarge, message));
                    }
                }
                Ok(WholeOrPiecewiseText::Lines(rows))
            }
        }
    }

    /// Returns the next row without its line feed; `None` after the last row.
    fn next_row(&mut self) -> Option<Vec<u8>> {
        let number = self.next;
        if number == self.count {
            return None;
        }
        self.next += 1;
        let value = |index: &u32| self.values.get(*index as usize);
        let cells = self.columns.iter().map(|column| column.get(number).map_or(&b""[..], value));
        Some(encode_row(self.url.iter().map(String::as_bytes).chain(cells)))
    }
}

/// Returns the rows as pieces of text. Each piece contains whole rows with their line feeds.
impl Iterator for PageValuesCsv {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut piece = Vec::new();
        while piece.len() < PIECE
            && let Some(row) = self.next_row()
        {
            piece.extend_from_slice(&row);
            piece.push(b'\n');
        }
        (!piece.is_empty()).then_some(piece)
    }
}

/// Formats cells as a CSV row, without its line feed.
fn encode_row<'c>(cells: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
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
        let mut values = ExtractedValues::default();
        found.iter().for_each(|(expression, value)| values.push_found(*expression, value.as_bytes()));
        let rows = |order| PageValuesCsv::new(values.clone(), names, url.map(str::to_owned))?.into_text(order);
        let text = |text: WholeOrPiecewiseText| match text {
            WholeOrPiecewiseText::Whole(text) => text,
            WholeOrPiecewiseText::Pieces(pieces) => pieces.pieces.collect::<Vec<_>>().concat(),
            WholeOrPiecewiseText::Lines(lines) => lines.to_lines(),
        };
        let found = text(rows(RowBuffering::AsFound)?);
        assert_eq!(text(rows(RowBuffering::Compared(1 << 30))?), found);
        Ok(String::from_utf8(found).expect("UTF-8"))
    }

    #[test]
    fn csv_columns_of_equal_length_become_rows() {
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
    fn csv_rows_with_long_urls_are_written_piecewise() {
        let url = "u".repeat(6_000);
        let mut values = ExtractedValues::default();
        (0..60_000).for_each(|value| values.push(value.to_string().as_bytes()));
        let rows = |order| PageValuesCsv::new(values.clone(), &[], Some(url.clone())).unwrap().into_text(order);
        let Ok(WholeOrPiecewiseText::Pieces(pieces)) = rows(RowBuffering::AsFound) else { panic!("pieces") };
        assert!(pieces.cost < 2 << 20, "{}", pieces.cost);
        let mut count = 0;
        for piece in pieces.pieces {
            assert!(piece.len() < PIECE + 7_000 && piece.ends_with(b"\n"));
            count += piece.iter().filter(|byte| **byte == b'\n').count();
        }
        assert_eq!(count, 60_000);
        let error = rows(RowBuffering::Compared(1 << 20)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("leave --with-url out"), "{error}");
    }

    #[test]
    fn csv_columns_of_different_length_are_an_error() {
        let error = lines(&[(0, "a"), (1, "1"), (0, "b")], &["name", "price"], None).unwrap_err();
        assert_eq!(error.to_string(), "its values are no rows: price has 1 and name has 2");
    }
}
