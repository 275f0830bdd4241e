#!/usr/bin/env python3
"""The clients of docs/guides/ask-from-an-application.md, as the guide has them, ask a real weir with the guide's limits. Only the
port is changed. Each language that this machine lacks is skipped."""

import importlib.util
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from documents import TREE, blocks, commands, is_whole, on_free_ports
from harness import PATIENCE, TestCase, Weir, closed_port, eventually, main, run_weir, together
from processes import pause

GUIDE = TREE / "docs/guides/ask-from-an-application.md"
BUDGET, RESERVE, REAL = 10_000, 2_000, 412
CALLS = (BUDGET - RESERVE) // REAL + 1  # how many calls are admitted: each needs RESERVE units, and then costs REAL


def blocks_in(language):
    return [block.text for block in blocks(GUIDE, language)]


def configuration(more="", listener=""):
    text = next(block.text for block in blocks(GUIDE, "toml") if is_whole(block))
    text = on_free_ports(text, "").replace('serves = "decide"', f'serves = "decide"\n{listener}')
    return text + more


class Guide(TestCase):
    def test_weir_check_with_strict_accepts_the_configuration_of_the_guide_without_warnings(self):
        self.assertEqual(run_weir("check", "--strict", config=configuration())[::2], (0, ""))

    def test_commands_of_the_guide_print_the_shown_output(self):
        with Weir(configuration()) as weir:
            for block in blocks(GUIDE, "console"):
                for command, wanted in commands(block):
                    if command.startswith("curl"):
                        done = subprocess.run(["bash", "-c", command.replace(":9100", f":{weir.port}")], capture_output=True, text=True,
                                              timeout=2 * PATIENCE)
                        before, _, after = "\n".join(wanted).partition("…")
                        self.assertTrue(done.stdout.startswith(before) and done.stdout.rstrip().endswith(after), done.stdout)


class Python(TestCase):
    """Runs the Python client in this process, so that tests see its exceptions."""

    def setUp(self):
        self.weir = self.start(Weir(configuration()))
        self.module = self.load(blocks_in("python")[0])

    def load(self, text):
        folder = self.start(tempfile.TemporaryDirectory(prefix="weir-client-"))
        file = pathlib.Path(folder, "weir.py")
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("weir", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def client(self, port=None, **options):
        client = self.module.Weir(**{"port": port or self.weir.port, "timeout": PATIENCE, "fail_open": False, **options})
        self.addCleanup(lambda: client.local.__dict__.get("connection") and client.local.connection.close())
        return client

    def complete(self, client, cost=REAL, fault=None, user="ann"):
        with client.permit(domain="chat", attributes={"user": user}) as permit:
            permit.cost = cost
            if fault:
                raise fault

    def calls_until_refused(self, client, **work):
        count = 0
        try:
            while True:
                self.complete(client, **work)
                count += 1
        except self.module.Refused as refused:
            return count, refused

    def test_client_settles_a_permit_with_the_real_cost(self):
        count, refused = self.calls_until_refused(self.client())
        self.assertEqual((count, refused.answer["rule"]), (CALLS, "tokens"))
        self.assertTrue(1 <= refused.retry_after <= 86400, refused.answer)
        self.assertEqual(self.weir.metric("weir_decide_permits_ended_total", end="settled"), CALLS)
        self.assertEqual(self.weir.metric("weir_decide_permits"), 0)

    def test_client_refunds_work_that_failed(self):
        client = self.client()
        for _ in range(2 * CALLS):
            with self.assertRaisesRegex(OSError, "the model is away"):
                self.complete(client, cost=None, fault=OSError("the model is away"))
        self.assertEqual(self.calls_until_refused(client)[0], CALLS)

    def test_client_charges_work_that_failed_after_its_cost_was_set(self):
        client = self.client()
        with self.assertRaises(OSError):
            self.complete(client, cost=BUDGET, fault=OSError())
        self.assertEqual(self.calls_until_refused(client)[0], 0)

    def test_client_charges_the_reserve_if_no_cost_was_set(self):
        self.assertEqual(self.calls_until_refused(self.client(), cost=None)[0], BUDGET // RESERVE)

    def test_users_have_their_own_budgets(self):
        client = self.client()
        self.assertEqual([self.calls_until_refused(client, user=name)[0] for name in ("ann", "bob")], [CALLS, CALLS])

    def test_concurrency_limit_counts_open_permits(self):
        client = self.client()
        question = {"domain": "chat", "attributes": {"user": "ann"}}
        held = [client.permit(**question) for _ in range(4)]
        for permit in held:
            permit.__enter__().cost = 1
        with self.assertRaises(self.module.Refused) as refused:
            self.complete(client)
        self.assertEqual(refused.exception.answer["rule"], "at-once")
        for permit in held:
            permit.__exit__(None, None, None)
        self.complete(client)

    def test_stated_cost_is_charged_in_place_of_the_usual_cost_of_one(self):
        limits = ('[[rule]]\nname = "units"\nkey = ["descriptor:user"]\nmatch = { domains = ["bulk"] }\nalgorithm = "fixed_window"\nlimit = "100/day"\n'
                  '[[rule]]\nname = "bulk-at-once"\nkey = ["descriptor:user"]\nmatch = { domains = ["bulk"] }\nalgorithm = "concurrency"\nlimit = 1\n')
        weir = self.start(Weir(configuration(limits)))
        client, question = self.client(weir.port), {"domain": "bulk", "attributes": {"user": "ann"}, "cost": 40}
        with client.permit(**question), self.assertRaises(self.module.Refused) as refused:
            client.permit(**question).__enter__()
        self.assertEqual(refused.exception.answer["rule"], "bulk-at-once")
        with client.permit(**question) as permit:
            permit.cost = 10
        self.assertEqual(client.decide({**question, "cost": 51})[0]["allowed"], False)
        self.assertEqual(client.decide({**question, "cost": 50})[0]["allowed"], True)

    def test_threads_that_share_a_client_get_exactly_the_limit(self):
        client = self.client()

        def work(_):
            try:
                with client.permit(domain="mail", attributes={"customer": "acme"}):
                    return True
            except self.module.Refused:
                return False

        self.assertEqual(sorted(together(30, work)), [False] * 10 + [True] * 20)

    def test_client_that_fails_open_works_while_weir_is_stopped(self):
        port = closed_port()
        self.complete(self.client(port, fail_open=True))
        with self.assertRaises(self.module.Silent):
            self.complete(self.client(port))

    def test_client_that_fails_open_works_while_weir_does_not_answer_in_time(self):
        pause(self.weir)
        try:
            began = time.monotonic()
            self.complete(self.client(timeout=0.25, fail_open=True))
            with self.assertRaises(self.module.Silent):
                self.complete(self.client(timeout=0.25))
            self.assertLess(time.monotonic() - began, PATIENCE)
        finally:
            self.weir.signal(signal.SIGCONT)

    def test_client_raises_an_error_for_a_wrong_question(self):
        with self.assertRaisesRegex(RuntimeError, "400.*attributes"):
            self.client(fail_open=True).permit(attribute={"user": "ann"}).__enter__()

    def test_client_sends_its_token_and_raises_an_error_if_the_token_is_wrong(self):
        weir = self.start(Weir(configuration(listener='token = "0123456789abcdef"')))
        self.complete(self.client(weir.port, token="0123456789abcdef"))
        with self.assertRaisesRegex(RuntimeError, "401"):
            self.complete(self.client(weir.port, token="fedcba9876543210", fail_open=True))

    def test_connection_that_weir_has_closed_is_replaced(self):
        weir = self.start(Weir(configuration('[server]\nidle_timeout = "100ms"\n')))
        client = self.client(weir.port)
        self.complete(client)
        eventually(lambda: weir.metric("weir_connections_open") <= 1, "only the admin's connection is open")
        self.complete(client)

    def test_batch_of_100_questions_is_decided_in_order_and_batch_of_101_is_rejected(self):
        question = {"domain": "mail", "attributes": {"customer": "acme"}}
        answers = self.client().decide(*[question] * 100)
        self.assertEqual([answer["allowed"] for answer in answers], [True] * 20 + [False] * 80)
        with self.assertRaisesRegex(RuntimeError, "400.*101"):
            self.client().decide(*[question] * 101)

    def test_reload_keeps_permits(self):
        client = self.client()
        with client.permit(domain="chat", attributes={"user": "ann"}) as permit:
            self.weir.signal(signal.SIGHUP)
            self.weir.wait_for("reload")
            permit.cost = BUDGET - RESERVE
        self.assertEqual(self.calls_until_refused(client)[0], 1)

    def test_unsettled_permit_expires_and_its_cost_stays_charged(self):
        weir = self.start(Weir(configuration(listener='permit_ttl = "100ms"')))
        client = self.client(weir.port)
        self.assertTrue(client.decide({"domain": "chat", "attributes": {"user": "ann"}})[0]["permit"])
        self.await_metric(weir, 1, "weir_decide_permits_ended_total", end="expired")
        self.assertEqual(weir.metric("weir_decide_permits"), 0)
        self.assertEqual(self.calls_until_refused(client)[0], (BUDGET - 2 * RESERVE) // REAL + 1)

    def test_client_raises_the_exception_silent_if_max_permits_are_open(self):
        weir = self.start(Weir(configuration("[server]\nworkers = 1\n", 'max_permits = 1')))
        client = self.client(weir.port)
        with client.permit(domain="chat", attributes={"user": "ann"}):
            with self.assertRaisesRegex(self.module.Silent, "max_permits"):
                self.complete(client, user="bob")

    def test_example_of_the_guide_works(self):
        _, use, batch = blocks_in("python")
        names = {"ask_the_model": lambda prompt: (prompt.upper(), REAL), "customers": ["acme"] * 21 + ["globex"]}
        sample = self.load(blocks_in("python")[0])
        use = use.replace("from weir import Refused, Weir\n", "").replace("Weir(", f"Weir(port={self.weir.port}, timeout={PATIENCE}, ")
        exec(use, names := {**names, "Refused": sample.Refused, "Weir": sample.Weir})  # the guide's own text
        self.assertEqual(names["complete"]("ann", "hello"), "HELLO")
        exec(batch, names)
        self.assertEqual(names["allowed"], ["acme"] * 20 + ["globex"])


class OtherLanguages(TestCase):
    """Runs a program with the client of another language. Each program does the same work, and prints the lines in `wanted`."""

    wanted = [f"admitted {CALLS}, then refused by tokens", "failed work is refunded", "closed: silent", "open: done", "mistake: thrown",
              "batch: 20 of 25"]

    def run_program(self, files, command):
        weir = self.start(Weir(configuration()))
        folder = pathlib.Path(self.start(tempfile.TemporaryDirectory(prefix="weir-client-")))
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        setting = {"port": weir.port, "closed": closed_port(), "patience": PATIENCE, "real": REAL}
        done = subprocess.run([*command, json.dumps(setting)], cwd=folder, capture_output=True, text=True, timeout=8 * PATIENCE)
        self.assertEqual(done.stdout.splitlines(), self.wanted, done.stderr)

    @unittest.skipUnless(shutil.which("node"), "node is not there")
    def test_javascript_client_decides_and_settles_as_documented(self):
        client, use = blocks_in("javascript")
        use = use.replace("new Weir({", "new Weir({ url: `http://127.0.0.1:${setting.port}`, timeout: setting.patience,")
        main = use.replace("export function", "function") + NODE
        main = main.replace("const weir", "const setting = JSON.parse(process.argv[2]);\nconst weir", 1)
        self.run_program({"weir.mjs": client, "main.mjs": main.replace("import { Weir }", "import { Refused, Silent, Weir }")}, ["node", "main.mjs"])

    @unittest.skipUnless(shutil.which("go"), "go is not there")
    def test_go_client_decides_and_settles_as_documented(self):
        client, use = blocks_in("go")
        use = use.replace("client := &weir.Client{URL: \"http://127.0.0.1:9100\", Timeout: 250 * time.Millisecond}\n", "")
        self.run_program({"go.mod": "module app\n\ngo 1.19\n", "weir/weir.go": client, "main.go": GO + use}, ["go", "run", "."])


NODE = """
let fails = false;
async function askTheModel() {
  if (fails) throw new RangeError("the model is away");
  return { text: "text", tokens: setting.real };
}
const outcome = (promise) => promise.then(() => "done", (fault) => (fault instanceof Silent ? "silent" : "thrown"));
let count = 0;
for (fails = true; count < 30; ++count) await complete("bob", "hi").catch((fault) => { if (!(fault instanceof RangeError)) throw fault; });
fails = false;
try {
  for (count = 0; ; ++count) await complete("ann", "hi");
} catch (fault) {
  if (!(fault instanceof Refused) || !(fault.retryAfter > 0)) throw fault;
  console.log(`admitted ${count}, then refused by ${fault.answer.rule}`);
}
await complete("bob", "hi");
console.log("failed work is refunded");
const url = `http://127.0.0.1:${setting.closed}`;
const question = { domain: "chat", attributes: { user: "eve" } };
console.log("closed:", await outcome(new Weir({ url, failOpen: false }).permit(question, async () => {})));
console.log("open:", await outcome(new Weir({ url }).permit(question, async () => {})));
console.log("mistake:", await outcome(new Weir({ url: weir.url }).permit({ attribute: {} }, async () => {})));
const answers = await weir.decide(...Array(25).fill({ domain: "mail", attributes: { customer: "acme" } }));
console.log(`batch: ${answers.filter((one) => one.allowed).length} of 25`);
"""

GO = """package main

import (
	"app/weir"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

var setting struct{ Port, Closed, Patience, Real int }
var client *weir.Client
var fails bool

func askTheModel(context.Context, string) (string, uint64, error) {
	return "text", uint64(setting.Real), nil
}

func outcome(err error) string {
	if err == nil {
		return "done"
	}
	if errors.Is(err, weir.ErrSilent) {
		return "silent"
	}
	return "thrown"
}

func main() {
	if err := json.Unmarshal([]byte(os.Args[1]), &setting); err != nil {
		panic(err)
	}
	ctx := context.Background()
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	patience := time.Duration(setting.Patience) * time.Second
	client = &weir.Client{URL: url(setting.Port), Timeout: patience}
	chat := func(user string) weir.Question {
		return weir.Question{"domain": "chat", "attributes": map[string]string{"user": user}}
	}
	away := errors.New("the model is away")
	for i := 0; i < 30; i++ {
		if err := client.Permit(ctx, chat("bob"), func(*weir.Permit) error { return away }); err != away {
			panic(err)
		}
	}
	for count := 0; ; count++ {
		_, err := complete(ctx, "ann", "hi")
		var refused *weir.Refused
		if errors.As(err, &refused) && refused.RetryAfter > 0 {
			fmt.Printf("admitted %d, then refused by %s\\n", count, refused.Rule)
			break
		}
		if err != nil {
			panic(err)
		}
	}
	if _, err := complete(ctx, "bob", "hi"); err == nil {
		fmt.Println("failed work is refunded")
	}
	nothing := func(*weir.Permit) error { return nil }
	closed := &weir.Client{URL: url(setting.Closed), Timeout: patience}
	fmt.Println("closed:", outcome(closed.Permit(ctx, chat("eve"), nothing)))
	open := &weir.Client{URL: url(setting.Closed), Timeout: patience, FailOpen: true}
	fmt.Println("open:", outcome(open.Permit(ctx, chat("eve"), nothing)))
	asks := &weir.Client{URL: client.URL, Timeout: patience, FailOpen: true}
	fmt.Println("mistake:", outcome(asks.Permit(ctx, weir.Question{"attribute": 1}, nothing)))
	questions := make([]weir.Question, 25)
	for i := range questions {
		questions[i] = weir.Question{"domain": "mail", "attributes": map[string]string{"customer": "acme"}}
	}
	answers, err := client.Decide(ctx, questions...)
	allowed := 0
	for _, answer := range answers {
		if answer.Allowed {
			allowed++
		}
	}
	fmt.Printf("batch: %d of %d\\n", allowed, len(answers))
	if err != nil {
		panic(err)
	}
}

"""


if __name__ == "__main__":
    main()
