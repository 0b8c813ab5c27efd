// Where the server is: at the origin that these modules came from. For its own page that is the page's origin; for a
// page that embeds the chat it is another one.

export const server = new URL('/', import.meta.url);

/** Whether the page is another origin's, so that no cookie goes with a request. */
export const isForeign = server.origin !== location.origin;
