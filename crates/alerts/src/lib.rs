//! Alert rules over the metrics.
//!
//! A rule speaks of the series that `/metrics` shows, so that one rule is evaluated inside the server and by Prometheus
//! alike. [`Alarms`] evaluates them: it reads no clock and performs no I/O. An [`AlarmMessenger`] is told what has
//! changed, and [`prometheus_rules`] and [`grafana_dashboard`] write the same for those who watch with other tools.

mod alarms;
mod dashboard;
mod history;
mod messenger;
mod prometheus;
mod rule;
mod samples;

pub use alarms::{Alarm, AlarmChange, AlarmEvent, AlarmState, Alarms};
pub use dashboard::{MetricFamily, grafana_dashboard, metric_families};
pub use messenger::{AlarmMessenger, MessageCounts};
pub use prometheus::prometheus_rules;
pub use rule::{Condition, Rule, RuleError, Rules, Severity};
pub use samples::Samples;
