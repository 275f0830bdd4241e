// A gRPC client for tests/system/grpc_js_test.py. Reads a call from each line of standard input, as JSON, and makes all calls at the same
// time. Prints a line for each message that arrives, and one for the end of each call. Octets are in base64.
//
// {"id", "target", "authority", "ca", "options", "method", "kind", "messages", "metadata", "deadline", "stays_open"} begins a call. The kind
// is unary, client, server or both, by the side that sends a stream. {"id", "send": message}, {"id", "cancel": true} and {"id", "end": true}
// change an open one.
"use strict";

const grpc = require("@grpc/grpc-js");
const readline = require("node:readline");

const clients = new Map();
const calls = new Map();

const octets = (value) => value;
const decode = (text) => Buffer.from(text, "base64");
const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");

// Calls with the same target and options share a client, and so a connection.
function clientOf({ target, ca, options }) {
  const name = JSON.stringify([target, ca, options]);
  if (!clients.has(name)) {
    const credentials = ca ? grpc.credentials.createSsl(Buffer.from(ca)) : grpc.credentials.createInsecure();
    const names = ca ? { "grpc.ssl_target_name_override": "localhost", "grpc.default_authority": "localhost" } : {};
    const sizes = { "grpc.max_receive_message_length": -1, "grpc.use_local_subchannel_pool": 1 };
    clients.set(name, new grpc.Client(target, credentials, { ...names, ...sizes, ...options }));
  }
  return clients.get(name);
}

function metadataOf(pairs) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of pairs) metadata.add(name, name.endsWith("-bin") ? decode(value) : value);
  return metadata;
}

function pairsOf(metadata) {
  const pairs = [];
  for (const name of Object.keys(metadata.getMap()))
    for (const value of metadata.get(name)) pairs.push([name, Buffer.isBuffer(value) ? value.toString("base64") : value]);
  return pairs;
}

function begin(asked) {
  const { id, kind, method, messages } = asked;
  const client = clientOf(asked);
  const metadata = metadataOf(asked.metadata);
  const options = { deadline: Date.now() + asked.deadline };
  const receive = (message) => print({ id, message: message.toString("base64") });
  const answer = (error, message) => error || receive(message);
  const first = decode(messages[0] ?? "");
  const call = {
    unary: () => client.makeUnaryRequest(method, octets, octets, first, metadata, options, answer),
    client: () => client.makeClientStreamRequest(method, octets, octets, metadata, options, answer),
    server: () => client.makeServerStreamRequest(method, octets, octets, first, metadata, options),
    both: () => client.makeBidiStreamRequest(method, octets, octets, metadata, options),
  }[kind]();
  let initial = [];
  calls.set(id, call);
  call.on("metadata", (received) => (initial = pairsOf(received)));
  call.on("error", () => {}); // the status says the same
  call.on("status", ({ code, details, metadata: trailing }) => {
    calls.delete(id);
    setImmediate(() => print({ id, code, details, initial, trailing: pairsOf(trailing) })); // after the last message
  });
  if (kind === "server" || kind === "both") call.on("data", receive);
  if (kind === "client" || kind === "both") {
    for (const message of messages) call.write(decode(message));
    if (!asked.stays_open) call.end();
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const asked = JSON.parse(line);
  const call = calls.get(asked.id);
  if (asked.method) begin(asked);
  else if (asked.send !== undefined) call?.write(decode(asked.send));
  else if (asked.cancel) call?.cancel();
  else if (asked.end) call?.end();
}).on("close", () => process.exit(0));
