//! Finding the calendar, and who may use it.

use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_remote_calendar::{AddressError, CalDavConfig, Credential, check_address};

use crate::radicale::{Radicale, USER};
use crate::world::{Caller, calendars, config};

const DAY: (&str, &str) = ("2026-01-13T00:00:00Z", "2026-01-14T00:00:00Z");

#[tokio::test]
async fn a_calendar_is_found_from_the_servers_address() {
    let Some(server) = Radicale::start().await else { return };
    let ann = Caller::new(&calendars(config(server.url("/"))), "ann", "1");
    ann.book(10).await.unwrap();
    assert!(server.objects().await.contains("SUMMARY:Review"));
}

#[tokio::test]
async fn one_of_several_calendars_is_found_by_its_name_or_its_path() {
    let Some(server) = Radicale::start().await else { return };
    server.make_calendar("private", "Private & home").await;
    let named = |name: Option<&str>| {
        let config = CalDavConfig { calendar: name.map(str::to_owned), ..config(server.url("/")) };
        Caller::new(&calendars(config), "ann", "1")
    };
    named(Some("Private & home")).book(10).await.unwrap();
    assert_eq!(named(Some("private")).events(DAY.0, DAY.1).await.unwrap().len(), 1);
    assert_eq!(named(Some("Work")).events(DAY.0, DAY.1).await.unwrap().len(), 0);
    let refused = named(None).events(DAY.0, DAY.1).await.unwrap_err();
    assert_eq!(refused.code, CapabilityErrorCode::NotFound);
    assert!(
        refused.message.contains("\"Private & home\"") && refused.message.contains("\"Work\""),
        "{refused}"
    );
}

#[tokio::test]
async fn a_wrong_password_is_a_matter_of_authorisation_and_is_not_told() {
    let Some(server) = Radicale::start().await else { return };
    for path in ["/", &format!("/{USER}/work/")] {
        let password = Some(Credential::new("wrong-one"));
        let config = CalDavConfig { password, ..config(server.url(path)) };
        assert!(!format!("{config:?}").contains("wrong-one"));
        let ann = Caller::new(&calendars(config), "ann", "1");
        let refused = ann.book(10).await.unwrap_err();
        assert_eq!(refused.code, CapabilityErrorCode::AuthError, "{refused}");
        assert!(!refused.message.contains("wrong-one"));
    }
}

#[test]
fn an_address_without_tls_is_for_this_machine_alone() {
    for address in
        ["https://dav.example", "http://127.0.0.1:5232/ann/", "http://[::1]/", "http://localhost:1/"]
    {
        assert!(check_address(address).is_ok(), "{address}");
    }
    for address in [
        "http://dav.example",
        "http://192.168.1.2/",
        "http://127.0.0.1.example/",
        "http://localhost.example/",
    ] {
        assert_eq!(check_address(address).unwrap_err(), AddressError::NotEncrypted, "{address}");
    }
    assert_eq!(check_address("https://ann:pass@dav.example").unwrap_err(), AddressError::HasCredentials);
    assert_eq!(check_address("ftp://dav.example").unwrap_err(), AddressError::NotHttp);
}
