//! A path with the handlers of its methods and their descriptions; neither can be added without the other.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};

use super::openapi::Operation;
use crate::app::App;

pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) handlers: MethodRouter<Arc<App>>,
    pub(super) operations: Vec<(&'static str, Describe)>,
}

/// Makes a description. It is called for the document alone, and not for all routes at every start.
pub(super) type Describe = fn() -> Operation;

impl Route {
    pub(super) fn at(path: &'static str) -> Self {
        Self { path, handlers: MethodRouter::new(), operations: Vec::new() }
    }

    pub(super) fn get<H: Handler<T, Arc<App>>, T: 'static>(self, handler: H, describe: Describe) -> Self {
        self.on(MethodFilter::GET, "get", handler, describe)
    }

    pub(super) fn post<H: Handler<T, Arc<App>>, T: 'static>(self, handler: H, describe: Describe) -> Self {
        self.on(MethodFilter::POST, "post", handler, describe)
    }

    pub(super) fn delete<H: Handler<T, Arc<App>>, T: 'static>(self, handler: H, describe: Describe) -> Self {
        self.on(MethodFilter::DELETE, "delete", handler, describe)
    }

    fn on<H: Handler<T, Arc<App>>, T: 'static>(
        mut self,
        filter: MethodFilter,
        method: &'static str,
        handler: H,
        describe: Describe,
    ) -> Self {
        self.handlers = self.handlers.on(filter, handler);
        self.operations.push((method, describe));
        self
    }
}
