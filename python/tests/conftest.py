import pytest

SCENARIO = """
id = "short"
title = "A short transfer over a lossy link"
duration = "3 s"
runs = 2

[[link]]
name = "bottleneck"
between = ["source", "sink"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = { drop_tail = "20 packets" }
loss = { rate = 0.01, unit = "packet" }
outage = ["1 s..1200 ms"]

[[flow]]
name = "a"
from = "source"
to = "sink"
transport = "restp:3wh-arq"
traffic = { bulk = {} }
bins = "1 s"
"""


AIR = """
id = "air"
title = "Two chains beside each other"
duration = "3 s"

[[medium]]
name = "channel"

[[station]]
name = "n{i}"
count = 5
at_m = [0, 0]
step_m = [300, 0]
media = ["channel"]

[[station]]
name = "walker"
at_m = [0, 200]
waypoints = [["2 s", 300, 250]]
media = ["channel"]

[[flow]]
name = "a"
from = "n1"
to = "n5"
transport = "restp:3wh-arq"
traffic = { bulk = {} }
"""


@pytest.fixture
def air_file(tmp_path):
    path = tmp_path / "air.toml"
    path.write_text(AIR)
    return path


@pytest.fixture
def scenario():
    return SCENARIO


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "short.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="session")
def client():
    """Two worker processes of one thread each."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
