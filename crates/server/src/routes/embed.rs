//! `GET /embed.js`: the script that puts the chat on another site's page.

use axum::http::HeaderMap;
use axum::response::Response;

use super::openapi::{Media, Operation};
use super::page;
use crate::web::EMBED;

/// Its address has no version, so browsers ask again soon; the files that it names are kept for ever.
const CACHING: &str = "public, max-age=300, stale-while-revalidate=86400";

pub(super) async fn get(headers: HeaderMap) -> Response {
    page::public(&headers, &EMBED, CACHING).await
}

pub(super) fn describe() -> Operation {
    Operation::new("getEmbed", "description", "The script that embeds the chat in a page")
        .description(
            "`<script src=\"https://HOST/embed.js\" async></script>` puts a `<quarterdeck-chat>` on the page. List the \
             page's origin under `server.origins`.",
        )
        .response(200, "The script.", vec![Media::script()])
        .response(304, "Not modified.", Vec::new())
}
