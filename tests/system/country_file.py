"""Writes small databases of countries, cities and autonomous systems in MaxMind's format (MaxMind DB file format specification 2.0)."""

import ipaddress


def _text(value):
    return bytes([0x40 | len(value)]) + value.encode()


def _whole(kind, value, size):
    return bytes([kind << 5 | size]) + value.to_bytes(size, "big")


def _metadata(nodes):
    entries = {"node_count": _whole(6, nodes, 4), "record_size": _whole(5, 24, 2), "ip_version": _whole(5, 6, 2),
               "database_type": _text("Test-Country"), "languages": b"\x01\x04" + _text("en"),
               "binary_format_major_version": _whole(5, 2, 2), "binary_format_minor_version": _whole(5, 0, 2),
               "build_epoch": b"\x04\x02" + (1_700_000_000).to_bytes(4, "big"),
               "description": b"\xe1" + _text("en") + _text("a test")}
    return bytes([0xE0 | len(entries)]) + b"".join(_text(key) + value for key, value in entries.items())


def _map(**entries):
    return bytes([0xE0 | len(entries)]) + b"".join(_text(key) + value for key, value in entries.items())


def _country(code):
    return {"country": _map(iso_code=_text(code))}


def country_file(countries):
    """Returns the bytes of a database such as {"203.0.113.0/24": "CH"}. Networks must not overlap."""
    return _file({network: _map(**_country(code)) for network, code in countries.items()})


def city_file(places):
    """Returns the bytes of a database such as {"203.0.113.0/24": ("CH", "GE", "Geneva")}."""
    return _file({network: _map(**_country(code), city=_map(names=_map(en=_text(city))),
                                subdivisions=b"\x01\x04" + _map(iso_code=_text(region)))
                  for network, (code, region, city) in places.items()})


def asn_file(systems):
    """Returns the bytes of a database such as {"203.0.113.0/24": 3303}."""
    return _file({network: _map(autonomous_system_number=_whole(6, number, 4)) for network, number in systems.items()})


def _file(entries):
    nodes, data = [[None, None]], b""
    for text, entry in entries.items():
        network = ipaddress.ip_network(text)
        leading = 128 - network.max_prefixlen  # the tree stores IPv4 addresses below ::/96
        bits = f"{int(network.network_address):0128b}"[:leading + network.prefixlen]
        node = nodes[0]
        for bit in map(int, bits[:-1]):
            if node[bit] is None:
                node[bit] = len(nodes)
                nodes.append([None, None])
            node = nodes[node[bit]]
        node[int(bits[-1])] = -1 - len(data)
        data += entry

    def record(value):
        count = len(nodes)
        number = count if value is None else value if value >= 0 else count + 16 + (-1 - value)
        return number.to_bytes(3, "big")

    tree = b"".join(record(left) + record(right) for left, right in nodes)
    return tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + _metadata(len(nodes))
