//! Which call a progress note of the server belongs to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::handler::Context;
use rmcp::model::{ProgressNotificationParam, ProgressToken};

use crate::foreign;

const MAX_PROGRESS_CHARS: usize = 200;

/// The calls in progress, by the token that each was sent with.
#[derive(Default)]
pub(crate) struct ProgressRoutes {
    calls: Mutex<HashMap<ProgressToken, Arc<dyn Context>>>,
}

/// A call that gets its notes while this is kept.
pub(crate) struct ProgressRoute {
    routes: Arc<ProgressRoutes>,
    token: ProgressToken,
}

impl ProgressRoutes {
    pub(crate) fn open(self: &Arc<Self>, token: ProgressToken, context: Arc<dyn Context>) -> ProgressRoute {
        self.lock().insert(token.clone(), context);
        ProgressRoute { routes: self.clone(), token }
    }

    /// Passes a note on to the client of the call. One that belongs to no call goes nowhere.
    pub(crate) fn pass_on(&self, server: &str, note: &ProgressNotificationParam) {
        let context = self.lock().get(&note.progress_token).cloned();
        if let (Some(context), Some(text)) = (context, describe(note)) {
            context.progress(&format!("{server}: {text}"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<dyn Context>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ProgressRoute {
    fn drop(&mut self) {
        self.routes.lock().remove(&self.token);
    }
}

fn describe(note: &ProgressNotificationParam) -> Option<String> {
    let said = note.message.as_deref().map(|text| foreign::shorten(text, MAX_PROGRESS_CHARS));
    if let Some(text) = said.filter(|text| !text.is_empty()) {
        return Some(text);
    }
    let is_number = |number: f64| number.is_finite() && number >= 0.0;
    match note.total {
        Some(total) if is_number(total) && is_number(note.progress) => {
            Some(format!("{} of {total}", note.progress))
        }
        _ => is_number(note.progress).then(|| note.progress.to_string()),
    }
}
