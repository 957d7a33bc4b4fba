//! The interface of the sinks to which an ordered window passes content: standard output, a file,
//! or the input of the next stage.

use crate::Result;
use crate::fleet::sinks_of_stages::StageEndValues;
use crate::sink::descriptor_writer::OutputReadiness;
use crate::sink::extracted_value_list::ExtractedValues;

/// The sink to which an [`OrderedWindow`](super::OrderedWindow) passes bodies in order. The window
/// keeps each body in a slot until its turn. A call always accepts its content. If the call returns
/// [`OutputReadiness::Full`], the window must pass no more content for now.
pub(in crate::fleet) trait StageSink: Send {
    /// Receives bytes of a body, and outputs or collects them. Returns whether the sink has room
    /// for more.
    ///
    /// # Errors
    /// The bytes cannot be passed on. The whole fleet fails.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness>;

    /// Receives extracted values, and empties `records`. Returns whether the sink has room for
    /// more.
    ///
    /// # Errors
    /// The errors of [`StageSink::write_bytes`].
    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness>;

    /// Outputs the content that the sink has collected. Returns whether the sink has room for more.
    ///
    /// # Errors
    /// The errors of [`StageSink::write_bytes`].
    fn flush(&mut self) -> Result<OutputReadiness>;

    /// Returns true if the transfer whose body is next in the order may continue while the sink is
    /// full. The window then keeps the body's bytes in memory, up to its memory budget. If false,
    /// the transfer waits until the sink has room. Default: false.
    fn may_receive_while_full(&self) -> bool {
        false
    }

    /// Ends the content, after the window has passed all content of the fleet's stage to the sink.
    /// `tail` contains the values that the preceding sink of the stage held back until the end, for
    /// example to sort them; `None` if there are none. Returns the values from which the next stage
    /// must make requests; `None` if there are none.
    ///
    /// # Errors
    /// The errors of [`StageSink::write_bytes`].
    fn finish(&mut self, tail: Option<StageEndValues>) -> Result<Option<StageEndValues>>;
}
