//! Time zones by name, and the nearest ones when a name is not known.

use jiff::tz::{TimeZone, db};
use quarterdeck_contracts::ToolError;
use strsim::normalized_damerau_levenshtein;

/// Abbreviations that are used as if they were zones, with the zone they most likely mean.
const ABBREVIATIONS: [(&str, &str); 12] = [
    ("aedt", "Australia/Sydney"),
    ("aest", "Australia/Sydney"),
    ("bst", "Europe/London"),
    ("cdt", "America/Chicago"),
    ("cest", "Europe/Berlin"),
    ("cst", "America/Chicago"),
    ("edt", "America/New_York"),
    ("ist", "Asia/Kolkata"),
    ("jst", "Asia/Tokyo"),
    ("mdt", "America/Denver"),
    ("pdt", "America/Los_Angeles"),
    ("pst", "America/Los_Angeles"),
];

const MAX_SUGGESTIONS: usize = 3;
const MIN_SIMILARITY: f64 = 0.6;

pub(super) fn find(name: &str) -> Result<TimeZone, ToolError> {
    TimeZone::get(name).map_err(|_| {
        let refusal = super::refuse("/timezone", "timezone is not a known IANA time zone");
        let nearest = nearest(name);
        if nearest.is_empty() {
            refusal.with_suggestion("Use an IANA name such as Europe/Berlin, America/New_York or UTC.")
        } else {
            refusal.with_suggestion(format!("Did you mean {}?", nearest.join(" or ")))
        }
    })
}

/// The most similar names, best first. A city alone finds its zone.
pub(super) fn nearest(name: &str) -> Vec<String> {
    let wanted = name.trim().to_lowercase().replace(' ', "_");
    if let Some((_, zone)) = ABBREVIATIONS.iter().find(|(abbreviation, _)| *abbreviation == wanted) {
        return vec![(*zone).to_owned()];
    }
    let mut scored: Vec<(f64, String)> = db()
        .available()
        .map(|zone| (similarity(&wanted, &zone.as_str().to_lowercase()), zone.as_str().to_owned()))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // A name that fits exactly, but for its region, needs no company.
    let exact = scored.iter().take_while(|(similarity, _)| *similarity >= 0.99).count();
    scored.truncate(if exact > 0 { exact.min(MAX_SUGGESTIONS) } else { MAX_SUGGESTIONS });
    scored.into_iter().map(|(_, zone)| zone).collect()
}

fn similarity(wanted: &str, zone: &str) -> f64 {
    let city = zone.rsplit('/').next().unwrap_or(zone);
    let wanted_city = wanted.rsplit('/').next().unwrap_or(wanted);
    let whole = normalized_damerau_levenshtein(wanted, zone);
    // The city decides, but `Asia/Berlin` is still a worse match than `Europe/Berlin` is for itself.
    whole.max(
        normalized_damerau_levenshtein(wanted_city, city) - if wanted.contains('/') { 0.02 } else { 0.0 },
    )
}
