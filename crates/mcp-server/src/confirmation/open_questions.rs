//! How many clients are being asked at this moment. Each question holds a request open until the user has decided.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MAX_QUESTIONS: usize = 1_024;
const MAX_QUESTIONS_PER_CLIENT: usize = 32;

#[derive(Default)]
pub(super) struct OpenQuestions {
    by_client: Arc<Mutex<HashMap<String, usize>>>,
}

/// A question that is open until this is dropped.
pub(super) struct OpenQuestion {
    by_client: Arc<Mutex<HashMap<String, usize>>>,
    client: String,
}

impl OpenQuestions {
    /// Counts a question; `None` if there are as many as there may be.
    pub(super) fn open(&self, client: &str) -> Option<OpenQuestion> {
        let mut by_client = lock(&self.by_client);
        let of_client = by_client.get(client).copied().unwrap_or(0);
        if of_client >= MAX_QUESTIONS_PER_CLIENT || by_client.values().sum::<usize>() >= MAX_QUESTIONS {
            return None;
        }
        by_client.insert(client.to_owned(), of_client + 1);
        Some(OpenQuestion { by_client: self.by_client.clone(), client: client.to_owned() })
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut by_client = lock(&self.by_client);
        if let Some(count) = by_client.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                by_client.remove(&self.client);
            }
        }
    }
}

fn lock(by_client: &Mutex<HashMap<String, usize>>) -> MutexGuard<'_, HashMap<String, usize>> {
    by_client.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_cannot_use_up_the_questions_of_all() {
        let questions = OpenQuestions::default();
        let mut held: Vec<_> =
            (0..MAX_QUESTIONS_PER_CLIENT).map(|_| questions.open("ann").unwrap()).collect();
        assert!(questions.open("ann").is_none());
        held.push(questions.open("bob").unwrap());
        held.remove(0);
        held.push(questions.open("ann").unwrap());
        for client in 0.. {
            match questions.open(&format!("client {client}")) {
                Some(question) => held.push(question),
                None => break,
            }
        }
        assert_eq!(held.len(), MAX_QUESTIONS);
        drop(held);
        assert!(lock(&questions.by_client).is_empty(), "a client without questions takes no memory");
    }
}
