//! The two ways in which Google grants access without a user at hand: a service account, and a refresh token.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use serde::{Deserialize, Serialize};

use super::failed;
use crate::credential::Credential;
use crate::http::AddressError;
use crate::oauth::{Grant, TokenRequest};

pub(super) const DEFAULT_TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// Reading and writing events, and asking when others are busy. Nothing else of an account.
const SCOPES: &str =
    "https://www.googleapis.com/auth/calendar.events https://www.googleapis.com/auth/calendar.freebusy";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Google grants no longer one.
const ASSERTION_SECONDS: u64 = 3_600;

#[derive(Debug, Clone)]
pub enum GoogleCredentials {
    ServiceAccount {
        /// The JSON file that Google's console gives out.
        key: Credential,
        /// The user on whose behalf the account acts, where an administrator has delegated that to it.
        subject: Option<String>,
    },
    RefreshToken {
        client_id: String,
        client_secret: Credential,
        refresh_token: Credential,
        /// Google's own without one.
        token_url: Option<String>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("this is not the JSON of a service account's key or of an authorised user")]
    Malformed,
    #[error(
        "credentials of type {0:?} are not known; use the key of a service account, or an authorised user"
    )]
    Type(String),
    #[error("the private key of the service account is not an RSA key in PEM; download a new one")]
    PrivateKey,
    #[error("the token address of the credentials cannot be used: {0}")]
    TokenUrl(#[from] AddressError),
}

impl GoogleCredentials {
    /// Reads a file of Google's: the key of a service account, or an authorised user. `user` is the one on whose behalf a
    /// service account acts.
    pub fn parse(json: &Credential, user: Option<String>) -> Result<Self, CredentialsError> {
        #[derive(Deserialize)]
        struct AuthorizedUser {
            client_id: String,
            client_secret: String,
            refresh_token: String,
            token_uri: Option<String>,
        }
        match file_type(json)?.as_str() {
            "authorized_user" => {
                let file = serde_json::from_str::<AuthorizedUser>(json.expose());
                let file = file.map_err(|_| CredentialsError::Malformed)?;
                Ok(Self::RefreshToken {
                    client_id: file.client_id,
                    client_secret: Credential::new(file.client_secret),
                    refresh_token: Credential::new(file.refresh_token),
                    token_url: file.token_uri,
                })
            }
            _ => {
                ServiceAccount::parse(json, None)?;
                Ok(Self::ServiceAccount { key: json.clone(), subject: user })
            }
        }
    }

    /// The token endpoint, and what is sent to it.
    pub(super) fn grant(&self) -> Result<(String, Box<dyn Grant>), CredentialsError> {
        match self {
            Self::ServiceAccount { key, subject } => {
                let account = ServiceAccount::parse(key, subject.clone())?;
                Ok((account.token_url.clone(), Box::new(account)))
            }
            Self::RefreshToken { client_id, client_secret, refresh_token, token_url } => {
                let url = token_url.clone().unwrap_or_else(|| DEFAULT_TOKEN_URL.into());
                let grant = RefreshToken {
                    client_id: client_id.clone(),
                    client_secret: client_secret.clone(),
                    refresh_token: refresh_token.clone(),
                };
                Ok((url, Box::new(grant)))
            }
        }
    }
}

/// What a file of credentials says that it is.
fn file_type(json: &Credential) -> Result<String, CredentialsError> {
    #[derive(Deserialize)]
    struct AnyFile {
        r#type: String,
    }
    // The error of the parser would quote the file.
    let file = serde_json::from_str::<AnyFile>(json.expose()).map_err(|_| CredentialsError::Malformed)?;
    Ok(file.r#type.chars().filter(|c| !c.is_control()).take(40).collect())
}

struct ServiceAccount {
    email: String,
    key_id: Option<String>,
    key: EncodingKey,
    subject: Option<String>,
    token_url: String,
}

impl ServiceAccount {
    fn parse(key: &Credential, subject: Option<String>) -> Result<Self, CredentialsError> {
        #[derive(Deserialize)]
        struct KeyFile {
            client_email: String,
            private_key: String,
            private_key_id: Option<String>,
            token_uri: Option<String>,
        }
        match file_type(key)?.as_str() {
            "service_account" => {}
            other => return Err(CredentialsError::Type(other.to_owned())),
        }
        let file: KeyFile = serde_json::from_str(key.expose()).map_err(|_| CredentialsError::Malformed)?;
        let key = EncodingKey::from_rsa_pem(file.private_key.as_bytes());
        Ok(Self {
            email: file.client_email,
            key_id: file.private_key_id,
            key: key.map_err(|_| CredentialsError::PrivateKey)?,
            subject,
            token_url: file.token_uri.unwrap_or_else(|| DEFAULT_TOKEN_URL.into()),
        })
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<&'a str>,
    scope: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

impl Grant for ServiceAccount {
    fn request(&self, now: SystemTime) -> Result<TokenRequest, CapabilityError> {
        let iat = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let claims = Claims {
            iss: &self.email,
            sub: self.subject.as_deref(),
            scope: SCOPES,
            aud: &self.token_url,
            iat,
            exp: iat + ASSERTION_SECONDS,
        };
        let header = Header { kid: self.key_id.clone(), ..Header::new(Algorithm::RS256) };
        let assertion = jsonwebtoken::encode(&header, &claims, &self.key).map_err(|_| {
            let message = "the service account's key cannot sign; the operator must download a new one";
            failed(CapabilityErrorCode::AuthError, message)
        })?;
        let form = vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", assertion)];
        Ok(TokenRequest { form, basic: None })
    }
}

struct RefreshToken {
    client_id: String,
    client_secret: Credential,
    refresh_token: Credential,
}

impl Grant for RefreshToken {
    fn request(&self, _: SystemTime) -> Result<TokenRequest, CapabilityError> {
        let form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("client_id", self.client_id.clone()),
            ("client_secret", self.client_secret.expose().to_owned()),
            ("refresh_token", self.refresh_token.expose().to_owned()),
        ];
        Ok(TokenRequest { form, basic: None })
    }
}
