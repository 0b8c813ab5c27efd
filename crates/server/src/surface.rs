//! The surfaces of the API and the credentials they require.

use quarterdeck_contracts::ErrorType;

use crate::app::App;
use crate::error::ApiError;

/// A part of the API that can require a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    V1,
    Api,
    Voice,
    Mcp,
}

/// Which surfaces require a verified token or an API key. A cookie does not count: every client gets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequiredCredentials {
    /// `/v1`; `None` requires one beyond loopback if tokens or keys are configured.
    pub v1: Option<bool>,
    /// `/api` except `/api/deck`, which is for operators, `/api/page`, which is for all, and `/api/nodes`.
    pub api: bool,
    /// `/voice`.
    pub voice: bool,
    /// `/mcp`; `None` requires one as for `/v1`.
    pub mcp: Option<bool>,
}

impl Surface {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let is_under =
            |top: &str| path.strip_prefix(top).is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', ..]));
        if is_under("/v1") {
            return Some(Self::V1);
        }
        if is_under("/mcp") {
            return Some(Self::Mcp);
        }
        // What the page looks like is for all who may load it, and other nodes sign their requests.
        let is_open = ["/api/deck", "/api/page", "/api/nodes"].into_iter().any(is_under);
        if is_under("/api") && !is_open {
            return Some(Self::Api);
        }
        is_under("/voice").then_some(Self::Voice)
    }

    fn path(self) -> &'static str {
        match self {
            Self::V1 => "/v1",
            Self::Api => "/api",
            Self::Voice => "/voice",
            Self::Mcp => "/mcp",
        }
    }
}

impl App {
    pub(crate) fn require(&self, surface: Surface, is_verified: bool) -> Result<(), ApiError> {
        if is_verified || !self.requires_credential(surface) {
            return Ok(());
        }
        let path = surface.path();
        let key = &path[1..];
        let alternative = match surface {
            Surface::Voice => ", or a ticket from `POST /api/voice/ticket`",
            _ => "",
        };
        Err(ApiError::new(
            ErrorType::Auth,
            format!(
                "`{path}` requires a credential: send `Authorization: Bearer KEY` with an API key or a token\
                 {alternative}. The operator can change this with `auth.required.{key}`."
            ),
        ))
    }

    fn requires_credential(&self, surface: Surface) -> bool {
        let required = self.settings.required;
        match surface {
            Surface::V1 => required.v1.unwrap_or_else(|| self.is_closed_by_default()),
            Surface::Mcp => required.mcp.unwrap_or_else(|| self.is_closed_by_default()),
            Surface::Api => required.api,
            Surface::Voice => required.voice,
        }
    }

    /// Whether programs need a credential that the operator has said nothing about.
    fn is_closed_by_default(&self) -> bool {
        self.identity.can_verify() && self.is_beyond_loopback()
    }

    /// Whether other machines can reach the server. Decided by the listener, not by a request's address: an untrusted
    /// proxy or a tunnel makes every request look local.
    fn is_beyond_loopback(&self) -> bool {
        !self.settings.is_loopback || self.settings.has_proxy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_surface_of_its_prefix() {
        for (path, surface) in [
            ("/v1/models", Some(Surface::V1)),
            ("/v1", Some(Surface::V1)),
            ("/v1/", Some(Surface::V1)),
            ("/v11/models", None),
            ("/api/me", Some(Surface::Api)),
            ("/api/deckhand", Some(Surface::Api)),
            ("/api/deck", None),
            ("/api/deck/audit", None),
            ("/api/page", None),
            ("/api/page/logo", None),
            ("/api/pages", Some(Surface::Api)),
            ("/api/nodes/alive", None),
            ("/voice", Some(Surface::Voice)),
            ("/voices", None),
            ("/mcp", Some(Surface::Mcp)),
            ("/mcps", None),
            ("/metrics", None),
            ("/", None),
        ] {
            assert_eq!(Surface::of(path), surface, "{path}");
        }
    }
}
