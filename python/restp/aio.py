"""The endpoint for asyncio.

>>> async with await restp.listen("127.0.0.1:7000") as endpoint:
...     async for connection in endpoint:
...         async for message in connection:
...             await connection.send(message)
...         await connection.close()

>>> connection = await restp.connect("127.0.0.1:7000")
>>> await connection.send(b"hello")
>>> await connection.recv()
"""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from types import TracebackType
from typing import Generic, Literal, TypeVar

from restp import _restp

#: The port of a service where nothing else is said.
PORT = 7

Addresses = str | Sequence[str]

Item = TypeVar("Item")


class PlainWarning(UserWarning):
    """An endpoint was opened without a seal."""


class FirstMeetingWarning(UserWarning):
    """A host was met for the first time; its key is remembered."""


class _Inlet(Generic[Item]):
    """What comes one after the other. A wait that is cancelled loses nothing: the next one takes over what it began."""

    def __init__(self, begin: Callable[[], Awaitable[Item]]) -> None:
        self._begin = begin
        self._pending: asyncio.Future[Item] | None = None

    async def next(self) -> Item:
        while True:
            if self._pending is None:
                self._pending = asyncio.ensure_future(self._begin())
                # Its failure may come when nobody waits; whoever waits next is told.
                self._pending.add_done_callback(lambda done: done.cancelled() or done.exception())
            pending = self._pending
            await asyncio.wait([pending])
            if self._pending is pending:  # and was not taken by another task in the meantime
                self._pending = None
                return pending.result()

    def __del__(self) -> None:
        if self._pending is not None:
            with suppress(RuntimeError):  # its loop may be closed
                self._pending.cancel()



class Connection:
    """One connection. One task may send while another receives.

    With the framing ``fixed``, which is the default here, one ``send`` is one ``recv`` and a message fits into one
    segment; with ``set={"framing": "coalesce"}`` it is a stream of bytes. A connection that nobody holds any more is
    broken off, unless ``finish`` was called.
    """

    def __init__(self, inner: _restp.Connection) -> None:
        self._inner = inner
        self._received = _Inlet(inner.recv)
        self._path_events = _Inlet(inner.path_event)
        self._streams = _Inlet(inner.accept_stream)

    async def send(self, data: bytes) -> None:
        """Send one message, or the next bytes of a stream, and wait while there is no room.

        Raises ``ValueError`` for a message that is too long, and ``ConnectionLost`` when it is too late.
        """
        await self._inner.send(data)

    async def send_on(self, data: bytes, path: tuple[str, str]) -> None:
        """The same, on the path between a local and a remote address, as ``paths`` names them.

        While that path does not answer another carries the data. Raises ``ValueError`` also when no path can begin at the
        local address.
        """
        await self._inner.send_on(data, *path)

    def paths(self) -> list[tuple[str, str]]:
        """The local and the remote address of each path; empty where the connection can have one only."""
        return self._inner.paths()

    async def recv(self) -> bytes | None:
        """The next message, or bytes of a stream; None once the peer has finished and everything was read.

        A wait that is cancelled, or timed out, loses nothing. Raises ``ConnectionLost`` when the connection ended otherwise.
        """
        return await self._received.next()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if (data := await self.recv()) is None:
            raise StopAsyncIteration
        return data

    async def open_stream(self) -> "Stream":
        """Open a stream of its own within the connection, and wait while the peer takes no more.

        Raises ``ValueError`` where the connection carries none: that takes ``set={"framing": "streams", "ordering":
        "unordered"}``. Raises ``ConnectionLost`` when it is finished or over.
        """
        return Stream(await self._inner.open_stream())

    async def accept_stream(self) -> "Stream | None":
        """The next stream that the peer opens; None when it has finished, or the connection is over.

        A wait that is cancelled, or timed out, loses none. Raises ``ValueError`` where the connection carries none.
        """
        inner = await self._streams.next()
        return None if inner is None else Stream(inner)

    def reconfigure(self, set: Mapping[str, str]) -> Literal["nothing", "local", "agreed"]:
        """Change services while the connection runs, on top of those in force.

        Returns ``local`` when this end alone had to change, ``agreed`` when the peer was asked, which takes a round trip or
        two, and ``nothing`` when they are as asked. Raises ``ValueError`` for what the set-up has settled, is not valid or the
        peer cannot follow, and ``ConnectionLost`` when the connection is over. Nothing is changed then.
        """
        return self._inner.reconfigure(list(set.items()))

    def changes(self) -> list[tuple[str, str, str, str]]:
        """How services changed since the last call: key, from, to, and who wanted it."""
        return self._inner.changes()

    def finish(self) -> None:
        """No more sends will come. Everything sent before is delivered, then the peer reads the end."""
        self._inner.finish()

    def abort(self) -> None:
        """Break the connection off at once and tell the peer."""
        self._inner.abort()

    async def close(self) -> None:
        """Finish, drop what the peer still sends, and wait for the end: then the peer has everything.

        Raises ``ConnectionLost`` when the connection ended otherwise.
        """
        await self._inner.close()

    async def path_event(self) -> tuple[str, str, str] | None:
        """The next news of a path, where there are several: local address, remote address, and up, suspect, down or
        closed. None when the connection is over."""
        return await self._path_events.next()

    @property
    def peer_key(self) -> str | None:
        """The public key of the peer; None without a seal."""
        return self._inner.peer_key

    def stats(self) -> dict[str, float | int | None]:
        """Counters and estimates."""
        return self._inner.stats()

    async def __aenter__(self) -> "Connection":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is None:
            await self.close()
        else:
            self.abort()


class Stream:
    """One stream of a connection that carries many: bytes both ways, in order, whatever becomes of other streams.

    One task may send while another receives. A stream that nobody holds any more is broken off, unless ``finish`` was
    called: then what was sent is still delivered.
    """

    def __init__(self, inner: _restp.Stream) -> None:
        self._inner = inner
        self._received = _Inlet(inner.recv)

    @property
    def id(self) -> int:
        """Its number within the connection."""
        return self._inner.id

    async def send(self, data: bytes) -> None:
        """Send the next bytes, and wait while there is no room.

        Raises ``ConnectionLost`` when the peer reads no more, or the connection is over.
        """
        await self._inner.send(data)

    async def recv(self) -> bytes | None:
        """The next bytes; None once the peer has finished and everything was read.

        A wait that is cancelled, or timed out, loses nothing. Raises ``ConnectionLost`` when the peer has broken the stream off,
        or the connection is over.
        """
        return await self._received.next()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if (data := await self.recv()) is None:
            raise StopAsyncIteration
        return data

    def finish(self) -> None:
        """No more sends will come. Everything sent before is delivered, then the peer reads the end."""
        self._inner.finish()

    def reset(self, code: int = 0) -> None:
        """Break off the direction to the peer, and tell it the code."""
        self._inner.reset(code)

    def stop(self, code: int = 0) -> None:
        """Read no more: the peer is asked to break its direction off."""
        self._inner.stop(code)


class Endpoint:
    """A host that accepts connections: ``async for connection in endpoint``."""

    def __init__(self, inner: _restp.Endpoint) -> None:
        self._inner = inner
        self._accepted = _Inlet(inner.accept)

    @property
    def addresses(self) -> list[str]:
        """The bound addresses, with the ports the system chose."""
        return self._inner.addresses

    @property
    def key(self) -> str | None:
        """The public key that names this host; None without a seal. Whoever connects with it reaches this host only."""
        return self._inner.key

    async def accept(self) -> Connection | None:
        """The next connection that a peer opens; None once the endpoint is closed."""
        inner = await self._accepted.next()
        return None if inner is None else Connection(inner)

    def __aiter__(self) -> AsyncIterator[Connection]:
        return self

    async def __anext__(self) -> Connection:
        if (connection := await self.accept()) is None:
            raise StopAsyncIteration
        return connection

    async def close(self) -> None:
        """Take no new connections, wait until those that exist are over, and give the sockets back.

        A connection is over when both ends have closed it, or nobody holds it any more.
        """
        await self._inner.close()

    async def __aenter__(self) -> "Endpoint":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def connect(
    remote: Addresses,
    port: int = PORT,
    *,
    local: Addresses | None = None,
    profile: str = "default",
    set: Mapping[str, str] | None = None,
    key: str | None = None,
    known_hosts: str | PathLike[str] | None = None,
    trust_anybody: bool = False,
    secret: str | None = None,
    plain: bool = False,
) -> Connection:
    """Open a connection to ``remote`` (``IP:PORT``, or several of one host) and wait until it is established.

    ``port`` is the service there. ``profile`` is a preset (``restp profiles`` lists them), ``set`` what differs from
    it; several paths need one that has them, such as ``multipath``. ``secret`` is this host's key (``restp keygen``), a new
    one when absent. ``plain`` leaves the seal out, and warns of that (``PlainWarning``).

    Who may be there: with ``key`` the host with that public key. Otherwise the one that was met at that address before; the
    first one there is believed, remembered in the file ``known_hosts``, or the one that ``restp send`` uses, and told
    (``FirstMeetingWarning``). With ``trust_anybody`` whoever answers, and nothing is remembered.

    Raises ``ConnectionLost`` when nobody answers, the service is refused, or another host is there than the one meant, and
    ``ValueError`` when known hosts cannot be read.
    """
    remotes = _several(remote)
    locals_ = _several(local) if local is not None else _wildcards(remotes)
    _warn_of(plain)
    reaches = {"key": key, "known_hosts": known_hosts, "anybody": trust_anybody}
    endpoint = _restp.Endpoint(locals_, profile, _messages(set), None, secret, plain, reaches)
    connection = Connection(await endpoint.connect(remotes, port))
    for name, met, file in endpoint.met():
        said = f"{name} was met for the first time; its key {met} is remembered in {file}"
        warnings.warn(said, FirstMeetingWarning, stacklevel=2)
    return connection


async def listen(
    local: Addresses = "0.0.0.0:0",
    port: int = PORT,
    *,
    profile: str = "default",
    set: Mapping[str, str] | None = None,
    secret: str | None = None,
    plain: bool = False,
) -> Endpoint:
    """Serve ``port`` at ``local`` (``IP:PORT``, or several). Peers may use other profiles than this host's."""
    _warn_of(plain)
    return Endpoint(_restp.Endpoint(_several(local), profile, _messages(set), port, secret, plain))


def _warn_of(plain: bool) -> None:
    if plain:
        said = "without a seal anybody on the way can read and change what is sent"
        warnings.warn(said, PlainWarning, stacklevel=3)


def _several(addresses: Addresses) -> list[str]:
    return [addresses] if isinstance(addresses, str) else list(addresses)


def _wildcards(remotes: list[str]) -> list[str]:
    """Any address of the families of these, at any port."""
    families = {"[::]:0" if remote.startswith("[") else "0.0.0.0:0" for remote in remotes}
    return sorted(families)


def _messages(given: Mapping[str, str] | None) -> list[tuple[str, str]]:
    return list(({"framing": "fixed"} | dict(given or {})).items())
