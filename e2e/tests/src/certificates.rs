//! Certificates and kubeconfigs of one control plane. They live in its folder and end with it.

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Who calls: the file name, and what the certificate says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    file: &'static str,
    user: &'static str,
    group: Option<&'static str>,
}

/// May do everything. Tests and Tutti are this.
pub(crate) const ADMIN: Identity = Identity { file: "admin", user: "admin", group: Some("system:masters") };
/// The controller manager, with the rights that Kubernetes gives it.
pub(crate) const CONTROLLER_MANAGER: Identity =
    Identity { file: "controller-manager", user: "system:kube-controller-manager", group: None };
/// The API server as a client of etcd.
pub(crate) const ETCD_CLIENT: Identity =
    Identity { file: "etcd-client", user: "kube-apiserver", group: None };
const IDENTITIES: [Identity; 3] = [ADMIN, CONTROLLER_MANAGER, ETCD_CLIENT];

/// The files, by name.
#[derive(Debug)]
pub(crate) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes an authority, one server certificate for the loopback address, and one client certificate each.
    pub(crate) fn generate(folder: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let this = Self { folder };
        let authority = authority()?;
        this.write("ca.crt", &authority.pem())?;

        let mut server = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.distinguished_name.push(DnType::CommonName, "controlplane");
        this.sign("server", &server, &authority)?;

        for identity in IDENTITIES {
            let mut client = CertificateParams::new([])?;
            client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            client.distinguished_name.push(DnType::CommonName, identity.user);
            if let Some(group) = identity.group {
                client.distinguished_name.push(DnType::OrganizationName, group);
            }
            this.sign(identity.file, &client, &authority)?;
        }
        let service_accounts = KeyPair::generate()?;
        this.write("service-accounts.key", &service_accounts.serialize_pem())?;
        this.write("service-accounts.pub", &service_accounts.public_key_pem())?;
        Ok(this)
    }

    pub(crate) fn authority(&self) -> String {
        self.path("ca.crt")
    }

    pub(crate) fn server(&self) -> (String, String) {
        (self.path("server.crt"), self.path("server.key"))
    }

    pub(crate) fn client(&self, identity: Identity) -> (String, String) {
        let path = |end| self.path(&format!("{}.{end}", identity.file));
        (path("crt"), path("key"))
    }

    /// The private key that signs tokens of service accounts, and the public key that checks them.
    pub(crate) fn service_accounts(&self) -> (String, String) {
        (self.path("service-accounts.key"), self.path("service-accounts.pub"))
    }

    /// Writes a kubeconfig for somebody and says where it is.
    pub(crate) fn kubeconfig(&self, identity: Identity, url: &str) -> anyhow::Result<PathBuf> {
        let (certificate, key) = self.client(identity);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": {"server": url, "certificate-authority": self.authority()}}],
            "users": [{"name": "e2e", "user": {"client-certificate": certificate, "client-key": key}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        });
        let name = format!("{}.kubeconfig", identity.file);
        self.write(&name, &config.to_string())?;
        Ok(self.folder.join(name))
    }

    fn sign(
        &self,
        name: &str,
        params: &CertificateParams,
        authority: &CertifiedIssuer<'_, KeyPair>,
    ) -> anyhow::Result<()> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, authority)?;
        self.write(&format!("{name}.crt"), &certificate.pem())?;
        self.write(&format!("{name}.key"), &key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self, name: &str) -> String {
        shown(&self.folder.join(name))
    }
}

fn authority() -> anyhow::Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::new([])?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name.push(DnType::CommonName, "e2e-authority");
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// A path as an argument of a command.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
