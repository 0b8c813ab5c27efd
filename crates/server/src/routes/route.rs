//! A path with the handlers of its methods and their descriptions; neither can be added without the other.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};

use super::openapi::Operation;
use crate::app::App;

pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) handlers: MethodRouter<Arc<App>>,
    pub(super) operations: Vec<(&'static str, Operation)>,
}

impl Route {
    pub(super) fn at(path: &'static str) -> Self {
        Self { path, handlers: MethodRouter::new(), operations: Vec::new() }
    }

    pub(super) fn get<H: Handler<T, Arc<App>>, T: 'static>(self, handler: H, operation: Operation) -> Self {
        self.on(MethodFilter::GET, "get", handler, operation)
    }

    pub(super) fn post<H: Handler<T, Arc<App>>, T: 'static>(self, handler: H, operation: Operation) -> Self {
        self.on(MethodFilter::POST, "post", handler, operation)
    }

    pub(super) fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        handler: H,
        operation: Operation,
    ) -> Self {
        self.on(MethodFilter::DELETE, "delete", handler, operation)
    }

    fn on<H: Handler<T, Arc<App>>, T: 'static>(
        mut self,
        filter: MethodFilter,
        method: &'static str,
        handler: H,
        operation: Operation,
    ) -> Self {
        self.handlers = self.handlers.on(filter, handler);
        self.operations.push((method, operation));
        self
    }
}
