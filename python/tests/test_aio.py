"""Two endpoints over loopback."""

import asyncio

import pytest

import restp


def run(story):
    return asyncio.run(asyncio.wait_for(story, 60))


async def echo(endpoint):
    async for connection in endpoint:
        async for message in connection:
            await connection.send(message.upper())
        await connection.close()


def test_messages_keep_their_boundaries():
    async def story():
        endpoint = await restp.listen("127.0.0.1:0")
        serving = asyncio.create_task(echo(endpoint))
        connection = await restp.connect(endpoint.addresses, key=endpoint.key)
        assert connection.peer_key == endpoint.key is not None
        for number in range(50):
            await connection.send(b"message %d" % number)
        connection.finish()
        answers = [message async for message in connection]
        assert answers == [b"MESSAGE %d" % number for number in range(50)]
        assert connection.stats()["delivered_bytes"] == sum(map(len, answers))
        await connection.close()
        await endpoint.close()
        await serving

    run(story())


def test_an_accept_that_has_hardly_begun_ends_with_the_endpoint():
    async def story():
        for _ in range(50):
            endpoint = await restp.listen("127.0.0.1:0")
            accepting = asyncio.create_task(endpoint.accept())
            await asyncio.sleep(0)  # it has asked, and nobody may have answered yet
            await endpoint.close()
            assert await accepting is None

    run(story())


def test_leaving_the_seal_out_is_warned_of():
    async def story():
        with pytest.warns(restp.PlainWarning, match="read and change"):
            endpoint = await restp.listen("127.0.0.1:0", plain=True)
        assert endpoint.key is None
        serving = asyncio.create_task(echo(endpoint))
        with pytest.warns(restp.PlainWarning):
            connection = await restp.connect(endpoint.addresses, plain=True)
        await connection.send(b"a postcard")
        assert await connection.recv() == b"A POSTCARD"
        connection.finish()
        await connection.close()
        await endpoint.close()
        await serving

    run(story())


def test_a_stream_carries_more_than_a_segment():
    async def story():
        stream = {"framing": "coalesce"}
        async with await restp.listen("127.0.0.1:0", set=stream) as endpoint:
            async with await restp.connect(endpoint.addresses, set=stream, key=endpoint.key) as connection:
                accepted = await endpoint.accept()
                data = bytes(range(256)) * 2000
                sending = asyncio.create_task(connection.send(data))
                received = b""
                while len(received) < len(data):
                    received += await accepted.recv()
                await sending
                assert received == data
                connection.finish()
                assert await accepted.recv() is None
                await accepted.close()

    run(story())


def test_messages_go_on_a_chosen_path():
    async def story():
        endpoint = await restp.listen(["127.0.0.1:0", "127.0.0.2:0"], profile="multipath")
        serving = asyncio.create_task(echo(endpoint))
        local = ["127.0.0.3:0", "127.0.0.4:0"]
        connection = await restp.connect(endpoint.addresses, local=local, profile="multipath", key=endpoint.key)
        while len(connection.paths()) < 4:
            assert (await connection.path_event())[2] != "closed"
        for path in connection.paths():
            await connection.send_on(b"over there", path)
            assert await connection.recv() == b"OVER THERE"
        with pytest.raises(ValueError, match="no socket is bound to 127.0.0.9:9"):
            await connection.send_on(b"nowhere", ("127.0.0.9:9", endpoint.addresses[0]))
        with pytest.raises(ValueError, match='"wlan0" is no address of a path'):
            await connection.send_on(b"nowhere", ("wlan0", endpoint.addresses[0]))
        connection.finish()
        await connection.close()
        await endpoint.close()
        await serving

    run(story())


def test_no_message_and_no_connection_is_lost_to_waits_that_time_out():
    async def patient(wait):
        while True:
            try:
                return await asyncio.wait_for(wait(), 0.0005)
            except TimeoutError:
                continue

    async def story():
        endpoint = await restp.listen("127.0.0.1:0")
        accepting = asyncio.create_task(patient(endpoint.accept))
        connection = await restp.connect(endpoint.addresses, key=endpoint.key)
        accepted = await accepting

        async def talk():
            for number in range(300):
                await accepted.send(str(number).encode())
                await asyncio.sleep(0.001)

        talking = asyncio.create_task(talk())
        assert [int(await patient(connection.recv)) for _ in range(300)] == list(range(300))
        await talking
        await asyncio.gather(connection.close(), accepted.close())
        await endpoint.close()

    run(story())


def test_other_tasks_go_on_while_one_waits_and_a_wait_can_be_cancelled():
    async def story():
        endpoint = await restp.listen("127.0.0.1:0")
        connection = await restp.connect(endpoint.addresses, key=endpoint.key)
        accepted = await endpoint.accept()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.recv(), 0.05)
        await accepted.send(b"late")
        assert await connection.recv() == b"late", "nothing was lost to the wait that was cancelled"
        waiting = asyncio.create_task(endpoint.accept())
        await asyncio.sleep(0.05)
        await asyncio.gather(connection.close(), accepted.close())
        await endpoint.close()
        assert await waiting is None

    run(story())


def test_what_cannot_be_is_said():
    async def story():
        endpoint = await restp.listen("127.0.0.1:0")
        with pytest.raises(restp.ConnectionLost, match="refused"):
            await restp.connect(endpoint.addresses, port=9, key=endpoint.key)
        with pytest.raises(ValueError, match='"nowhere" is no address; write IP:PORT'):
            await restp.connect("nowhere")
        with pytest.raises(ValueError, match='no preset "fast"'):
            await restp.connect(endpoint.addresses, profile="fast")
        with pytest.raises(ValueError, match="congestion"):
            await restp.connect(endpoint.addresses, set={"congestion": "fastest"})
        connection = await restp.connect(endpoint.addresses, key=endpoint.key)
        with pytest.raises(ValueError, match="does not fit into a segment"):
            await connection.send(b"x" * 100_000)
        accepted = await endpoint.accept()
        connection.abort()
        with pytest.raises(restp.ConnectionLost, match="broke off"):
            await accepted.recv()
        assert issubclass(restp.ConnectionLost, ConnectionError)

    run(story())


def test_another_host_than_the_one_meant_is_not_talked_to():
    async def story():
        endpoint, other = await restp.listen("127.0.0.1:0"), await restp.listen("127.0.0.1:0")
        with pytest.raises(restp.ConnectionLost, match=f"the key expected is {other.key}.*it has {endpoint.key}"):
            await restp.connect(endpoint.addresses, key=other.key)

    run(story())


def test_who_was_met_is_remembered_and_another_is_an_error(tmp_path):
    hosts = tmp_path / "hosts"

    async def story():
        endpoint, other = await restp.listen("127.0.0.1:0"), await restp.listen("127.0.0.1:0")
        with pytest.warns(restp.FirstMeetingWarning, match=f"127.0.0.1 was met .* its key {endpoint.key} .*hosts"):
            await restp.connect(endpoint.addresses, known_hosts=hosts)
        assert hosts.read_text() == f"127.0.0.1 {endpoint.key}\n"
        assert hosts.stat().st_mode & 0o777 == 0o600
        again = await restp.connect(endpoint.addresses, known_hosts=str(hosts))
        assert again.peer_key == endpoint.key
        with pytest.raises(restp.ConnectionLost, match=f"HAS CHANGED.*{endpoint.key}.*{other.key}.*remove its line"):
            await restp.connect(other.addresses, known_hosts=hosts)
        anybody = await restp.connect(other.addresses, trust_anybody=True)
        assert anybody.peer_key == other.key
        assert hosts.read_text().count("\n") == 1
        with pytest.raises(ValueError, match="exclude each other"):
            await restp.connect(other.addresses, key=other.key, trust_anybody=True)
        hosts.write_text("rubbish\n")
        with pytest.raises(ValueError, match="line 1"):
            await restp.connect(endpoint.addresses, known_hosts=hosts)

    run(story())


def test_the_users_file_is_that_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    async def story():
        endpoint = await restp.listen("127.0.0.1:0")
        with pytest.warns(restp.FirstMeetingWarning):
            await restp.connect(endpoint.addresses)
        assert (tmp_path / "restp" / "known_peers").read_text() == f"127.0.0.1 {endpoint.key}\n"

    run(story())


def test_services_change_while_a_connection_runs():
    async def story():
        async with await restp.listen("127.0.0.1:0") as endpoint:
            async with await restp.connect(endpoint.addresses, key=endpoint.key) as connection:
                accepted = await endpoint.accept()
                await connection.send(b"before")
                assert await accepted.recv() == b"before"
                connection.changes()
                assert connection.reconfigure({"congestion": "newreno"}) == "local"
                assert connection.reconfigure({"congestion": "newreno"}) == "nothing"
                told = [(key, to) for key, _, to, _ in connection.changes()]
                assert ("congestion", "newreno") in told
                with pytest.raises(ValueError, match="settled"):
                    connection.reconfigure({"framing": "coalesce"})
                with pytest.raises(ValueError, match="newreno"):
                    connection.reconfigure({"congestion": "newrenno"})
                await connection.send(b"after")
                assert await accepted.recv() == b"after"
                connection.finish()
                assert await accepted.recv() is None
                await accepted.close()
            with pytest.raises(restp.ConnectionLost):
                connection.reconfigure({"congestion": "cubic"})

    run(story())


STREAMS = {"framing": "streams", "ordering": "unordered"}


def test_streams_of_one_connection_wait_for_no_other():
    async def story():
        async with await restp.listen("127.0.0.1:0", set=STREAMS) as endpoint:
            connection = await restp.connect(endpoint.addresses, key=endpoint.key, set=STREAMS)
            accepted = await endpoint.accept()

            async def echo(stream):
                async for data in stream:
                    await stream.send(data)
                stream.finish()

            async def ask(number):
                stream = await connection.open_stream()
                await stream.send(bytes([number]) * 20_000)
                stream.finish()
                return stream.id, b"".join([data async for data in stream])

            asking = [asyncio.create_task(ask(number)) for number in range(50)]
            answering = [asyncio.create_task(echo(await accepted.accept_stream())) for _ in range(50)]
            answers = await asyncio.gather(*asking)
            await asyncio.gather(*answering)
            assert sorted(number for number, _ in answers) == list(range(0, 100, 2))
            assert [data for _, data in answers] == [bytes([number]) * 20_000 for number in range(50)]
            stalled = await connection.open_stream()
            await stalled.send(b"x")
            other = await accepted.accept_stream()
            other.stop(7)
            with pytest.raises(restp.ConnectionLost, match="7"):
                while True:
                    await stalled.send(b"more")
            connection.abort()
            assert await accepted.accept_stream() is None

    run(story())


def test_a_connection_without_streams_says_so():
    async def story():
        async with await restp.listen("127.0.0.1:0") as endpoint:
            connection = await restp.connect(endpoint.addresses, key=endpoint.key)
            with pytest.raises(ValueError, match="streams"):
                await connection.open_stream()
            connection.abort()

    run(story())
