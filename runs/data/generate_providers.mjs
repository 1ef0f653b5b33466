// Writes the provider table of `runs/provider.py` to stdout, by asking the pinned pi itself:
//
//   node runs/data/generate_providers.mjs [DIR OF @earendil-works/pi-ai] > runs/data/providers.json
//
// Every built-in provider is asked to resolve its credential under every combination of the variables that it
// reads; what it asks for and when it is content is the table. Nothing is typed by hand.
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const pi = resolve(process.argv[2] ?? join(here, "../../image/runner/node_modules/@earendil-works/pi-ai"));
const { version } = JSON.parse(readFileSync(join(pi, "package.json"), "utf8"));
const { builtinProviders } = await import(pathToFileURL(join(pi, "dist/providers/all.js")).href);

// Names whose value points at something of the host (a file, a profile, a metadata address): in a container
// they lead nowhere, and some of them would win over a key that works.
const BOUND_TO_THE_HOST = /_(FILE|PROFILE|URI|CREDENTIALS)$/;
// Variables of a bearer or OAuth token: an API key is never written under one of them.
const NOT_A_KEY = /OAUTH|AUTH_TOKEN|BEARER/;
const SENTINEL = "sentinel-of-the-generator";
const signal = new AbortController().signal;

async function ask(auth, values, asked, credential) {
  const ctx = {
    env: async (name) => {
      if (!asked.includes(name)) asked.push(name);
      return values[name];
    },
    fileExists: async () => false,
  };
  return auth.resolve({ ctx, credential, signal });
}

function* combinations(names) {
  for (let bits = 0; bits < 1 << names.length; bits++) yield names.filter((_, index) => bits & (1 << index));
}

const valued = (names) => Object.fromEntries(names.map((name) => [name, SENTINEL]));

async function namesAskedFor(auth) {
  const asked = [];
  for (let known = -1; known !== asked.length; ) {
    known = asked.length;
    for (const chosen of combinations([...asked])) await ask(auth, valued(chosen), asked);
  }
  return asked;
}

async function smallestThatSuffice(auth, names) {
  const enough = [];
  for (const chosen of [...combinations(names)].sort((a, b) => a.length - b.length)) {
    const covered = enough.some((smaller) => smaller.every((name) => chosen.includes(name)));
    if (!covered && (await ask(auth, valued(chosen), []))) enough.push(chosen);
  }
  return enough;
}

// The variable that does for pi exactly what a stored key does.
async function variableOfAKey(auth, needs) {
  for (const chosen of needs) {
    for (const name of chosen) {
      if (NOT_A_KEY.test(name)) continue;
      const rest = valued(chosen.filter((other) => other !== name));
      const fromVariable = await ask(auth, valued(chosen), []);
      const fromKey = await ask(auth, rest, [], { type: "api_key", key: SENTINEL });
      const text = JSON.stringify(fromKey?.auth ?? null);
      if (text.includes(SENTINEL) && text === JSON.stringify(fromVariable?.auth)) return name;
    }
  }
  return null;
}

// Further variables (an endpoint, a region, a session token) that pi's API modules read for the same vendor.
const readByApis = new Set();
for (const file of readdirSync(join(pi, "dist/api")).filter((name) => name.endsWith(".js"))) {
  const source = readFileSync(join(pi, "dist/api", file), "utf8");
  for (const [, name] of source.matchAll(/getProviderEnvValue\("([A-Z0-9_]+)"/g)) readByApis.add(name);
}
const vendor = (name) => name.split("_")[0];

async function row(provider) {
  const auth = provider.auth.apiKey;
  if (!auth) return { env: [], host: [], needs: [], key: null };
  const asked = await namesAskedFor(auth);
  const vendors = new Set(asked.map(vendor));
  const more = [...readByApis].filter((name) => vendors.has(vendor(name)) && !asked.includes(name)).sort();
  const names = [...asked, ...more];
  const env = names.filter((name) => !BOUND_TO_THE_HOST.test(name));
  const needs = await smallestThatSuffice(auth, asked.filter((name) => env.includes(name)));
  const host = names.filter((name) => !env.includes(name));
  return { env, host, needs, key: await variableOfAKey(auth, needs) };
}

const lines = [];
for (const provider of builtinProviders().sort((a, b) => (a.id < b.id ? -1 : 1))) {
  lines.push(`${JSON.stringify(provider.id)}: ${JSON.stringify(await row(provider))}`);
}
process.stdout.write(`{"v": 1, "piAi": ${JSON.stringify(version)}, "providers": {\n${lines.join(",\n")}\n}}\n`);
