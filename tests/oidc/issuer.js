// An issuer of tokens for tests/system/token_keys_test.py: the library oidc-provider behind HTTPS.
//
// Arguments: certificate, key, port (0: any). Prints {"port"}. Each line of standard input is a request, and is answered by a line:
//   {"rotate": ALGORITHM}   makes a new key, which signs from now on; the set keeps the older ones. Answers {"kid"}.
//   {"forget": true}        removes all keys but the newest one. Answers {"kid"}.
//   {"claims": {…}}         asks the provider's token endpoint for a token with these claims. Answers {"token"}.
//   {"count": true}         answers {"fetches"}: how often the key set was fetched.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const https = require("node:https");
const path = require("node:path");
const readline = require("node:readline");

const API = "https://api.example.com";
const CLIENT = { client_id: "robot", client_secret: "robot-secret-of-the-test", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] };
const KINDS = { ES256: ["ec", { namedCurve: "P-256" }], RS256: ["rsa", { modulusLength: 2048 }], EdDSA: ["ed25519", {}] };
const [certificate, key, port] = process.argv.slice(2);

console.info = console.warn = console.error;  // the library's notices; standard output has the answers alone

let keys = [];  // private keys as JWK, the newest first
let handler = (request, response) => response.writeHead(503).end();  // until there is a key
let fetches = 0;
let claims = {};

const server = https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }, (request, response) => {
  if (request.url === "/jwks") fetches += 1;
  handler(request, response);
});

// Makes a provider with the present keys. The newest key of an algorithm signs. import() ignores NODE_PATH.
async function provide() {
  const { Provider } = await import(path.join(process.env.NODE_PATH, "oidc-provider/lib/index.js"));
  const alg = keys[0].alg;
  const provider = new Provider(`https://localhost:${server.address().port}`, {
    clients: [{ ...CLIENT, id_token_signed_response_alg: alg }],
    jwks: { keys },
    extraTokenClaims: () => claims,
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => API,
        getResourceServerInfo: () => ({ scope: "", audience: "api", accessTokenFormat: "jwt", jwt: { sign: { alg } } }),
      },
    },
  });
  provider.on("server_error", (_, error) => console.error(error));
  handler = provider.callback();
}

async function rotate(algorithm) {
  const [kind, options] = KINDS[algorithm];
  const made = crypto.generateKeyPairSync(kind, options).privateKey.export({ format: "jwk" });
  keys.unshift({ ...made, kid: crypto.randomUUID(), alg: algorithm, use: "sig" });
  await provide();
}

function ask(body) {
  const options = {
    host: "localhost", port: server.address().port, path: "/token", method: "POST", ca: fs.readFileSync(certificate),
    headers: { "content-type": "application/x-www-form-urlencoded" }, auth: `${CLIENT.client_id}:${CLIENT.client_secret}`,
  };
  return new Promise((resolve, reject) => {
    const request = https.request(options, async (response) => {
      let text = "";
      for await (const piece of response) text += piece;
      resolve(JSON.parse(text));
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function serve({ rotate: algorithm, forget, claims: wanted, count }) {
  if (algorithm) await rotate(algorithm);
  if (forget) {
    keys = keys.slice(0, 1);
    await provide();
  }
  if (count) return { fetches };
  if (!wanted) return { kid: keys[0].kid };
  claims = wanted;
  const answer = await ask("grant_type=client_credentials");
  return answer.access_token ? { token: answer.access_token } : { error: answer };
}

server.listen(Number(port), "127.0.0.1", async () => {
  await rotate("ES256");
  console.log(JSON.stringify({ port: server.address().port }));
  for await (const line of readline.createInterface({ input: process.stdin })) console.log(JSON.stringify(await serve(JSON.parse(line))));
  process.exit(0);
});
