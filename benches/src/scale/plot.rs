//! A small picture of the knee: time at the 99th percentile against load, on logarithmic axes.

use std::fmt::Write;

/// One line of the picture.
pub(crate) struct Curve {
    pub(crate) name: String,
    /// Calls at a time, and milliseconds.
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 56.0;
const COLOURS: [&str; 4] = ["#0d5c6b", "#b5482a", "#5b7f2b", "#6b3fa0"];

/// A logarithmic axis between two whole powers of ten.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min).max(0.1);
        let high = values.fold(low, f64::max);
        Self { low: low.log10().floor(), high: high.log10().ceil().max(low.log10().floor() + 1.0) }
    }

    /// From 0 at the low end to 1 at the high one.
    fn place(&self, value: f64) -> f64 {
        ((value.max(1e-9).log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn powers(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10_f64.powi(power))
    }
}

/// The picture as SVG.
pub(crate) fn draw(curves: &[Curve]) -> String {
    let points = curves.iter().flat_map(|curve| curve.points.iter());
    let across = Axis::over(points.clone().map(|point| point.0));
    let up = Axis::over(points.map(|point| point.1));
    let x = |value: f64| MARGIN + across.place(value) * (WIDTH - 2.0 * MARGIN);
    let y = |value: f64| HEIGHT - MARGIN - up.place(value) * (HEIGHT - 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n",
    );
    for power in across.powers() {
        let at = x(power);
        let (top, bottom) = (MARGIN, HEIGHT - MARGIN);
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{power}</text>",
            bottom + 18.0,
        );
    }
    for power in up.powers() {
        let at = y(power);
        let (left, right) = (MARGIN, WIDTH - MARGIN);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{power} ms</text>",
            left - 6.0,
            at + 4.0,
        );
    }
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let line: Vec<String> =
            curve.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" "),
        );
        if let Some(last) = curve.points.last() {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" text-anchor=\"end\">{}</text>",
                x(last.0) - 6.0,
                y(last.1) + 12.0,
                curve.name,
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"20\" text-anchor=\"middle\">time that the machines add to a turn, 99th percentile</text>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">calls at a time, with a hundred chats a day for each</text>\n</svg>",
        WIDTH / 2.0,
        WIDTH / 2.0,
        HEIGHT - 12.0,
    );
    svg
}
