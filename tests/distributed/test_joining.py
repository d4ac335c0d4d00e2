"""What processes of a launch agree on when they join."""

from datetime import timedelta

import pytest

from entourage.distributed import joining, processes


class Joined(Exception):
    pass


def test_processes_wait_longer_than_a_large_table_takes_to_be_written(monkeypatch):
    for name, value in {"RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))
    found = {}

    def join(backend, **settings):
        found.update(settings)
        raise Joined

    monkeypatch.setattr(joining.distributed, "init_process_group", join)
    monkeypatch.setattr(joining.torch.cuda, "is_available", lambda: False)
    with pytest.raises(Joined), processes():
        pass
    assert found["timeout"] > timedelta(hours=12)
