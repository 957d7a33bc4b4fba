//! The style of the charts. The colours are those of Okabe and Ito, which people with common kinds
//! of colour blindness can distinguish. Lines also have different markers.

use std::error::Error;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) const HAUL: RGBColor = RGBColor(0, 114, 178);
pub(super) const PEER: RGBColor = RGBColor(230, 159, 0);
/// The colours of haul's competitors in line charts, in the order in which they are used.
pub(super) const PEERS: [RGBColor; 3] = [PEER, RGBColor(204, 121, 167), RGBColor(86, 180, 233)];
pub(super) const LIMIT: RGBColor = RGBColor(140, 140, 140);
/// The colour of the further programs of haul in a line chart. The first program of haul has the
/// colour [`HAUL`]; the others run haul with other options.
pub(super) const HAUL_VARIANT: RGBColor = RGBColor(0, 158, 115);
pub(super) const CUT_BAR_MARK: RGBColor = RGBColor(178, 60, 0);
pub(super) const TEXT: RGBColor = RGBColor(26, 26, 26);
pub(super) const FRAME: RGBColor = RGBColor(110, 110, 110);
pub(super) const GRID: RGBColor = RGBColor(225, 225, 225);

/// The smallest ratio of two programs' results that a chart shows. A smaller ratio would be
/// displayed as 0.00. It occurs only if the slower program has waited until a time limit, so it
/// does not compare the cost of the work.
pub(super) const MIN_SHOWN_RATIO: f64 = 0.005;

/// The result of drawing a chart. Drawing fails only if the width or height of the chart is zero.
pub(super) type DrawResult<T> = Result<T, Box<dyn Error>>;

/// Returns a text style with this height in pixels. The text is vertically centred at its anchor
/// point; `side` is the side of the text at which the anchor point lies.
pub(super) fn font(size: u32, colour: RGBColor, side: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour).pos(Pos::new(side, VPos::Center))
}

/// Returns a bold text style for emphasised text.
pub(super) fn bold_font(size: u32, side: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().style(FontStyle::Bold).color(&TEXT).pos(Pos::new(side, VPos::Center))
}
