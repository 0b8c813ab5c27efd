//! What is written for Prometheus and Grafana: as it is in the repository, and as Prometheus takes it.

mod files;
mod promtool;
