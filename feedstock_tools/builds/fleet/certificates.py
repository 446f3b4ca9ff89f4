"""The certificates of a fleet: an authority of its own, and one for the scheduler, each client and each host.

Dask asks of a peer that the fleet's authority has signed its certificate, and nothing else: whoever has one may do what
a client may (SECURITY.md). They are valid for a few months, since a fleet is rented.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.changes import replacing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate
    from distributed import Security

Role = Literal["hub", "host", "client"]
AUTHORITY, AUTHORITY_KEY = "authority.crt", "authority.key"
CERTIFICATE, KEY = "own.crt", "own.key"
_VALID, _RENEWED_BEFORE = timedelta(days=180), timedelta(days=30)
#: Clocks of rented machines may be slow.
_BEFORE = timedelta(hours=1)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def is_name(name: object) -> bool:
    """Whether a value can be the name of a fleet or a host, in paths and certificates too."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def refuse_bad_name(name: str) -> None:
    """Refuse the name of a fleet or a host that would not do in paths and certificates.

    Raises:
        InputError: it has other characters than letters, digits, dots, hyphens and underscores, or too many.
    """
    if not is_name(name):
        hint = "Use up to 63 letters, digits, dots, hyphens and underscores, beginning with a letter or digit."
        raise InputError(f"{name!r} cannot be the name of a fleet or a host", hint=hint)


def make_authority(folder: Path, fleet: str) -> None:
    """Make the authority of a fleet in its private folder."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(fleet, "authority")
    usage = {use: use in ("key_cert_sign", "crl_sign") for use in _USES}
    certificate = (
        _builder(name, name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(folder / AUTHORITY_KEY, _pem_of_key(key))
    write_private(folder / AUTHORITY, _pem(certificate))


def issue(authority: Path, folder: Path, role: Role, name: str) -> None:
    """Put a certificate and its key into a folder, with the authority's certificate.

    Args:
        authority: the private folder of the fleet.
        name: of the host; of the hub and the client any.

    Raises:
        InputError: the name cannot be one, or the authority's files are damaged.
        WorkError: a file cannot be read or written.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    refuse_bad_name(name)
    signer, signer_key = _authority(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    uses = [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    if role != "client":  # the scheduler and the workers of Dask connect to each other
        uses.append(x509.oid.ExtendedKeyUsageOID.SERVER_AUTH)
    usage = {each: each == "digital_signature" for each in _USES}
    certificate = (
        _builder(_name(name, role), signer.subject)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key()), critical=False)
        .sign(signer_key, hashes.SHA256())
    )
    write_private(folder / KEY, _pem_of_key(key))
    write_private(folder / CERTIFICATE, _pem(certificate))
    write_private(folder / AUTHORITY, (authority / AUTHORITY).read_bytes())


def sign_own(folder: Path, name: str) -> None:
    """Put a key and a client's certificate that it has signed itself into a folder: who invites trusts that alone."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key, subject = ec.generate_private_key(ec.SECP256R1()), _name(name, "client")
    usage = {each: each == "digital_signature" for each in _USES}
    certificate = (
        _builder(subject, subject)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(folder / KEY, _pem_of_key(key))
    write_private(folder / CERTIFICATE, _pem(certificate))


def client_certificate(path: Path) -> bytes:
    """The certificate in a file, if it is a client's and can sign no other.

    Raises:
        InputError: it is missing, or another one.
    """
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        signs = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (OSError, ValueError, x509.ExtensionNotFound) as error:
        raise InputError(f"the certificate cannot be read: {error}", path=path) from error
    if signs or list(uses) != [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]:
        raise InputError("it is no certificate of a client", path=path, hint="`feedstock-tools fleet join` makes one.")
    return _pem(certificate)


def is_valid_for_long(folder: Path) -> bool:
    """Whether a folder has a certificate that is valid for some weeks more."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate((folder / CERTIFICATE).read_bytes())
    except (OSError, ValueError):
        return False
    return certificate.not_valid_after_utc > datetime.now(UTC) + _RENEWED_BEFORE


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, in a folder that only its owner may enter.

    Raises:
        WorkError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.chmod(0o700)
    except OSError as error:
        raise WorkError(f"cannot write the files of a fleet: {error.strerror or error}", path=path.parent) from error
    with replacing(path) as part, os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as stream:
        stream.write(content)


def security(folder: Path, role: Role) -> Security:
    """TLS 1.3 for Dask, with the certificate in a folder.

    Raises:
        InputError: a file is missing.
    """
    import ssl

    from distributed import Security

    missing = [name for name in (AUTHORITY, CERTIFICATE, KEY) if not (folder / name).is_file()]
    if missing:
        hint = "`feedstock-tools fleet new` makes the certificates of a fleet."
        raise InputError(f"the certificates cannot be read: {', '.join(missing)} is missing", path=folder, hint=hint)
    name = {"hub": "scheduler", "host": "worker", "client": "client"}[role]
    own = {f"tls_{name}_cert": str(folder / CERTIFICATE), f"tls_{name}_key": str(folder / KEY)}
    return Security(
        require_encryption=True, tls_ca_file=str(folder / AUTHORITY), tls_min_version=ssl.TLSVersion.TLSv1_3, **own
    )


_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _authority(folder: Path) -> tuple[Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certificate = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
        key = load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
    except (OSError, ValueError) as error:
        raise InputError(f"the authority of the fleet cannot be read: {error}", path=folder) from error
    if not isinstance(key, EllipticCurvePrivateKey):
        raise InputError("the key of the fleet's authority is of another kind", path=folder / AUTHORITY_KEY)
    return certificate, key


def _name(name: str, role: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [(NameOID.COMMON_NAME, name), (NameOID.ORGANIZATIONAL_UNIT_NAME, role)]
    return x509.Name([x509.NameAttribute(key, value) for key, value in parts])


def _builder(subject: Any, issuer: Any) -> Any:
    from cryptography import x509

    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    return (
        builder.serial_number(x509.random_serial_number()).not_valid_before(now - _BEFORE).not_valid_after(now + _VALID)
    )


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _pem_of_key(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
