//! Who a subflow is: the exchange that opens a connection (RFC 8684 §3.1) or joins one (§3.2), beside TCP's own.

use super::options::{Capable, Multipath};
use restp_base::time::Time;
use restp_services::connection_management::{Handshake, HandshakeParameters, JoinHash, Key, Keys, Nonce};

/// How far the set-up has come.
#[derive(Clone, Debug)]
enum Stage {
    /// Our SYN offers to use several paths, with this key.
    Offers(Key),
    /// We answer such an offer, with this key.
    Answers(Key),
    /// The answer has come; the peer may not know our key yet, so we repeat both.
    Confirms,
    /// Our SYN joins.
    Joins(Nonce),
    /// We answer a join: our random value and the peer's.
    Admits(Nonce, Nonce),
    /// Our proof is out, until the peer acknowledges it.
    Proves([u8; 20], Handshake),
    /// Both ends know what this subflow is.
    Settled,
}

/// What a segment means for TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Go on.
    Take,
    /// The peer uses one path: this is a connection of its own.
    Alone,
    /// The segment breaks a rule: as if it had not come.
    Ignore,
    /// The subflow must be reset.
    Refuse,
}

/// The set-up of one subflow.
#[derive(Debug)]
pub(crate) struct SetUp {
    stage: Stage,
    keys: Option<Keys>,
    /// Identifiers of our address and of the peer's, once it is known; 0 are those that the connection was opened with.
    addresses: (u8, Option<u8>),
    backup: bool,
}

impl SetUp {
    fn new(stage: Stage, keys: Option<Keys>, addresses: (u8, Option<u8>), backup: bool) -> Self {
        SetUp {
            stage,
            keys,
            addresses,
            backup,
        }
    }
    /// The first subflow of a connection opened here.
    pub(crate) fn opens(key: Key) -> Self {
        Self::new(Stage::Offers(key), None, (0, Some(0)), false)
    }
    /// The first subflow of a connection that the peer opens.
    pub(crate) fn answers(key: Key) -> Self {
        Self::new(Stage::Answers(key), None, (0, Some(0)), false)
    }
    /// A further one, opened here.
    pub(crate) fn joins(keys: Keys, nonce: Nonce, address: u8, backup: bool) -> Self {
        Self::new(Stage::Joins(nonce), Some(keys), (address, None), backup)
    }
    /// A further one, opened by the peer with the random value `theirs`, between our address and the peer's.
    pub(crate) fn admits(keys: Keys, ours: Nonce, theirs: Nonce, addresses: (u8, u8), backup: bool) -> Self {
        let addresses = (addresses.0, Some(addresses.1));
        Self::new(Stage::Admits(ours, theirs), Some(keys), addresses, backup)
    }
    /// Identifier of the peer's address, by which it would take it back (RFC 8684 §3.4.2).
    pub(crate) fn remote_address(&self) -> Option<u8> {
        self.addresses.1
    }

    pub(crate) fn keys(&self) -> Option<Keys> {
        self.keys
    }
    /// Only to be used when no other subflow works.
    pub(crate) fn is_backup(&self) -> bool {
        self.backup
    }
    /// Data may use it, once TCP is established.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Confirms | Stage::Settled)
    }
    /// The peer is known to know both keys: joins may begin (RFC 8684 §3.1).
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.stage, Stage::Settled)
    }
    /// The option of our SYN or of our answer.
    pub(crate) fn greeting(&self) -> Option<Multipath> {
        let (address, backup) = (self.addresses.0, self.backup);
        match (&self.stage, self.keys) {
            (Stage::Offers(_), _) => Some(Multipath::Capable(Capable::default())),
            (Stage::Answers(key), _) => Some(Multipath::Capable(Capable {
                sender: Some(*key),
                ..Capable::default()
            })),
            (Stage::Joins(nonce), Some(keys)) => Some(Multipath::Join {
                backup,
                address,
                token: keys.peer_token(),
                nonce: *nonce,
            }),
            (Stage::Admits(ours, theirs), Some(keys)) => Some(Multipath::JoinAnswer {
                backup,
                address,
                proof: leading(&keys.prove(*ours, *theirs)),
                nonce: *ours,
            }),
            _ => None,
        }
    }

    /// The peer's answer to our SYN has this option.
    pub(crate) fn on_answer(
        &mut self,
        now: Time,
        option: Option<Multipath>,
        repetition: HandshakeParameters,
    ) -> Judgement {
        match (&self.stage, self.keys, option) {
            (Stage::Offers(local), _, Some(Multipath::Capable(answer))) if !answer.checksums => {
                let Some(remote) = answer.sender else {
                    return Judgement::Alone;
                };
                self.keys = Some(keys(*local, remote));
                self.stage = Stage::Confirms;
                Judgement::Take
            }
            (Stage::Offers(_), ..) => Judgement::Alone,
            (
                Stage::Joins(ours),
                Some(keys),
                Some(Multipath::JoinAnswer {
                    proof,
                    nonce,
                    address,
                    ..
                }),
            ) if keys.verify(&proof, *ours, nonce) => {
                self.addresses.1 = Some(address);
                let mut handshake = Handshake::start(now, repetition);
                let _first = handshake.take_due(); // the third segment leaves now
                self.stage = Stage::Proves(keys.prove(*ours, nonce), handshake);
                Judgement::Take
            }
            _ => Judgement::Refuse,
        }
    }

    /// The segment that completes a set-up begun by the peer has this option.
    pub(crate) fn on_third(&mut self, option: Option<Multipath>) -> Judgement {
        match (&self.stage, self.keys, option) {
            (Stage::Answers(_), _, None) => return Judgement::Alone,
            (Stage::Answers(local), _, Some(Multipath::Capable(said))) if said.receiver == Some(*local) => {
                let Some(remote) = said.sender else {
                    return Judgement::Ignore;
                };
                self.keys = Some(keys(*local, remote));
            }
            (Stage::Admits(ours, theirs), Some(keys), Some(Multipath::JoinProof(proof))) => {
                if !keys.verify(&proof, *ours, *theirs) {
                    return Judgement::Refuse;
                }
            }
            _ => return Judgement::Ignore,
        }
        self.stage = Stage::Settled;
        Judgement::Take
    }

    /// The peer has spoken on the established subflow, with a data sequence signal or without: it knows who this is.
    pub(super) fn on_heard(&mut self, signal: bool) {
        if signal || !self.confirms() {
            self.stage = Stage::Settled;
        }
    }

    /// The peer may not know our key yet.
    pub(super) fn confirms(&self) -> bool {
        matches!(self.stage, Stage::Confirms)
    }

    /// The proof to send, as long as it is not acknowledged.
    pub(super) fn proof(&self) -> Option<[u8; 20]> {
        match &self.stage {
            Stage::Proves(proof, _) => Some(*proof),
            _ => None,
        }
    }

    /// When the proof is due again.
    pub(crate) fn proof_deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Proves(_, handshake) => handshake.deadline(),
            _ => None,
        }
    }
    /// Judges that timer: is the proof due now? `None`: it has been repeated often enough.
    pub(crate) fn proof_due(&mut self, now: Time) -> Option<bool> {
        match &mut self.stage {
            Stage::Proves(_, handshake) => handshake.expire(now).then(|| handshake.take_due()),
            _ => Some(false),
        }
    }
}

fn keys(local: Key, remote: Key) -> Keys {
    Keys {
        local,
        remote,
        hash: JoinHash::Sha256,
    }
}

/// The first 64 bits of a proof.
fn leading(proof: &[u8; 20]) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *proof;
    [a, b, c, d, e, f, g, h]
}
