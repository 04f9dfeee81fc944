"""Addresses that the lab draws for nodes and devices."""

from comesh.lab.proxy import Address, free_addresses


def test_reserved_addresses_are_not_given_twice() -> None:
    host = "127.66.0.1"
    devices: dict[str, Address] = free_addresses([f"d{number}" for number in range(100)], host)
    nodes = free_addresses([f"n{number}" for number in range(100)], host, besides=tuple(devices.values()))
    assert not set(devices.values()) & set(nodes.values())
