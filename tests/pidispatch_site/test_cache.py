from __future__ import annotations

import pytest
from django.core.cache import CacheHandler

from pidispatch_site import lazy_settings


@pytest.fixture
def cache(valkey_url):
    handler = CacheHandler(lazy_settings.cache({"VALKEY_URL": valkey_url}))
    yield handler["default"]
    handler.close_all()


def test_values_come_back_and_are_stored_as_json(cache, valkey):
    cache.set("k", {"n": [1, "x"]}, timeout=60)

    assert cache.get("k") == {"n": [1, "x"]}
    assert valkey.get("web:1:k") == b'{"n": [1, "x"]}'


def test_emptying_the_cache_leaves_the_queue_alone(cache, valkey):
    valkey.set("rq:job:1", "precious")
    valkey.set("budget:2026-01-01", 7)
    cache.set("k", "v")

    cache.clear()

    assert cache.get("k") is None
    assert sorted(valkey.keys()) == [b"budget:2026-01-01", b"rq:job:1"]


def test_without_a_server_everything_is_a_miss(tmp_path):
    handler = CacheHandler(lazy_settings.cache({"VALKEY_URL": f"unix://{tmp_path}/nobody.sock"}))

    handler["default"].set("k", "v")

    assert handler["default"].get("k", "missing") == "missing"
    handler["default"].clear()
