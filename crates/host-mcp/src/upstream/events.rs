//! Tells the observer of the host what happens with one server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::UpstreamEvent;
use quarterdeck_contracts::handler::{HostEvent, HostObserver};

/// Events that are kept until there is an observer: a server that has drifted before the audit log is open must be in it.
const MAX_EARLY_EVENTS: usize = 256;

/// The observer of a host, which may come after the first events. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Observers(Arc<Mutex<ObserverState>>);

#[derive(Default)]
struct ObserverState {
    observer: Option<Arc<dyn HostObserver>>,
    early: Vec<HostEvent>,
}

impl Observers {
    /// Sends events to this observer from now on, those first that came before there was one.
    pub(crate) fn set(&self, observer: Arc<dyn HostObserver>) {
        let mut state = self.lock();
        state.early.drain(..).for_each(|event| observer.observe(event));
        state.observer = Some(observer);
    }

    fn emit(&self, event: HostEvent) {
        let mut state = self.lock();
        match state.observer.clone() {
            Some(observer) => {
                drop(state);
                observer.observe(event);
            }
            None if state.early.len() < MAX_EARLY_EVENTS => state.early.push(event),
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, ObserverState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of one server.
#[derive(Clone)]
pub(crate) struct Events {
    server: Arc<str>,
    observers: Observers,
}

impl Events {
    pub(crate) fn new(server: &str, observers: Observers) -> Self {
        Self { server: server.into(), observers }
    }

    pub(crate) fn server(&self) -> &Arc<str> {
        &self.server
    }

    pub(crate) fn emit(&self, event: UpstreamEvent) {
        self.observers.emit(HostEvent::Upstream { server: self.server.to_string(), event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<HostEvent>>);

    impl HostObserver for Recorder {
        fn observe(&self, event: HostEvent) {
            self.0.lock().unwrap().push(event);
        }
    }

    #[test]
    fn an_event_before_there_is_an_observer_is_not_lost() {
        let observers = Observers::default();
        let events = Events::new("time", observers.clone());
        let restored = |tool: &str| UpstreamEvent::Restored { tool_id: tool.into() };
        (0..2 * MAX_EARLY_EVENTS).for_each(|_| events.emit(restored("early")));
        let recorder = Arc::new(Recorder::default());
        observers.set(recorder.clone());
        events.emit(restored("late"));
        let seen = recorder.0.lock().unwrap();
        assert_eq!(seen.len(), MAX_EARLY_EVENTS + 1);
        let late = HostEvent::Upstream { server: "time".into(), event: restored("late") };
        assert_eq!(seen.last(), Some(&late));
    }
}
