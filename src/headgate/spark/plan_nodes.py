"""Which nodes a plan of Spark's has, plans and expressions alike: one call gives their kinds and the names they use.

To walk a plan from Python takes a call for each node. So a small class of Java walks it, which Spark's own compiler
makes once in each JVM.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

SOURCE = """
import java.util.ArrayDeque;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import org.apache.spark.sql.catalyst.trees.TreeNode;

public final class PlanNodes implements java.util.function.Function {
  private static final String COMMON = "org.apache.spark.sql.catalyst.";

  public Object apply(Object root) {
    LinkedHashSet kinds = new LinkedHashSet();
    IdentityHashMap seen = new IdentityHashMap();
    ArrayDeque waiting = new ArrayDeque();
    waiting.push(root);
    while (!waiting.isEmpty()) {
      Object one = waiting.pop();
      if (seen.put(one, one) != null) continue;
      if (one instanceof TreeNode) {
        TreeNode node = (TreeNode) one;
        String kind = node.getClass().getName();
        if (kind.contains("Unresolved") && !kind.endsWith("Attribute") && node.productArity() > 0
            && !(node.productElement(0) instanceof TreeNode))
          kind += '\\t' + String.valueOf(node.productElement(0)).replace('\\n', ' ').replace('\\t', ' ');
        kinds.add(kind.startsWith(COMMON) ? kind.substring(COMMON.length()) : kind);
        pushAll(node.children().iterator(), waiting);
        pushAll(node.innerChildren().iterator(), waiting);
        pushAll(node.productIterator(), waiting);
      } else if (one instanceof scala.collection.Iterable) {
        pushAll(((scala.collection.Iterable) one).iterator(), waiting);
      } else if (one instanceof scala.Option || one.getClass().getName().startsWith("scala.Tuple")) {
        pushAll(((scala.Product) one).productIterator(), waiting);
      }
    }
    return String.join("\\n", kinds);
  }

  private static void pushAll(scala.collection.Iterator parts, ArrayDeque waiting) {
    while (parts.hasNext()) {
      Object part = parts.next();
      if (part != null) waiting.push(part);
    }
  }
}
"""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A kind of node: its class within Spark's Catalyst, and, where it is not resolved, the name it stands for."""

    kind: str
    name: str = ""

    @property
    def short(self) -> str:
        """The name of its class alone."""
        return self.kind.rpartition(".")[2]


_WALKERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By JVM: what walks its plans. A second class of that name would confuse py4j, which knows classes by their names."""

_TURN = threading.Lock()
"""Held while a walker is made."""


def _walker(session: SparkSession) -> Any:
    gateway = session.sparkContext._gateway
    with _TURN:
        if gateway not in _WALKERS:
            jvm: Any = session._jvm
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.cook(SOURCE)
            _WALKERS[gateway] = compiler.getClassLoader().loadClass("PlanNodes").newInstance()
        return _WALKERS[gateway]


class PlanNodes:
    """Walks plans in the JVM of a session."""

    def __init__(self, session: SparkSession) -> None:
        self._walker = _walker(session)

    def of(self, plan: Any) -> list[PlanNode]:
        """The different nodes of a plan and of everything in it. Few words, because py4j is slow to give long texts."""
        lines = str(self._walker.apply(plan)).splitlines()
        return [PlanNode(kind, name) for kind, _, name in (line.partition("\t") for line in lines)]
