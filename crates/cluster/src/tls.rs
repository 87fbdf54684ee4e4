//! The identities of one embedded cluster: a certificate authority made at start, a server certificate and
//! one administrator's client certificate. Keys live in memory and in the kubeconfig file, nowhere else.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::IpAddr;
use std::sync::Arc;

/// The user whom the client certificate names.
pub const ADMIN_USER: &str = "tutti-admin";
/// The group that Kubernetes lets do everything.
pub const ADMIN_GROUP: &str = "system:masters";

/// Names under which clients may address the server, besides loopback addresses and the address it listens on.
const SERVER_NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Certificates are made anew at every start; a year outlives any trial and stays below what strict clients
/// accept.
const VALID_HOURS: i64 = 366 * 24;
/// Clients whose clock is a little behind must accept a certificate of this minute.
const BACKDATED_HOURS: i64 = 24;

/// Why identities could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Keys or certificates could not be generated.
    #[error("cannot generate certificates: {0}")]
    Generate(#[from] rcgen::Error),
    /// rustls did not take what was generated.
    #[error("cannot set up TLS: {0}")]
    Rustls(#[from] rustls::Error),
    /// The rule "clients must show a certificate of our authority" could not be set up.
    #[error("cannot set up client verification: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// The clock of this machine is outside of what certificates can express.
    #[error("the clock of this machine cannot be used for certificates: {0}")]
    Clock(#[from] jiff::Error),
}

/// Everything that proves who is who in one cluster.
pub struct Identities {
    /// The certificate authority, as PEM; clients verify the server with it.
    pub ca_pem: String,
    /// The administrator's certificate, as PEM.
    pub client_certificate_pem: String,
    /// The administrator's private key, as PEM.
    pub client_key_pem: String,
    /// The server's side: its certificate, and the demand that clients show one of the same authority.
    pub server: Arc<ServerConfig>,
}

// Written by hand because a derived one would print the private key.
impl std::fmt::Debug for Identities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identities").field("ca_pem", &self.ca_pem).finish_non_exhaustive()
    }
}

impl Identities {
    /// Makes an authority and what it signs. The server certificate is valid for loopback and for `listen`.
    pub fn generate(listen: IpAddr, now: jiff::Timestamp) -> Result<Self, TlsError> {
        let validity = Validity::around(now)?;
        let authority = authority(&validity)?;

        let mut names: Vec<String> = SERVER_NAMES.iter().map(|&name| name.to_owned()).collect();
        names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
        if !listen.is_loopback() && !listen.is_unspecified() {
            names.push(listen.to_string());
        }
        let mut server = validity.params(names)?;
        server.distinguished_name.push(DnType::CommonName, "tutti-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server_certificate = server.signed_by(&server_key, &authority)?;

        let mut client = validity.params(Vec::new())?;
        client.distinguished_name.push(DnType::OrganizationName, ADMIN_GROUP);
        client.distinguished_name.push(DnType::CommonName, ADMIN_USER);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_key = KeyPair::generate()?;
        let client_certificate = client.signed_by(&client_key, &authority)?;

        Ok(Self {
            ca_pem: authority.pem(),
            client_certificate_pem: client_certificate.pem(),
            client_key_pem: client_key.serialize_pem(),
            server: server_config(
                authority.der().clone(),
                server_certificate.der().clone(),
                PrivateKeyDer::from(PrivatePkcs8KeyDer::from(server_key.serialize_der())),
            )?,
        })
    }
}

/// First and last day of the certificates.
struct Validity {
    from: jiff::civil::Date,
    until: jiff::civil::Date,
}

impl Validity {
    fn around(now: jiff::Timestamp) -> Result<Self, TlsError> {
        let day = |hours: i64| -> Result<jiff::civil::Date, TlsError> {
            let moment = now.checked_add(jiff::SignedDuration::from_hours(hours))?;
            Ok(moment.to_zoned(jiff::tz::TimeZone::UTC).date())
        };
        Ok(Self { from: day(-BACKDATED_HOURS)?, until: day(VALID_HOURS)? })
    }

    /// Parameters of a certificate that is valid in this time and has no name yet.
    fn params(&self, names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
        let ymd = |date: jiff::civil::Date| {
            date_time_ymd(i32::from(date.year()), date.month().unsigned_abs(), date.day().unsigned_abs())
        };
        let mut params = CertificateParams::new(names)?;
        params.not_before = ymd(self.from);
        params.not_after = ymd(self.until);
        params.distinguished_name = DistinguishedName::new();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

fn authority(validity: &Validity) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = validity.params(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "tutti-ca");
    // It signs leaves only: a stolen leaf key must not be able to act as an authority.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn server_config(
    authority: CertificateDer<'static>,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority)?;
    // No `allow_unauthenticated`: whoever has no certificate does not reach HTTP at all.
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn two_clusters_never_share_an_authority_or_a_key() {
        let now = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(500_000);
        let first = Identities::generate(IpAddr::V4(Ipv4Addr::LOCALHOST), now).unwrap();
        let second = Identities::generate(IpAddr::V4(Ipv4Addr::LOCALHOST), now).unwrap();
        assert_ne!(first.ca_pem, second.ca_pem);
        assert_ne!(first.client_key_pem, second.client_key_pem);
    }

    #[test]
    fn debug_output_has_no_private_key() {
        let identities =
            Identities::generate(IpAddr::V4(Ipv4Addr::LOCALHOST), jiff::Timestamp::now()).unwrap();
        assert!(identities.client_key_pem.contains("PRIVATE KEY"));
        assert!(!format!("{identities:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn a_clock_outside_of_the_calendar_is_an_error_and_no_panic() {
        let end = jiff::Timestamp::MAX;
        assert!(matches!(
            Identities::generate(IpAddr::V4(Ipv4Addr::LOCALHOST), end),
            Err(TlsError::Clock(_))
        ));
    }
}
