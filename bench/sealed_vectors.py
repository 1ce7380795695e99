"""Writes the handshakes of vectors/sealed.json: Noise (revision 34) and docs/protocol/sealed.md, out of the values in them.

An implementation of its own over the primitives of pyca/cryptography: python3 bench/sealed_vectors.py [--check]
"""

import hashlib
import hmac
import json
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

FILE = Path(__file__).resolve().parent.parent / "vectors" / "sealed.json"
HELLO = {"IK": b"\x80", "IX": b"\x81", "resumed": b"\x85"}
NAME = {"IK": "IK", "IX": "IX", "resumed": "NNpsk0"}


class Key:
    def __init__(self, secret: str):
        self.secret = X25519PrivateKey.from_private_bytes(bytes.fromhex(secret))
        self.public = self.secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def shared(self, other: "Key") -> bytes:
        return self.secret.exchange(X25519PublicKey.from_public_bytes(other.public))


def hkdf(chaining: bytes, material: bytes, outputs: int) -> list[bytes]:
    """Noise §4.3."""
    secret = hmac.digest(chaining, material, "sha256")
    out, last = [], b""
    for number in range(1, outputs + 1):
        last = hmac.digest(secret, last + bytes([number]), "sha256")
        out.append(last)
    return out


def expand(secret: bytes, label: str, context: bytes, length: int) -> bytes:
    """E of sealed.md: HKDF-Expand (RFC 5869 §2.3)."""
    out, last, number = b"", b"", 1
    while len(out) < length:
        last = hmac.digest(secret, last + b"restp seal " + label.encode() + context + bytes([number]), "sha256")
        out, number = out + last, number + 1
    return out[:length]


class Symmetric:
    """Noise §5.2."""

    def __init__(self, pattern: str, prologue: bytes):
        name = f"Noise_{pattern}_25519_ChaChaPoly_SHA256".encode()
        self.hash = name.ljust(32, b"\0") if len(name) <= 32 else hashlib.sha256(name).digest()
        self.chaining, self.key, self.nonce = self.hash, None, 0
        self.mix_hash(prologue)

    def mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.sha256(self.hash + data).digest()

    def mix_key(self, material: bytes) -> None:
        self.chaining, self.key = hkdf(self.chaining, material, 2)
        self.nonce = 0

    def mix_key_and_hash(self, material: bytes) -> None:
        self.chaining, mixed, self.key = hkdf(self.chaining, material, 3)
        self.mix_hash(mixed)
        self.nonce = 0

    def encrypt(self, plain: bytes) -> bytes:
        out = plain
        if self.key is not None:
            nonce = bytes(4) + self.nonce.to_bytes(8, "little")
            out = ChaCha20Poly1305(self.key).encrypt(nonce, plain, self.hash)
            self.nonce += 1
        self.mix_hash(out)
        return out

    def split(self) -> list[bytes]:
        return hkdf(self.chaining, b"", 2)


def handshake(vector: dict[str, str]) -> tuple[bytes, bytes]:
    """The first two datagrams."""
    pattern, raw = vector["pattern"], lambda name: bytes.fromhex(vector[name])
    client, server = Key(vector["client_secret"]), Key(vector["server_secret"])
    once, answer_once = Key(vector["client_one_time_secret"]), Key(vector["server_one_time_secret"])
    resumed = pattern == "resumed"

    noise = Symmetric(NAME[pattern], b"ResTP seal 1" + HELLO[pattern] + raw("client_id"))
    if pattern == "IK":
        noise.mix_hash(server.public)
    if resumed:
        noise.mix_key_and_hash(raw("ticket_secret"))
    message = once.public
    noise.mix_hash(once.public)
    if resumed:
        noise.mix_key(once.public)  # with a pre-shared key, e is mixed in (Noise §9.2)
    if pattern == "IK":
        noise.mix_key(once.shared(server))
        message += noise.encrypt(client.public)
        noise.mix_key(client.shared(server))
    if pattern == "IX":
        message += noise.encrypt(client.public)
    flags = bytes([1])
    early = b"" if pattern == "IX" else raw("early_secret")
    epoch = raw("epoch") if resumed else bytes(8)
    message += noise.encrypt(flags + epoch + early + raw("pdu"))
    token = raw("token") if resumed else bytes(16)
    ticket = raw("ticket") if resumed else b""
    hello = HELLO[pattern] + raw("client_id") + token + ticket + message

    message = answer_once.public
    noise.mix_hash(answer_once.public)
    if resumed:
        noise.mix_key(answer_once.public)
    noise.mix_key(answer_once.shared(once))
    if pattern != "resumed":
        noise.mix_key(answer_once.shared(client))  # se
    if pattern == "IX":
        message += noise.encrypt(server.public)
        noise.mix_key(server.shared(once))  # es
    parts = ["server_id", "reset", "epoch", "token", "next_ticket", "next_secret"]
    welcome = bytes([3 if resumed else 1, 1])  # early data is taken; AES
    message += noise.encrypt(welcome + b"".join(map(raw, parts)))
    to_server, to_client = noise.split()
    vector["to_server"], vector["to_client"] = to_server.hex(), to_client.hex()

    header = b"\xc0" + raw("client_id") + bytes(6)
    generation = expand(to_client, "path", bytes([0]), 32)
    key, iv = expand(generation, "key", bytes([1]), 16), expand(generation, "iv", bytes([1]), 12)
    packet = header + AESGCM(key).encrypt(iv, raw("answer_pdu"), header)
    return hello, b"\x82" + raw("client_id") + message + packet


def main() -> int:
    vectors = json.loads(FILE.read_text())
    wrong = 0
    for vector in vectors["handshakes"]:
        hello, answer = (datagram.hex() for datagram in handshake(vector))
        wrong += (hello, answer) != (vector["hello"], vector["answer"])
        if "--check" in sys.argv:
            print(vector["pattern"], hello == vector["hello"], answer == vector["answer"])
        vector["hello"], vector["answer"] = hello, answer
    if "--check" in sys.argv:
        return int(wrong > 0)
    FILE.write_text(json.dumps(vectors, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
