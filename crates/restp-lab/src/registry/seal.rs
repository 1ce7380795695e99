//! ResTP with the seal of real networks under it (`docs/protocol/sealed.md`): what it costs is bytes, never a round trip.

use super::Ends;
use crate::one_stream::OneStream;
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_proto::endpoint::Endpoint;
use restp_proto::wire::bare_request;
use restp_seal::{SealConfig, Sealed, SecretKey};

/// Who opens and who serves: chance of the client and of the server begins with these.
const CLIENT: u8 = b'c';
const SERVER: u8 = b's';

/// Both machines sealed. The client knows the server's key; if they `met` before, it has its token too.
pub(super) fn seal(
    client: OneStream<Endpoint>,
    server: OneStream<Endpoint>,
    path: PathAddress,
    met: bool,
) -> Ends {
    let [mut client, mut server] = [(client, CLIENT), (server, SERVER)].map(|(engine, who)| {
        let secret = SecretKey::from_chance([who; 32]);
        Box::new(Sealed::new(
            engine,
            SealConfig::new(secret, [!who; 32], bare_request),
        ))
    });
    client.expect(path.remote, server.public_key());
    if met {
        let token = server.token_for(Time::ZERO, path.local, client.public_key());
        client.keep_token(server.public_key(), token);
    }
    Ends { client, server }
}
