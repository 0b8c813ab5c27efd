//! `[calendar.zoom]`: the app at Zoom that makes links to video calls.

use quarterdeck_calendar::CalendarConfig;
use quarterdeck_remote_calendar::{Credential, ZOOM_BASE_URL, ZOOM_TOKEN_URL, ZoomConfig, check_address};

use super::kinds::{base_url, line};
use super::reader::{Reader, settings};

pub(super) fn zoom(from: &mut Reader, config: &CalendarConfig) -> Option<ZoomConfig> {
    let about = "A server-to-server OAuth app at Zoom that makes links to video calls.";
    from.table("calendar.zoom", about);
    let account_id = from.optional("account_id", line(), "The account of the app");
    let client_id = from.optional("client_id", line(), "The app");
    let way_out = "set QUARTERDECK_ZOOM_CLIENT_SECRET, or name a file that holds it in `calendar.zoom.client_secret_file`";
    let (client_secret, _) = from.secret(
        "client_secret",
        &["QUARTERDECK_ZOOM_CLIENT_SECRET"],
        "A file that holds the app's secret; the variable QUARTERDECK_ZOOM_CLIENT_SECRET wins over it",
        way_out,
    );
    let mut user = "me".to_owned();
    let (mut base, mut token_url) = (ZOOM_BASE_URL.to_owned(), ZOOM_TOKEN_URL.to_owned());
    settings! { from;
        "user": line() => user, "Whose meetings they are: \"me\" is the owner of the app; others are named by e-mail";
        "base_url": base_url(&["http", "https"]) => base, "Where the API is";
        "token_url": base_url(&["http", "https"]) => token_url, "Where the app gets its tokens";
    }
    let account_id = account_id?;
    let key = "calendar.zoom.account_id";
    if config.conference_url.is_some() {
        let message = "links come from Zoom or from `calendar.conference_url`, not from both".into();
        from.add_problem(key, message, Some("leave one of them out".into()));
    }
    for address in [("calendar.zoom.base_url", &base), ("calendar.zoom.token_url", &token_url)] {
        if let Err(error) = check_address(address.1) {
            from.add_problem(address.0, format!("`{}`: {error}", address.0), None);
        }
    }
    let (Some(client_id), Some(client_secret)) = (client_id, client_secret) else {
        let message = "the app at Zoom needs `calendar.zoom.client_id` and its secret".into();
        from.add_serve_problem(key, message, Some(way_out.into()));
        return None;
    };
    let client_secret = Credential::new(client_secret.expose());
    Some(ZoomConfig { account_id, client_id, client_secret, user, base_url: base, token_url })
}
