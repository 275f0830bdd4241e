#!/usr/bin/env python3
"""Envoy's rate limit service with limits in Redis: a refusal by Redis has the same statuses as a refusal by weir's own memory."""

from harness import Redis, main, rule
from rls_client import OK, OVER_LIMIT
from rls_test import RlsTestCase, WINDOW, by


class RefusalsByRedis(RlsTestCase):
    def test_statuses_name_the_rule_that_refuses(self):
        redis = self.start(Redis())
        client = self.service(rule("logins", "2/day", key=by("path"), store='"redis"', **WINDOW), rule("users", "9/day", key=by("user"), **WINDOW),
                              state=f'redis = {{ url = "redis://127.0.0.1:{redis.port}" }}')
        question = ("edge", {"path": "/login"}, {"user": "ada"})
        self.assertEqual(self.codes(client, 2, *question), [OK] * 2)
        for _ in range(2):  # Redis refuses the first call; weir may remember its refusal for the second
            answer = client.ask(*question)
            self.assertEqual(answer.overall_code, OVER_LIMIT)
            said = [(status.code, status.current_limit.name, status.limit_remaining) for status in answer.statuses]
            self.assertEqual(said, [(OVER_LIMIT, "logins", 0), (OK, "users", 7)])


if __name__ == "__main__":
    main()
