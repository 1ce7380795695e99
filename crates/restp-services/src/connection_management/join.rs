//! Joining a further path to an association (ResTP §3.1.12, OP-23): a token finds the association, two keyed hashes
//! over fresh random values prove that both ends know its keys. Inputs as in RFC 6824 §3.2, with SHA-1 (bit H of
//! MP_CAPABLE) or SHA-256 (bit G).

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The 64-bit key one end chose in MP_CAPABLE.
pub type Key = [u8; 8];
/// A fresh value of one end in MP_JOIN, so that an old exchange cannot be replayed.
pub type Nonce = [u8; 4];

/// Hash that both ends of an association use for joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JoinHash {
    /// As RFC 6824 defines it; the only one every peer knows.
    Sha1,
    /// Code of this project, preferred when the peer offers it.
    #[default]
    Sha256,
}

/// The two keys of an association, seen from one end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Ours.
    pub local: Key,
    /// The peer's.
    pub remote: Key,
    /// What they are hashed with.
    pub hash: JoinHash,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({:?})", self.hash) // no secret in logs
    }
}

impl Keys {
    /// The whole hash that `prover`'s end sends: it proves knowledge of both keys for this exchange. 20 bytes travel,
    /// or their first 8.
    fn proof(&self, of_local: bool, local: Nonce, remote: Nonce) -> [u8; 20] {
        let (first, second) = if of_local {
            ((self.local, local), (self.remote, remote))
        } else {
            ((self.remote, remote), (self.local, local))
        };
        let key = [first.0, second.0].concat();
        let message = [first.1, second.1].concat();
        let mut proof = [0; 20];
        match self.hash {
            JoinHash::Sha1 => proof.copy_from_slice(&code::<Hmac<Sha1>>(&key, &message)[..20]),
            JoinHash::Sha256 => proof.copy_from_slice(&code::<Hmac<Sha256>>(&key, &message)[..20]),
        }
        proof
    }

    /// What we send to prove ourselves, after the nonces `local` and `remote`.
    pub fn prove(&self, local: Nonce, remote: Nonce) -> [u8; 20] {
        self.proof(true, local, remote)
    }

    /// Does `claimed`, all of the peer's proof or its first bytes, prove the peer? Takes the same time wherever they
    /// differ.
    pub fn verify(&self, claimed: &[u8], local: Nonce, remote: Nonce) -> bool {
        let expected = self.proof(false, local, remote);
        let differing = expected.iter().zip(claimed).fold(0, |sum, (a, b)| sum | (a ^ b));
        (8..=expected.len()).contains(&claimed.len()) && differing == 0
    }

    /// What vouches for an address that we announce: the last 64 bits of the code over `message`, which is the address's
    /// identifier, the address, and its port or two zeros (RFC 8684 §3.4.1).
    pub fn prove_address(&self, message: &[u8]) -> [u8; 8] {
        address_proof(self.local, self.remote, message)
    }
    /// Is `claimed` the peer's for this `message`? Takes the same time wherever they differ.
    pub fn verify_address(&self, claimed: [u8; 8], message: &[u8]) -> bool {
        let expected = address_proof(self.remote, self.local, message);
        let differing = expected.iter().zip(&claimed).fold(0, |sum, (a, b)| sum | (a ^ b));
        differing == 0
    }

    /// The token by which a join names the peer's association.
    pub fn peer_token(&self) -> [u8; 4] {
        token(self.hash, self.remote)
    }
    /// The token by which a join names ours.
    pub fn own_token(&self) -> [u8; 4] {
        token(self.hash, self.local)
    }
}

/// Announced addresses are version 1's alone, so their hash is always SHA-256.
fn address_proof(announcer: Key, peer: Key, message: &[u8]) -> [u8; 8] {
    let code = code::<Hmac<Sha256>>(&[announcer, peer].concat(), message);
    code.last_chunk().copied().unwrap_or_default()
}

/// Most significant 32 bits of the key's hash (RFC 6824 §3.2).
fn token(hash: JoinHash, key: Key) -> [u8; 4] {
    let mut token = [0; 4];
    match hash {
        JoinHash::Sha1 => token.copy_from_slice(&Sha1::digest(key)[..4]),
        JoinHash::Sha256 => token.copy_from_slice(&Sha256::digest(key)[..4]),
    }
    token
}

/// First connection-level number of the end that chose `key`, less one (RFC 6824 §3.1: the low end of the key's SHA-1,
/// whatever hash joins use, because data beside the SYN is numbered before that is known).
pub fn first_number(key: Key) -> u32 {
    let digest = Sha1::digest(key);
    u32::from_be_bytes([digest[16], digest[17], digest[18], digest[19]])
}

/// First connection-level number of the end that chose `key`, less one, where numbers have 64 bits (RFC 8684 §3.1: the low
/// end of the key's SHA-256).
pub fn first_long_number(key: Key) -> u64 {
    let digest = Sha256::digest(key);
    digest[24..]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn code<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else {
        return vec![0; 32]; // unreachable: HMAC takes keys of every length
    };
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = [1, 2, 3, 4, 5, 6, 7, 8];
    const B: Key = [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
    const RANDOM_A: Nonce = [0xAA, 0xBB, 0xCC, 0xDD];
    const RANDOM_B: Nonce = [0x11, 0x22, 0x33, 0x44];

    fn ends(hash: JoinHash) -> (Keys, Keys) {
        let a = Keys {
            local: A,
            remote: B,
            hash,
        };
        let b = Keys {
            local: B,
            remote: A,
            hash,
        };
        (a, b)
    }

    /// ResTP §23.
    #[test]
    fn tokens_and_codes_of_the_specification() {
        let (a, b) = ends(JoinHash::Sha1);
        assert_eq!(a.own_token(), [0xDD, 0x57, 0x83, 0xBC]);
        assert_eq!(a.peer_token(), [0x33, 0x83, 0xD9, 0x18]);
        let proof_a = a.prove(RANDOM_A, RANDOM_B);
        let hex: String = proof_a.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(hex, "3078FFD36D649A00BF561DB78FC17682317B5450");
        let proof_b = b.prove(RANDOM_B, RANDOM_A);
        assert_eq!(proof_b[..8], [0x16, 0x28, 0xA8, 0xED, 0x90, 0x03, 0xB9, 0xAC]);
    }

    /// RFC 8684 §3.1 and §3.2, with numbers of Python's hashlib and hmac.
    #[test]
    fn tokens_numbers_and_codes_of_version_1() {
        let (a, b) = ends(JoinHash::Sha256);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            (hex(&a.own_token()), hex(&b.own_token())),
            ("66840dda".into(), "ccad45ac".into())
        );
        assert_eq!(
            (first_long_number(A), first_long_number(B)),
            (0xf5a101d3d29d6f72, 0x535beea38e087c8e)
        );
        assert_eq!(
            hex(&a.prove(RANDOM_A, RANDOM_B)),
            "c2986b9ffe33dedc10955fc5c9c31544e3ac05c0"
        );
        assert_eq!(hex(&b.prove(RANDOM_B, RANDOM_A)[..8]), "72bea43c69c0c206");
    }

    /// RFC 8684 §3.4.1, with numbers of Python's hmac: 10.0.1.2 as address 5, without a port and at port 8080.
    #[test]
    fn codes_of_announced_addresses() {
        let (a, b) = ends(JoinHash::Sha256);
        let message = [5, 10, 0, 1, 2, 0, 0];
        let with_port = [5, 10, 0, 1, 2, 0x1f, 0x90];
        let v6 = [&[6, 0x20, 0x01, 0x0d, 0xb8][..], &[0; 11], &[1, 0, 0]].concat();
        let proof = a.prove_address(&message);
        assert_eq!(proof, 0x5bc9_f07a_52e1_99bd_u64.to_be_bytes());
        assert_eq!(
            a.prove_address(&with_port),
            0x8d46_771c_00cb_971e_u64.to_be_bytes()
        );
        assert_eq!(a.prove_address(&v6), 0x99a8_b57f_8aab_5018_u64.to_be_bytes());
        assert!(b.verify_address(proof, &message));
        assert!(!b.verify_address(proof, &with_port));
        assert!(!a.verify_address(proof, &message), "reflected");
        let mut forged = proof;
        forged[7] ^= 1;
        assert!(!b.verify_address(forged, &message));
    }

    #[test]
    fn each_end_verifies_the_other_and_nobody_else() {
        for hash in [JoinHash::Sha1, JoinHash::Sha256] {
            let (a, b) = ends(hash);
            let (proof_a, proof_b) = (a.prove(RANDOM_A, RANDOM_B), b.prove(RANDOM_B, RANDOM_A));
            assert!(b.verify(&proof_a, RANDOM_B, RANDOM_A) && a.verify(&proof_b[..8], RANDOM_A, RANDOM_B));
            assert!(!b.verify(&proof_b, RANDOM_B, RANDOM_A), "a reflected proof");
            assert!(!b.verify(&proof_a, [0; 4], RANDOM_A), "a replayed proof");
            assert!(!b.verify(&proof_a[..7], RANDOM_B, RANDOM_A), "too short");
            let mut wrong = proof_a;
            wrong[19] ^= 1;
            assert!(!b.verify(&wrong, RANDOM_B, RANDOM_A));
            assert_eq!(a.own_token(), b.peer_token());
            assert_ne!(first_number(A), first_number(B));
        }
    }

    #[test]
    fn keys_are_not_printed() {
        assert_eq!(format!("{:?}", ends(JoinHash::Sha256).0), "Keys(Sha256)");
    }
}
