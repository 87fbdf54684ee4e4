//! What the server proves itself with: a certificate, its key, and the authority that signed it.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::time::Duration;

/// API servers whose clocks are a little behind must accept a certificate of this minute.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// Why an identity could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Keys or certificates could not be generated.
    #[error("cannot generate certificates: {0}")]
    Generate(#[from] rcgen::Error),
    /// The clock of this machine is outside of what certificates can express.
    #[error("the clock of this machine cannot be used for certificates: {0}")]
    Clock(#[from] jiff::Error),
    /// What was stored is not what was generated.
    #[error("{what} is not PEM: {source}")]
    Pem {
        /// Which part.
        what: &'static str,
        /// What is wrong with it.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not belong together, or are of no use.
    #[error("the certificate cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
}

/// A certificate for a server, all of it as PEM. Its authority signed nothing else, and nobody has its key: an
/// identity is replaced as a whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// What clients verify the certificate with.
    pub authority: String,
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// When it is of no use any more.
    pub expires: Timestamp,
    /// Names and addresses that it is for.
    pub names: Vec<String>,
}

// Written by hand because a derived one would print the private key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("expires", &self.expires)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// A new one.
    pub fn generate(names: &[String], now: Timestamp, valid_for: Duration) -> Result<Self, IdentityError> {
        let from = now.checked_sub(BACKDATED)?;
        let expires = now.checked_add(valid_for)?;
        // Certificates know whole seconds, and nothing that matters here is before 1970.
        let moment = |time: Timestamp| {
            date_time_ymd(1970, 1, 1) + Duration::from_secs(time.as_second().unsigned_abs())
        };
        let params = |names: Vec<String>| -> Result<CertificateParams, rcgen::Error> {
            let mut params = CertificateParams::new(names)?;
            params.not_before = moment(from);
            params.not_after = moment(expires);
            params.distinguished_name = DistinguishedName::new();
            params.use_authority_key_identifier_extension = true;
            Ok(params)
        };
        let mut authority = params(Vec::new())?;
        // Names of authorities differ, so that in a bundle of two it is clear which one signed what.
        let name = format!("tutti-webhooks-{}", uuid::Uuid::new_v4().simple());
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let mut server = params(names.to_vec())?;
        server.distinguished_name.push(DnType::CommonName, "tutti-webhooks");
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &authority)?;
        Ok(Self {
            authority: authority.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            expires,
            names: names.to_vec(),
        })
    }

    /// As rustls takes it. An error if key and certificate do not belong together.
    pub fn certified(&self) -> Result<CertifiedKey, IdentityError> {
        let pem = |what| move |source| IdentityError::Pem { what, source };
        let certificate =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(pem("the certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(pem("the key"))?;
        Ok(CertifiedKey::from_der(vec![certificate], key, &default_provider())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn identity() -> Identity {
        Identity::generate(&["localhost".to_owned(), "127.0.0.1".to_owned()], Timestamp::now(), DAY).unwrap()
    }

    #[test]
    fn no_two_identities_share_a_key_and_none_is_printed() {
        let (one, other) = (identity(), identity());
        assert_ne!(one.key, other.key);
        assert_ne!(one.authority, other.authority);
        assert!(one.key.contains("PRIVATE KEY") && !format!("{one:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn a_certificate_with_the_key_of_another_or_with_none_is_no_identity() {
        let mut mixed = identity();
        assert!(mixed.certified().is_ok());
        mixed.key = identity().key;
        assert!(matches!(mixed.certified(), Err(IdentityError::Rustls(_))));
        mixed.key = "not PEM".to_owned();
        assert!(mixed.certified().unwrap_err().to_string().starts_with("the key is not PEM"));
    }

    #[test]
    fn a_clock_outside_of_the_calendar_is_an_error_and_no_panic() {
        for now in [Timestamp::MIN, Timestamp::MAX] {
            assert!(matches!(Identity::generate(&[], now, DAY), Err(IdentityError::Clock(_))), "{now}");
        }
    }
}
