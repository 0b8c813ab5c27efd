//! Changes of an event, and the ids of occurrences.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::moment::Moment;
use crate::row::{Details, EventRow, Override};

/// What stands between a series' uid and the first start of one occurrence: `uid#20260113T090000Z`.
const SEPARATOR: char = '#';

/// The id of an event, or of one occurrence of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccurrenceId {
    pub uid: String,
    /// When the occurrence would begin if nothing had been changed.
    pub occurrence: Option<Timestamp>,
}

impl OccurrenceId {
    /// What an id may mean. A uid may look like the id of an occurrence, so there can be two meanings.
    pub fn readings(id: &str) -> Vec<Self> {
        let whole = Self { uid: id.to_owned(), occurrence: None };
        let split = id.rsplit_once(SEPARATOR).and_then(|(uid, start)| {
            Some(Self { uid: uid.to_owned(), occurrence: Some(read_compact(start)?) })
        });
        [Some(whole), split].into_iter().flatten().collect()
    }
}

/// `20260113T090000Z`.
fn read_compact(text: &str) -> Option<Timestamp> {
    let wall = text.strip_suffix('Z').filter(|wall| wall.len() == 15)?;
    TimeZone::UTC.to_timestamp(wall.parse().ok()?).ok()
}

/// Why a change cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("the id names a series; name one of its occurrences")]
    WholeSeries,
    #[error("the event has no such occurrence")]
    NoSuchOccurrence,
    #[error("the time is outside the calendar")]
    OutOfRange,
}

impl EventRow {
    pub(crate) fn is_series(&self) -> bool {
        !self.rules.is_empty() || !self.also.is_empty()
    }

    /// The id of the occurrence that would begin at a moment if nothing had been changed.
    pub(crate) fn id_of(&self, original: Timestamp) -> String {
        if self.is_series() {
            format!("{}{SEPARATOR}{}", self.uid, original.strftime("%Y%m%dT%H%M%SZ"))
        } else {
            self.uid.clone()
        }
    }

    /// Moves the event, or one occurrence of it.
    pub fn reschedule(
        &mut self,
        occurrence: Option<Timestamp>,
        (start, end): (Timestamp, Timestamp),
        home: &TimeZone,
    ) -> Result<(), ChangeError> {
        let details = self.changed_details(occurrence, home)?;
        let moved = Details {
            start: details.start.at_instant(start, home).ok_or(ChangeError::OutOfRange)?,
            end: details.end.at_instant(end, home).ok_or(ChangeError::OutOfRange)?,
            ..details
        };
        match occurrence {
            None => self.details = moved,
            Some(original) => {
                let instead_of = self.original_start(original, home).ok_or(ChangeError::OutOfRange)?;
                self.overrides.retain(|other| other.instead_of.instant(home) != Some(original));
                self.overrides.push(Override { instead_of, details: moved });
            }
        }
        self.sequence += 1;
        Ok(())
    }

    /// Takes one occurrence out of a series. An event that does not repeat is deleted as a whole by its keeper.
    pub fn cancel_occurrence(&mut self, original: Timestamp, home: &TimeZone) -> Result<(), ChangeError> {
        self.changed_details(Some(original), home)?;
        let start = self.original_start(original, home).ok_or(ChangeError::OutOfRange)?;
        self.overrides.retain(|other| other.instead_of.instant(home) != Some(original));
        self.except.push(start);
        self.sequence += 1;
        Ok(())
    }

    /// What a change begins with: the event, or the occurrence as it is now.
    fn changed_details(
        &self,
        occurrence: Option<Timestamp>,
        home: &TimeZone,
    ) -> Result<Details, ChangeError> {
        match occurrence {
            None if self.is_series() => Err(ChangeError::WholeSeries),
            None => Ok(self.details.clone()),
            Some(_) if !self.is_series() => Err(ChangeError::NoSuchOccurrence),
            Some(original) => {
                let changed =
                    self.overrides.iter().find(|other| other.instead_of.instant(home) == Some(original));
                Ok(changed.map_or_else(|| self.details.clone(), |changed| changed.details.clone()))
            }
        }
    }

    /// In the form of the series' own start, so that programs which compare texts find it.
    fn original_start(&self, original: Timestamp, home: &TimeZone) -> Option<Moment> {
        self.details.start.at_wall(self.details.start.zone(home).to_datetime(original))
    }
}
