// Reads messages ExportTraceServiceRequest from standard input, one a line in base64, and writes each as one line of JSON. The
// messages are OpenTelemetry's own, from npm's @opentelemetry/otlp-transformer in the folder that the first argument names.
"use strict";
const path = require("path");
const root = require(path.resolve(process.argv[2], "node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js"));
const message = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const decoded = message.decode(Buffer.from(line, "base64"));
  process.stdout.write(JSON.stringify(message.toObject(decoded, { longs: String, bytes: String, enums: String })) + "\n");
});
