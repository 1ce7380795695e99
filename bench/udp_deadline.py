#!/usr/bin/env python3
"""Live media through `restp forward --udp --deadline` over an emulated path: how much arrives in time?

    python3 bench/udp_deadline.py --restp target/release/restp --rate 6 --loss 0.02 --delay 20 --deadline 250 --seconds 30

MPEG-TS as encoders send it: 1316 bytes a datagram at a constant rate. In time is what arrives within the deadline after it was sent.
Both ends are processes of this host, so one clock tells.
"""

import argparse
import contextlib
import json
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time

BYTES = 1316


def start(restp, words, data):
    environment = dict(os.environ, XDG_DATA_HOME=data, XDG_CONFIG_HOME=data)
    return subprocess.Popen([restp, *words], stdout=subprocess.PIPE, env=environment, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--rate", type=float, default=6.0, help="Mbit/s of media")
    parser.add_argument("--link", default="20 Mbit/s", help="rate of the path")
    parser.add_argument("--delay", type=float, default=20.0, help="ms one way")
    parser.add_argument("--loss", type=float, default=0.01, help="share of packets, both ways")
    parser.add_argument("--deadline", type=float, default=250.0, help="ms; 0: none")
    parser.add_argument("--set", action="append", default=[], help="SERVICE=CHOICE of the sending end")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        print(json.dumps(measure(options, data)))


def measure(options, data):
    link = f'rate = "{options.link}"\ndelay = "{options.delay} ms"\nloss = {{ rate = {options.loss}, direction = "both" }}\n'
    with standing(options, data, link) as (target, listens):
        return play(options, target, listens)


@contextlib.contextmanager
def standing(options, data, link):
    """A server, an emulated link to it (its TOML), and a forward over that.

    Gives the target's socket, and the address that the forward takes datagrams at.
    """
    target = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    target.bind(("127.0.0.1", 0))
    target.settimeout(3)
    place = f"127.0.0.1:{target.getsockname()[1]}"
    processes = []

    def started(words):
        processes.append(start(options.restp, words, data))
        return json.loads(processes[-1].stdout.readline())

    try:
        invitation = started(["serve", "--json", "--listen", "127.0.0.1:0", "--allow", f"udp:{place}"])
        to = invitation["addresses"][0]
        net = os.path.join(data, "net.toml")
        with open(net, "w", encoding="utf-8") as file:
            file.write(f'[[path]]\nname = "p"\nlisten = "127.0.0.1:0"\nto = "{to}"\n{link}')
        ready = started(["emulate", "--json", net])
        words = ["forward", "--json", invitation["ticket"], "--udp", f"0:{place}"]
        words += ["--address", ready["ready"][0]["listen"]]
        if options.deadline:
            words += ["--deadline", f"{options.deadline:g}ms"]
        for change in options.set:
            words += ["--set", change]
        yield target, started(words)["forwards"][0]["listen"]
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
        target.close()


def play(options, target, listens):
    """Media for as long as the options say, and what came of it."""
    host, port = listens.rsplit(":", 1)
    interval = BYTES * 8 / (options.rate * 1e6)
    number = int(options.seconds / interval)
    sending = threading.Thread(target=send, args=((host, int(port)), number, interval))
    sending.start()
    delays = receive(target, number)
    sending.join()
    limit = (options.deadline or 250.0) / 1e3
    in_time = sum(delay <= limit for delay in delays)
    ordered = sorted(delays) or [float("nan")]
    shares = (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    return {
        "sent": number,
        "arrived": len(delays),
        "in_time": in_time,
        "in_time_share": round(in_time / number, 5),
        "delay_ms": {name: round(ordered[int(len(ordered) * share)] * 1e3, 1) for name, share in shares},
    }


def send(to, number, interval):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start_at = time.monotonic()
    for index in range(number):
        ahead = start_at + index * interval - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        sender.sendto(struct.pack("!Id", index, time.monotonic()) + bytes(BYTES - 12), to)


def receive(target, number):
    delays = []
    seen = set()
    while len(seen) < number:
        try:
            datagram = target.recv(2000)
        except TimeoutError:
            break
        index, sent = struct.unpack("!Id", datagram[:12])
        if index not in seen:
            seen.add(index)
            delays.append(time.monotonic() - sent)
    return delays


if __name__ == "__main__":
    main()
