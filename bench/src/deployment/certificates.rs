//! Certificates for servers on the loopback interface.

use std::fs;
use std::path::Path;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Writes into `folder` an authority (`ca.pem`), and a server and a client that it vouches for: of each its
/// certificate (`server.crt`), its key (`server.key`), and both in one file (`server.pem`).
pub fn write(folder: &Path) -> Result<()> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority
        .distinguished_name
        .push(DnType::CommonName, "test authority");
    let key = KeyPair::generate()?;
    let own = authority.self_signed(&key)?;
    fs::write(folder.join("ca.pem"), own.pem())?;
    let issuer = Issuer::new(authority, key);
    for (name, host) in [("server", "127.0.0.1"), ("client", "client")] {
        let mut params = CertificateParams::new(vec![host.into()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let key = key.serialize_pem();
        fs::write(folder.join(format!("{name}.crt")), &certificate)?;
        fs::write(folder.join(format!("{name}.key")), &key)?;
        let both = format!("{certificate}{key}");
        fs::write(folder.join(format!("{name}.pem")), both)?;
    }
    Ok(())
}
