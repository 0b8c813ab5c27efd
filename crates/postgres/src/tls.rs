//! Encryption that knows whom it speaks to.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::ConnectError;
use crate::settings::Encryption;

/// Also made where nothing is encrypted, so that there is one type of connection.
pub(crate) fn connector(encryption: &Encryption) -> Result<MakeRustlsConnect, ConnectError> {
    let roots = match encryption {
        Encryption::Verified { roots: Some(file) } => read(file)?,
        Encryption::Verified { roots: None } => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        Encryption::Disabled => RootCertStore::empty(),
    };
    // Named: the crate panics when it has to choose between two that are compiled in.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn read(file: &Path) -> Result<RootCertStore, ConnectError> {
    let unreadable = |reason: String| ConnectError::RootCertificates { file: file.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}
