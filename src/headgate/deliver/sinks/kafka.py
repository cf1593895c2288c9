"""Results into a topic, a record each: the row as JSON, and headers that say which it is.

    key      a                                      the columns of 'key'; several as JSON
    value    {"_time": "2026-11-01T12:00:03.000000Z", "_change": "+", "sensor": "a", "celsius": 91.5}
    headers  headgate-query: alerts    headgate-delivery: 5f3a.../12    headgate-position: 1-17

By 'deliver' = 'upserts' a key that has no row any more gets a record without a value, as compacted topics want it.
Records of a key are in order of time; without a key, all records of a delivery are sent in that order.

Before the first record of a delivery is sent, the ends of the topic's partitions are noted in the query's directory:

    kafka.json    {"number": 12, "ends": {"0": 345, "1": 300}}

A delivery that comes again is looked for behind those, and only what is not there is sent. A position is the file and
row of the delivery that a record was made from, which do not change, so a record is the same one however often it is
made. Two things remain that can send a record twice: Spark, if it runs a task again that had failed half-way, and a
record of an engine that died which reaches the broker only after the next one has looked. Readers that mind drop what
has a delivery and position they have seen.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks import shape
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.writer import identity, settle
from headgate.log.checksum import sealed, unsealed
from headgate.spark.failures import failure
from headgate.spark.session import own_session
from headgate.spark.statements import filtered, selected
from headgate.sql import ALL, Sql, listed, literal

EARLIEST = -2
TIMEOUT_MS = 30_000


class KafkaSink:
    """Sends each result as a record to a topic; after a crash it sends only what is not there."""

    guarantee = sinks.SINKS["kafka"].guarantee
    wants_empty = False

    def __init__(self, query: str, connector: Connector, session: SparkSession, directory: Path) -> None:
        self.query = query
        self.connector = connector
        self.key = sinks.key(connector)
        self.session = own_session(session)
        self.writer = identity(directory)
        self.topic = connector.options["topic"]
        self.options = {name: value for name, value in connector.options.items() if name.lower().startswith("kafka.")}
        self.mark = directory / "kafka.json"
        self._ends_consumer: Any = None

    def delivered(self) -> int | None:
        """The delivery before the last one that was begun: one is begun only when the one before it is out."""
        begun = self._begun()
        return begun["number"] - 1 if begun else 0

    def deliver(self, delivery: Delivery) -> None:
        """Send the records of a delivery; of one that was begun before, those that are not in the topic."""
        if not delivery.rows:
            return
        begun = self._begun()
        if begun and delivery.number < begun["number"]:
            return
        try:
            ends = self._ends()
            records = self._records(delivery)
            if begun and delivery.number == begun["number"]:
                sent = self._sent(delivery, {part: begun["ends"].get(part, EARLIEST) for part in ends})
                records = records.join(sent, "_position", "left_anti")
            else:
                settle(self.mark, sealed({"number": delivery.number, "ends": ends}))
            self._send(records, delivery.rows)
        except Exception as error:
            self.close()
            raise failure(error, "sink-failed", f'topic "{self.topic}" cannot be written') from error

    def close(self) -> None:
        """Close the consumer that asks for the ends of partitions."""
        consumer, self._ends_consumer = self._ends_consumer, None
        if consumer is not None:
            with suppress(Exception):
                consumer.close()

    def _begun(self) -> dict[str, Any] | None:
        return unsealed(self.mark.read_bytes(), self.mark) if self.mark.exists() else None

    def _ends(self) -> dict[str, int]:
        """The offset behind the last record of each partition."""
        jvm: Any = self.session._jvm
        clients, common = jvm.org.apache.kafka.clients, jvm.org.apache.kafka.common
        if self._ends_consumer is None:
            settings = {name[len("kafka.") :]: value for name, value in self.options.items()}
            settings["default.api.timeout.ms"] = str(TIMEOUT_MS)
            nothing = common.serialization.ByteArrayDeserializer
            self._ends_consumer = clients.consumer.KafkaConsumer(settings, nothing(), nothing())
        found = self._ends_consumer.partitionsFor(self.topic) or ()
        partitions = [common.TopicPartition(self.topic, one.partition()) for one in found]
        ends = self._ends_consumer.endOffsets(partitions)
        return {str(partition.partition()): int(ends[partition]) for partition in ends}

    def _records(self, delivery: Delivery) -> DataFrame:
        """The records of a delivery, each with its position."""
        self.session.conf.set("spark.sql.shuffle.partitions", str(-(-delivery.rows // shape.PART_ROWS)))
        names = ", ".join(literal(file.name) for file in delivery.files)
        position = f"CONCAT(ARRAY_POSITION(ARRAY({names}), _metadata.file_name), '-', _metadata.row_index) AS _position"
        frame = selected(shape.changes(self.session, delivery), ALL, position)
        frame = shape.labelled(frame, delivery, self.connector)
        values = f"STRUCT({listed(column for column in frame.columns if column != '_position')})"
        value = f"TO_JSON({values}, MAP('timestampFormat', \"{shape.MICROSECONDS}\", 'ignoreNullFields', 'false'))"
        if sinks.mode(self.connector) == "upserts":
            frame = shape.known_keys(shape.upserts(frame, self.key), self.key)
            value = f"IF(_change = '-', NULL, {value})"
        headers = {
            "headgate-query": literal(delivery.query),
            "headgate-delivery": literal(f"{self.writer}/{delivery.number}"),
            "headgate-position": Sql("_position"),
        }
        told = ", ".join(
            f"STRUCT({literal(name)} AS key, CAST({text} AS BINARY) AS value)" for name, text in headers.items()
        )
        order = [column for column in (Sql("_time"), Sql("_change")) if column in frame.columns]
        return selected(frame, *order, Sql("_position"), *self._key(), f"{value} AS value", f"ARRAY({told}) AS headers")

    def _key(self) -> list[Sql]:
        columns = listed(self.key)
        match len(self.key):
            case 0:
                return []
            case 1:
                return [f"CAST({columns} AS STRING) AS key"]
            case _:
                return [f"TO_JSON(STRUCT({columns})) AS key"]

    def _sent(self, delivery: Delivery, since: dict[str, int]) -> DataFrame:
        """The positions of this delivery that are in the topic already."""
        options = {
            **self.options,
            "subscribe": self.topic,
            "includeHeaders": "true",
            "failOnDataLoss": "false",
            "startingOffsets": json.dumps({self.topic: since}),
            "endingOffsets": "latest",
        }
        found = Sql(
            "MAP_FROM_ENTRIES(TRANSFORM(FILTER(headers, h -> h.key LIKE 'headgate-%'), h -> (h.key, CAST(h.value "
            "AS STRING)))) AS h"
        )
        frame = selected(self.session.read.format("kafka").options(**options).load(), found)
        mine = filtered(frame, f"h['headgate-delivery'] = {literal(f'{self.writer}/{delivery.number}')}")
        return selected(mine, Sql("h['headgate-position'] AS _position")).distinct()

    def _send(self, records: DataFrame, rows: int) -> None:
        """Records of one key by one task, so that they stay in order; without a key all by one."""
        parts = -(-rows // shape.PART_ROWS)
        cut = records.repartition(parts, "key") if self.key and parts > 1 else records.coalesce(1)
        by = [
            F.desc(column) if column == "_change" else F.asc(column)
            for column in ("_time", "_change")
            if column in cut.columns
        ]
        wanted = [column for column in cut.columns if column in ("key", "value", "headers")]
        sorted_records = cut.sortWithinPartitions(*by).select(*wanted)
        sorted_records.write.format("kafka").options(**self.options, topic=self.topic, includeHeaders="true").save()
