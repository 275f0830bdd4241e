// Clients of language models for tests/system/model_sdks_test.py: the libraries of OpenAI and Anthropic. Reads calls from each line of
// standard input, as a JSON array, and makes all of them at the same time. Prints a line for each call that has ended.
//
// {"id", "base", "kind", "stream", "text", "leaves"}: the kind is chat, responses or messages. A call with `leaves` aborts its stream after
// the first event. The output is {"id", "tokens"}, with the tokens that the library reports, or {"id", "left": true}, or {"id", "error"}.
"use strict";

const readline = require("node:readline");
const Anthropic = require("@anthropic-ai/sdk");
const OpenAI = require("openai");

const MODEL = "scripted";

// Returns a function that makes the request. Its result is an answer, or a stream of events if the body has "stream".
function requestOf({ base, kind }) {
  const options = { baseURL: base, apiKey: "ann-1", maxRetries: 0 };
  if (kind === "messages") {
    const client = new Anthropic(options);
    return (text, more) => client.messages.create({ model: MODEL, max_tokens: 100, messages: [{ role: "user", content: text }], ...more });
  }
  const client = new OpenAI({ ...options, baseURL: base + "/v1" });
  if (kind === "responses") return (text, more) => client.responses.create({ model: MODEL, input: text, ...more });
  return (text, more) =>
    client.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: text }],
      ...(more.stream ? { stream_options: { include_usage: true } } : {}),
      ...more,
    });
}

// Adds the numbers of a usage to those of earlier events. Both libraries report them under one of these names.
function note(tokens, usage) {
  if (!usage) return;
  tokens.input = usage.prompt_tokens ?? usage.input_tokens ?? tokens.input;
  tokens.output = usage.completion_tokens ?? usage.output_tokens ?? tokens.output;
}

async function run(call) {
  const answer = await requestOf(call)(call.text, { stream: call.stream });
  const tokens = { input: 0, output: 0 };
  if (!call.stream) note(tokens, answer.usage);
  else
    for await (const event of answer) {
      if (call.leaves) return { left: true };  // leaving the loop aborts the request
      note(tokens, event.usage ?? event.message?.usage ?? event.response?.usage);
    }
  return { tokens: tokens.input + tokens.output };
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  for (const call of JSON.parse(line))
    run(call)
      .catch((fault) => ({ error: String(fault) }))
      .then((result) => process.stdout.write(JSON.stringify({ id: call.id, ...result }) + "\n"));
});
