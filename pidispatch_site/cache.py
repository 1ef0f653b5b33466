"""Django's cache on the server that also holds the queue."""

from __future__ import annotations

from typing import Any

from django_redis.client import DefaultClient


class PrefixClient(DefaultClient):  # type: ignore[misc] # django-redis has no types
    """As django-redis's, except that emptying the cache leaves queue, budgets and switches alone."""

    def clear(self, client: Any = None) -> None:
        """Remove our own keys only; the original empties the whole database of the server."""
        self.delete_pattern("*", client=client, itersize=500)
