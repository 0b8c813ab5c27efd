//! How access is granted.

use std::time::{Duration, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use quarterdeck_contracts::Calendar;
use quarterdeck_contracts::handler::CapabilityErrorCode;
use quarterdeck_remote_calendar::{
    Credential, CredentialsError, GoogleCalendar, GoogleConfig, GoogleConfigError, GoogleCredentials,
};
use serde_json::{Value, json};

use super::server::{Failure, GoogleServer};
use super::world::{calendar, clock, config, now, overlay, public_key, service_account, the_day};

fn with(credentials: GoogleCredentials, url: &str) -> GoogleCalendar {
    GoogleCalendar::new(&GoogleConfig { credentials, ..config(url) }, clock()).unwrap()
}

#[tokio::test]
async fn a_service_account_signs_its_assertion() {
    let google = GoogleServer::start().await;
    let GoogleCredentials::ServiceAccount { key, .. } = service_account(&google.url) else { unreachable!() };
    let delegated = GoogleCredentials::ServiceAccount { key, subject: Some("owner@example.com".into()) };
    with(delegated, &google.url).events(the_day(), overlay()).await.unwrap();

    let request = google.state().tokens[0].clone();
    assert_eq!(request.form("grant_type").as_deref(), Some("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    let mut validation = Validation::new(Algorithm::RS256);
    validation.validate_exp = false;
    validation.set_audience(&[format!("{}/token", google.url)]);
    let key = DecodingKey::from_rsa_pem(public_key().as_bytes()).unwrap();
    let token =
        jsonwebtoken::decode::<Value>(&request.form("assertion").unwrap(), &key, &validation).unwrap();
    assert_eq!(token.header.kid.as_deref(), Some("key-1"));
    let iat = now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(
        token.claims,
        json!({
            "iss": "deck@project.iam.gserviceaccount.com",
            "sub": "owner@example.com",
            "scope": "https://www.googleapis.com/auth/calendar.events https://www.googleapis.com/auth/calendar.freebusy",
            "aud": format!("{}/token", google.url),
            "iat": iat,
            "exp": iat + 3_600,
        })
    );
}

#[tokio::test]
async fn a_token_is_requested_once_also_by_calls_that_come_together() {
    let google = GoogleServer::start().await;
    let calendar = with(service_account(&google.url), &google.url);
    let asked = (0..8).map(|_| {
        let calendar = calendar.clone();
        tokio::spawn(async move { calendar.events(the_day(), overlay()).await.unwrap() })
    });
    for task in asked.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(google.state().tokens.len(), 1);
}

#[tokio::test]
async fn a_refresh_token_is_exchanged() {
    let google = GoogleServer::start().await;
    calendar(&google.url).events(the_day(), overlay()).await.unwrap();
    let request = google.state().tokens[0].clone();
    assert_eq!(request.form("grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(request.form("client_id").as_deref(), Some("app"));
    assert_eq!(request.form("client_secret").as_deref(), Some("GOCSPX-planted"));
    assert_eq!(request.form("refresh_token").as_deref(), Some("1//planted-refresh"));
}

/// Lets time pass. It stands still for no request: a paused clock jumps over every wait.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_token_is_replaced_before_it_expires() {
    let google = GoogleServer::start().await;
    let calendar = calendar(&google.url);
    calendar.events(the_day(), overlay()).await.unwrap();
    pass(3_500).await;
    calendar.events(the_day(), overlay()).await.unwrap();
    assert_eq!(google.state().tokens.len(), 1);
    pass(60).await;
    calendar.events(the_day(), overlay()).await.unwrap();
    assert_eq!(google.state().tokens.len(), 2);
}

#[tokio::test]
async fn refused_credentials_are_an_auth_error_that_repeats_no_secret() {
    let google = GoogleServer::start().await;
    google.fail("POST token", Failure::Status(400, "invalid_grant", None));
    let error = calendar(&google.url).events(the_day(), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::AuthError);
    assert!(error.message.contains("invalid_grant"), "{}", error.message);
    assert!(!error.message.contains("planted"), "{}", error.message);

    google.fail("POST token", Failure::Status(503, "", None));
    let error = calendar(&google.url).events(the_day(), overlay()).await.unwrap_err();
    assert_eq!(error.code, CapabilityErrorCode::NotAvailable);
}

#[test]
fn a_key_that_is_none_is_refused_without_being_repeated() {
    let refused = |key: &str| {
        let credentials = GoogleCredentials::ServiceAccount { key: Credential::new(key), subject: None };
        let config = GoogleConfig { credentials, ..config("http://127.0.0.1:9") };
        let error = GoogleCalendar::new(&config, clock()).err().unwrap();
        assert!(!format!("{error} {error:?} {config:?}").contains("planted"));
        let GoogleConfigError::Credentials(error) = error else { panic!("{error}") };
        error
    };
    assert!(matches!(refused("planted"), CredentialsError::Malformed));
    let other = r#"{"type":"external_account","audience":"planted"}"#;
    assert!(matches!(refused(other), CredentialsError::Type(kind) if kind == "external_account"));
    let no_key = r#"{"type":"service_account","client_email":"a@b","private_key":"planted"}"#;
    assert!(matches!(refused(no_key), CredentialsError::PrivateKey));
}

#[test]
fn both_files_of_google_are_read() {
    let user = r#"{"type":"authorized_user","client_id":"app","client_secret":"planted","refresh_token":"1//planted"}"#;
    let read = GoogleCredentials::parse(&Credential::new(user), None).unwrap();
    assert!(matches!(&read, GoogleCredentials::RefreshToken { client_id, .. } if client_id == "app"));
    assert!(!format!("{read:?}").contains("planted"));

    let GoogleCredentials::ServiceAccount { key, .. } = service_account("http://127.0.0.1:9") else {
        unreachable!()
    };
    let read = GoogleCredentials::parse(&key, Some("owner@example.com".into())).unwrap();
    assert!(
        matches!(&read, GoogleCredentials::ServiceAccount { subject: Some(user), .. } if user == "owner@example.com")
    );
    assert!(!format!("{read:?}").contains("PRIVATE KEY"));

    for bad in ["", "{}", r#"{"type":"authorized_user"}"#, r#"{"type":"service_account"}"#] {
        assert!(
            matches!(GoogleCredentials::parse(&Credential::new(bad), None), Err(CredentialsError::Malformed)),
            "{bad}"
        );
    }
}
