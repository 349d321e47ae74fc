//! Certificates, keys and authorities made into what answers handshakes.

use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};

use super::form::{ClientAuth, Pem, TlsForm, TlsVersion};
use super::read_file;
use crate::exit::Usage;

/// What is spoken inside. Prometheus offers HTTP/2 before it.
const HTTP_1_1: &[u8] = b"http/1.1";

/// Reads what the file names, and returns what answers handshakes.
pub fn server_config(form: &TlsForm) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(ring::default_provider());
    let certificates = certificates(&form.cert)?;
    let key = PrivateKeyDer::from_pem_slice(&bytes(&form.key)?).map_err(|_| {
        lacks(
            &form.key,
            "private key in PEM format without a passphrase (PKCS#8, PKCS#1 or SEC1)",
        )
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(form))
        .context("no version of TLS is left")?
        .with_client_cert_verifier(client_verifier(form, &provider)?)
        .with_single_cert(certificates, key)
        .map_err(|error| unfit(form, &error))?;
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(Arc::new(config))
}

fn unfit(form: &TlsForm, error: &Error) -> Usage {
    let (cert, key) = (name_of(&form.cert), name_of(&form.key));
    Usage(match error {
        Error::InconsistentKeys(_) => {
            format!(
                "the key ({key}) does not belong to the certificate ({cert}): name a matching pair"
            )
        }
        error => format!("the certificate ({cert}) with its key ({key}) cannot be used: {error}"),
    })
}

fn versions(form: &TlsForm) -> Vec<&'static SupportedProtocolVersion> {
    let all = [(TlsVersion::Tls12, &TLS12), (TlsVersion::Tls13, &TLS13)];
    let wanted = all
        .into_iter()
        .filter(|(version, _)| (form.min_version..=form.max_version).contains(version));
    wanted.map(|(_, version)| version).collect()
}

fn bytes(pem: &Pem) -> Result<Vec<u8>> {
    match pem {
        Pem::File(path) => read_file(path),
        Pem::Inline(_, text) => Ok(text.clone().into_bytes()),
    }
}

fn name_of(pem: &Pem) -> String {
    match pem {
        Pem::File(path) => path.display().to_string(),
        Pem::Inline(field, _) => format!("tls_server_config.{field}"),
    }
}

/// The reader's own errors quote lines, of a key too.
fn lacks(pem: &Pem, what: &str) -> Usage {
    Usage(format!("{} holds no {what}", name_of(pem)))
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = bytes(pem)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| lacks(pem, "certificate in PEM format").into())
}

fn client_verifier(
    form: &TlsForm,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>> {
    let mut authorities = RootCertStore::empty();
    if let Some(pem) = &form.client_ca {
        for certificate in certificates(pem)? {
            let added = authorities.add(certificate);
            added.map_err(|_| lacks(pem, "readable certificate of an authority"))?;
        }
    }
    let is_mandatory = match form.client_auth {
        ClientAuth::NotAsked => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuth::Asked | ClientAuth::Any => {
            return Ok(Arc::new(AnyCertificate {
                is_mandatory: form.client_auth == ClientAuth::Any,
                hints: authorities.subjects(),
                algorithms: provider.signature_verification_algorithms,
            }));
        }
        ClientAuth::VerifiedIfGiven => false,
        ClientAuth::Verified => true,
    };
    let provider = Arc::clone(provider);
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider);
    let builder = match is_mandatory {
        true => builder,
        false => builder.allow_unauthenticated(),
    };
    builder
        .build()
        .context("client_ca_file cannot be used to verify clients")
}

/// Takes the certificate of whoever has the key to it.
#[derive(Debug)]
struct AnyCertificate {
    is_mandatory: bool,
    /// Authorities whose certificates are welcome, to help clients choose.
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
