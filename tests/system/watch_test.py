#!/usr/bin/env python3
"""With `watch = true`, weir reloads by itself after a change of the configuration file or of a file that it names."""

import os

from harness import config, eventually, main, rule
from reload_test import ReloadTestCase

WATCH = "watch = true"


class Watch(ReloadTestCase):
    def start_weir(self, limit, files=None, **given):
        return self.weir(files, server=WATCH, rules=rule(limit=limit), **given)

    def text(self, limit, **given):
        return config(self.upstream.port, server=WATCH, rules=rule(limit=limit), **given)

    def await_reloads(self, weir, count, result="ok"):
        eventually(lambda: weir.metric("weir_reloads_total", result=result) == count, f"{count} reloads are {result}")

    def limit(self, weir):
        return weir.get()["x-ratelimit-limit"]

    def test_replaced_configuration_file_is_reloaded(self):
        weir = self.start_weir("10/day")
        self.assertEqual(self.limit(weir), "10")
        self.write(weir, self.text("20/day"))
        self.await_reloads(weir, 1)
        self.assertEqual(self.limit(weir), "20")
        weir.wait_for("info watch: the configuration's files have changed: reloading the configuration")

    def test_configuration_file_that_is_written_in_place_is_reloaded(self):
        weir = self.start_weir("10/day")
        (weir.folder / "weir.toml").write_text(self.text("20/day"))
        self.await_reloads(weir, 1)
        self.assertEqual(self.limit(weir), "20")

    def test_faulty_configuration_file_is_read_once_and_changes_nothing(self):
        weir = self.start_weir("10/day")
        self.write(weir, self.text("lots"))
        self.await_reloads(weir, 1, "failed")
        weir.wait_for("error reload: failed; the running configuration is unchanged")
        self.assertEqual(self.limit(weir), "10")
        self.write(weir, self.text("30/day"))
        self.await_reloads(weir, 1)
        self.assertEqual((self.limit(weir), weir.metric("weir_reloads_total", result="failed")), ("30", 1))

    def test_changed_keys_file_is_reloaded(self):
        keys = '[[key]]\nkey = "{}"\nuser = "ann"\n'
        client = 'keys = "keys.toml"\nunknown_keys = "reject"'
        weir = self.start_weir("10/day", {"keys.toml": keys.format("old")}, client=client)
        self.assertEqual([weir.get("/", x_api_key=key).status for key in ("old", "new")], [200, 401])
        (weir.folder / "keys.toml").write_text(keys.format("new"))
        self.await_reloads(weir, 1)
        self.assertEqual([weir.get("/", x_api_key=key).status for key in ("old", "new")], [401, 200])

    def test_faulty_configuration_is_reloaded_when_the_keys_file_that_it_names_is_corrected(self):
        weir = self.start_weir("10/day")
        (weir.folder / "keys.toml").write_text("[[key]]\ncolour = 1\n")
        self.write(weir, self.text("20/day", client='keys = "keys.toml"'))
        self.await_reloads(weir, 1, "failed")
        (weir.folder / "keys.toml").write_text('[[key]]\nkey = "a"\nuser = "ann"\n')
        self.await_reloads(weir, 1)
        self.assertEqual(self.limit(weir), "20")

    def test_mounted_config_map_is_reloaded(self):
        """Kubernetes replaces the symbolic link ..data, which leads to a folder with a date in its name. The link weir.toml
        itself stays."""
        weir = self.start_weir("10/day")
        for folder, limit in (("..1", "20/day"), ("..2", "30/day")):
            (weir.folder / folder).mkdir()
            (weir.folder / folder / "weir.toml").write_text(self.text(limit))
        (weir.folder / "..data").symlink_to("..1")
        (weir.folder / "weir.toml.new").symlink_to("..data/weir.toml")
        (weir.folder / "weir.toml.new").rename(weir.folder / "weir.toml")
        self.await_reloads(weir, 1)
        self.assertEqual(self.limit(weir), "20")
        (weir.folder / "..data_tmp").symlink_to("..2")
        os.replace(weir.folder / "..data_tmp", weir.folder / "..data")
        self.await_reloads(weir, 2)
        self.assertEqual(self.limit(weir), "30")

    def test_watch_can_be_switched_on_and_off_by_a_reload(self):
        weir = self.weir(rules=rule(limit="10/day"))
        self.reload(weir, self.text("20/day"))
        self.write(weir, config(self.upstream.port, rules=rule(limit="30/day")))
        self.await_reloads(weir, 2)
        self.assertEqual(self.limit(weir), "30")


if __name__ == "__main__":
    main()
