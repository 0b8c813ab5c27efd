//! How many tasks may run, for one client and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the tasks that run.
#[derive(Debug, Default)]
pub(crate) struct TaskSlots {
    by_client: Mutex<HashMap<Arc<str>, usize>>,
}

/// A place among the tasks that may run, until it is dropped.
#[derive(Debug)]
pub(crate) struct TaskSlot {
    slots: Arc<TaskSlots>,
    client: Arc<str>,
}

/// Why a task may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotRefusal {
    /// The client has as many as it may have.
    Client,
    /// All clients together have.
    All,
}

impl TaskSlots {
    pub(crate) fn take(
        self: &Arc<Self>,
        client: &Arc<str>,
        max_per_client: usize,
        max_in_all: usize,
    ) -> Result<TaskSlot, SlotRefusal> {
        let mut by_client = self.lock();
        if by_client.get(client).is_some_and(|count| *count >= max_per_client) {
            return Err(SlotRefusal::Client);
        }
        if by_client.values().sum::<usize>() >= max_in_all {
            return Err(SlotRefusal::All);
        }
        *by_client.entry(client.clone()).or_default() += 1;
        Ok(TaskSlot { slots: self.clone(), client: client.clone() })
    }

    /// Takes one whatever the limits are, for a task from before a restart.
    pub(crate) fn take_again(self: &Arc<Self>, client: &Arc<str>) -> TaskSlot {
        *self.lock().entry(client.clone()).or_default() += 1;
        TaskSlot { slots: self.clone(), client: client.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.by_client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TaskSlot {
    fn drop(&mut self) {
        let mut by_client = self.slots.lock();
        if let Some(count) = by_client.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_limited_for_a_client_and_in_all() {
        let slots = Arc::new(TaskSlots::default());
        let clients: [Arc<str>; 3] = ["a".into(), "b".into(), "c".into()];
        let take = |client: usize| slots.take(&clients[client], 2, 3);
        let mut held = vec![take(0).unwrap(), take(0).unwrap()];
        assert_eq!(take(0).unwrap_err(), SlotRefusal::Client);
        held.push(take(1).unwrap());
        assert_eq!(take(2).unwrap_err(), SlotRefusal::All);
        held.remove(0);
        held.push(take(0).unwrap());
        drop(held);
        assert!(slots.lock().is_empty(), "a client without tasks takes no memory");
    }
}
