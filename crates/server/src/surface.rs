//! The surfaces of the API, and which of them need a credential.

use quarterdeck_contracts::ErrorType;

use crate::app::App;
use crate::error::ApiError;

/// A part of the API that can be closed to clients who do not prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    V1,
    Api,
    Voice,
}

/// Which surfaces need a verified token or an API key. A cookie is none: the server gives one to every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequiredCredentials {
    /// `/v1`; `None` needs one beyond loopback as soon as one can be verified.
    pub v1: Option<bool>,
    /// `/api`, but for `/api/deck`, which has the operators' own rule.
    pub api: bool,
    /// `/voice`.
    pub voice: bool,
}

impl Surface {
    /// The surface that a path is on, if it is on one.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let is_under =
            |top: &str| path.strip_prefix(top).is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', ..]));
        if is_under("/v1") {
            return Some(Self::V1);
        }
        if is_under("/api") && !is_under("/api/deck") {
            return Some(Self::Api);
        }
        is_under("/voice").then_some(Self::Voice)
    }

    fn path(self) -> &'static str {
        match self {
            Self::V1 => "/v1",
            Self::Api => "/api",
            Self::Voice => "/voice",
        }
    }
}

impl App {
    /// Lets a client on a surface, or says what it has to show.
    pub(crate) fn require(&self, surface: Surface, is_proved: bool) -> Result<(), ApiError> {
        if is_proved || !self.needs_credential(surface) {
            return Ok(());
        }
        let path = surface.path();
        let key = &path[1..];
        let with = match surface {
            Surface::Voice => ", or open it with a ticket of `POST /api/voice/ticket` that was got with one",
            _ => "",
        };
        Err(ApiError::new(
            ErrorType::Auth,
            format!(
                "`{path}` needs a key: send `Authorization: Bearer KEY` with an API key or a token{with}. \
                 The operator can open it with `auth.required.{key} = false`."
            ),
        ))
    }

    fn needs_credential(&self, surface: Surface) -> bool {
        let required = self.settings.required;
        match surface {
            Surface::V1 => {
                required.v1.unwrap_or_else(|| self.identity.can_verify() && self.is_beyond_loopback())
            }
            Surface::Api => required.api,
            Surface::Voice => required.voice,
        }
    }

    /// Whether others than this machine can reach the server. The listener decides and not the address of a request:
    /// a proxy that is not trusted, or a tunnel, makes every request look like one of this machine.
    fn is_beyond_loopback(&self) -> bool {
        !self.settings.is_loopback || self.settings.has_proxy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_the_surface_that_its_beginning_names() {
        for (path, surface) in [
            ("/v1/models", Some(Surface::V1)),
            ("/v1", Some(Surface::V1)),
            ("/v1/", Some(Surface::V1)),
            ("/v11/models", None),
            ("/api/me", Some(Surface::Api)),
            ("/api/deckhand", Some(Surface::Api)),
            ("/api/deck", None),
            ("/api/deck/audit", None),
            ("/voice", Some(Surface::Voice)),
            ("/voices", None),
            ("/metrics", None),
            ("/", None),
        ] {
            assert_eq!(Surface::of(path), surface, "{path}");
        }
    }
}
