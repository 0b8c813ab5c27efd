//! A path: what answers its methods, and how that is described. Neither can be given without the other.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter};
use serde_json::{Map, Value};

use super::openapi::Operation;
use crate::app::App;

/// A path.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) answers: MethodRouter<Arc<App>>,
    pub(super) described: Map<String, Value>,
}

impl Route {
    pub(super) fn at(path: &'static str) -> Self {
        Self { path, answers: MethodRouter::new(), described: Map::new() }
    }

    pub(super) fn get<H: Handler<T, Arc<App>>, T: 'static>(self, handler: H, described: Operation) -> Self {
        self.on(MethodFilter::GET, "get", handler, described)
    }

    pub(super) fn post<H: Handler<T, Arc<App>>, T: 'static>(self, handler: H, described: Operation) -> Self {
        self.on(MethodFilter::POST, "post", handler, described)
    }

    pub(super) fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        handler: H,
        described: Operation,
    ) -> Self {
        self.on(MethodFilter::DELETE, "delete", handler, described)
    }

    fn on<H: Handler<T, Arc<App>>, T: 'static>(
        mut self,
        filter: MethodFilter,
        method: &str,
        handler: H,
        described: Operation,
    ) -> Self {
        self.answers = self.answers.on(filter, handler);
        self.described.insert(method.to_owned(), described.written(self.path));
        self
    }
}
