#!/usr/bin/env python3
"""Each rule has a share of the key table. Clients of another rule cannot fill this share."""

from harness import TestCase, Upstream, Weir, config, main, rule, run_weir


def limit(name):
    return rule(name, limit="5/day", key='["header:X-Who"]', match=f'{{ path = "/{name}" }}')


class TableShares(TestCase):
    NEWCOMERS = 20

    def setUp(self):
        self.upstream = self.start(Upstream())

    def text(self, *names):
        return config(self.upstream.port, rules="".join(limit(name) for name in names),
                      state="memory = { max_keys = 1000 }")

    def flood(self, weir, name):
        with weir.connect() as client:
            answers = [client.get(f"/{name}", x_who=f"invented-{number}") for number in range(4000)]
        self.assertIn(429, [answer.status for answer in answers], "the flood did not fill the table")

    def left(self, weir, name):
        """Sends requests of new clients to a rule with a limit of five. Returns the remaining units that each client sees."""
        with weir.connect() as client:
            return [client.get(f"/{name}", x_who=f"honest-{number}")["x-ratelimit-remaining"]
                    for number in range(self.NEWCOMERS)]

    def test_flood_of_keys_of_one_rule_leaves_the_limits_of_another_rule_exact(self):
        weir = self.start(Weir(self.text("flooded", "quiet")))
        self.flood(weir, "flooded")
        self.assertEqual(self.left(weir, "quiet"), ["4"] * self.NEWCOMERS)

    def test_rule_added_during_a_flood_gets_its_share_of_the_key_table(self):
        weir = self.start(Weir(self.text("flooded", "quiet")))
        self.flood(weir, "flooded")
        (weir.folder / "weir.toml").write_text(self.text("flooded", "quiet", "new"))
        status, _, errors = run_weir("reload", "--admin", f"127.0.0.1:{weir.admin}")
        self.assertEqual(status, 0, errors)
        for name in ("quiet", "new"):
            self.assertEqual(self.left(weir, name), ["4"] * self.NEWCOMERS, name)


if __name__ == "__main__":
    main()
