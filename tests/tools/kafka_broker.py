"""A Kafka broker of our own: Apache Kafka's jars in KRaft mode, one process on a free loopback port, gone after the
test.

    with broker() as servers:
        create_topic(servers, "temperature", partitions=2)
        produce(servers, "temperature", ['{"sensor": "a"}'])
        consume(servers, "temperature", 1)

The jars are fetched with Maven, once a machine, and kept in the cache of `headgate.spark.packages`.
"""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from headgate.errors import UserError
from headgate.spark import packages as maven

KAFKA = maven.Artifact("org.apache.kafka", "kafka_2.13", "4.1.0")
LIFE_SECONDS = 900
"""A broker that nobody stopped goes by itself."""

PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={directory}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def jars() -> str:
    """The class path of a broker."""
    try:
        return f"{maven.fetched(f'kafka-{KAFKA.version}', [KAFKA])[0].parent}/*"
    except UserError as error:
        pytest.skip(f"no Kafka broker: {error.message}. {error.detail}")


@contextmanager
def broker() -> Iterator[str]:
    """A running broker; gives its `bootstrap.servers`."""
    path = jars()
    port, controller = free_ports(2)
    with TemporaryDirectory(prefix="headgate-kafka-") as scratch:
        settings = Path(scratch, "server.properties")
        settings.write_text(PROPERTIES.format(port=port, controller=controller, directory=Path(scratch, "data")))
        cluster = (
            base64.urlsafe_b64encode(b"\x00" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        )  # must not begin with a dash
        java = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", path]
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(settings)],
            check=True,
            capture_output=True,
            timeout=120,
        )
        with Path(scratch, "broker.log").open("w") as output:
            command = ["timeout", str(LIFE_SECONDS), *java, "kafka.Kafka", str(settings)]
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        servers = f"127.0.0.1:{port}"
        try:
            _wait_until_up(servers, process)
            yield servers
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_until_up(servers: str, process: subprocess.Popen[bytes]) -> None:
    from confluent_kafka import KafkaException

    limit = time.monotonic() + 60
    while True:
        try:
            if _admin(servers).list_topics(timeout=1).brokers:
                return
        except KafkaException:
            pass
        if process.poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"the broker did not come up: exit code {process.poll()}")


def _admin(servers: str) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": servers, "log_level": 0})


def create_topic(servers: str, name: str, partitions: int = 1) -> None:
    from confluent_kafka.admin import NewTopic

    admin = _admin(servers)  # it has to outlive what it promises
    for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        created.result(30)


def produce(servers: str, topic: str, values: Iterable[str | bytes], partition: int | None = None) -> None:
    """Send values, in this order; to one partition if it is given."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for value in values:
        where = {} if partition is None else {"partition": partition}
        producer.produce(topic, value, **where)
        producer.poll(0)
    assert producer.flush(30) == 0, "not all was sent"


def consume(servers: str, topic: str, count: int, seconds: float = 30, committed: bool = True) -> list[bytes]:
    """The values of a topic from its beginning: `count` of them at least, unless the time runs out.

    Only what transactions have committed, unless told otherwise.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    isolation = "read_committed" if committed else "read_uncommitted"
    consumer = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "isolation.level": isolation})
    partitions = _admin(servers).list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in partitions])
    values: list[bytes] = []
    limit = time.monotonic() + seconds
    while len(values) < count and time.monotonic() < limit:
        values += [message.value() for message in consumer.consume(10_000, 0.2) if message.error() is None]
    values += [message.value() for message in consumer.consume(10_000, 0.5) if message.error() is None]
    consumer.close()
    return values
