/**
 * A model server that speaks the chat-completions stream and answers what it was told to.
 *
 * `scripts` maps a model id to its replies; the nth request for (key, model) gets the nth, the last one repeats:
 *   { say, calls: [{ name, arguments }], finish, usage }   an answer; usage null = none is sent
 *   { status, body, headers }                              an HTTP error
 *   { stall: true }                                        the first words, then silence
 * Each request is recorded: { key, model, path, system, tools, messages }.
 */
import { createServer } from "node:http";

export async function startStub({ scripts, host = "127.0.0.1", port = 0, onRequest = () => {} }) {
  const requests = [];
  const server = createServer((request, response) => {
    readBody(request).then((body) => {
      const record = describe(request, body);
      const nth = requests.filter((one) => one.key === record.key && one.model === record.model).length;
      requests.push(record);
      onRequest(record);
      const replies = scripts[record.model];
      const reply = replies?.[Math.min(nth, replies.length - 1)] ?? { status: 404 };
      answer(response, reply, record.model);
    }, () => response.destroy());
  });
  await new Promise((resolve) => server.listen(port, host, resolve));
  return {
    url: `http://${host}:${server.address().port}/v1`,
    requests,
    close: () => new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    }),
  };
}

async function readBody(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}

function describe(request, body) {
  const messages = (body.messages ?? []).map(({ role, content }) => ({ role, text: textOf(content) }));
  return {
    key: (request.headers.authorization ?? "").replace(/^Bearer /, ""),
    model: body.model,
    path: request.url,
    system: messages.filter(({ role }) => role === "system" || role === "developer").map(({ text }) => text).join("\n"),
    tools: (body.tools ?? []).map((tool) => tool.function?.name ?? tool.name),
    messages,
  };
}

function textOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("");
}

function answer(response, reply, model) {
  if (reply.status) {
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    response.end(JSON.stringify(reply.body ?? { error: { message: `status ${reply.status} as told`, type: "stub" } }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (data) => response.write(`data: ${JSON.stringify({ id: "stub", object: "chat.completion.chunk", created: 0, model, ...data })}\n\n`);
  const delta = (change, finish = null) => send({ choices: [{ index: 0, delta: change, finish_reason: finish }] });
  delta({ role: "assistant", content: reply.say ?? "" });
  if (reply.stall) return;
  const calls = reply.calls ?? [];
  calls.forEach((call, index) => {
    const id = `call_${Date.now()}_${Math.random().toString(36).slice(2)}_${index}`;
    delta({ tool_calls: [{ index, id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.arguments) } }] });
  });
  delta({}, reply.finish ?? (calls.length > 0 ? "tool_calls" : "stop"));
  if (reply.usage !== null) send({ choices: [], usage: usageOf(reply.usage) });
  response.end("data: [DONE]\n\n");
}

function usageOf({ prompt = 100, cached = 0, completion = 20, reasoning = 0 } = {}) {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}
