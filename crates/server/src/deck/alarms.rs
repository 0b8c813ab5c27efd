//! Evaluates the alert rules, and puts on the record what has changed.

use std::sync::Arc;

use quarterdeck_alerts::{AlarmChange, AlarmEvent, AlarmState};
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::routes::prometheus_text;

impl App {
    /// Evaluates every rule with the metrics as they are.
    pub(crate) fn evaluate_alarms(&self) {
        let text = prometheus_text(self);
        for change in self.operations.alarms.evaluate(self.orchestrator.now_ms(), &text) {
            self.announce_alarm(&change);
        }
    }

    /// Lifts an alarm that fires; `false` if there is none with this id.
    pub(crate) fn lift_alarm(&self, id: &str) -> bool {
        let lifted = self.operations.alarms.lift(id);
        if let Some(change) = &lifted {
            self.announce_alarm(change);
        }
        lifted.is_some()
    }

    pub(crate) fn count_firing_alarms(&self) -> usize {
        let alarms = self.operations.alarms.list();
        alarms.iter().filter(|alarm| alarm.state == AlarmState::Firing).count()
    }

    fn announce_alarm(&self, change: &AlarmChange) {
        let alarm = &change.alarm;
        match change.event {
            AlarmEvent::Fired => {
                tracing::warn!(
                    alarm = alarm.id,
                    value = alarm.value,
                    remedy = alarm.remedy,
                    "{}",
                    alarm.summary
                );
            }
            AlarmEvent::Resolved | AlarmEvent::Lifted => {
                tracing::info!(alarm = alarm.id, "alarm {}", change.event.as_str());
            }
        }
        if let Some(messenger) = &self.operations.messenger {
            messenger.send(change);
        }
        if let Some(log) = &self.operations.audit {
            let fields = alarm_fields(change);
            log.feed.record(AuditEvent { event: Arc::from("alarm"), time: self.orchestrator.now(), fields });
        }
    }
}

fn alarm_fields(change: &AlarmChange) -> Map<String, Value> {
    let alarm = &change.alarm;
    let fields = [
        ("alarm", json!(alarm.id)),
        ("change", json!(change.event.as_str())),
        ("severity", json!(alarm.severity.as_str())),
        ("value", json!(alarm.value)),
        ("since", json!(alarm.since_ms)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
