// Server-sent events of a POST, which EventSource cannot send: https://html.spec.whatwg.org/multipage/server-sent-events.html

export class Refusal extends Error {
  constructor(detail, { code = "", status = 0 } = {}) {
    super(detail);
    this.code = code;
    this.status = status;
  }
}

const AWAY = gettext("The site does not respond. Check your connection, then try again.");
const BROKEN = gettext("The connection broke before the answer was complete. Try again.");

// Yields {name, data} until the answer is complete; throws Refusal in words for a person.
export async function* stream(url, body, { signal, token }) {
  const response = await post(url, body, { signal, token });
  if (!response.ok) throw await refusalOf(response);
  let isOver = false;
  try {
    for await (const event of events(response.body)) {
      if (event.name === "error") throw new Refusal(event.data.detail, event.data);
      isOver ||= event.name === "done";
      yield event;
    }
  } catch (error) {
    if (error instanceof Refusal || error.name === "AbortError") throw error;
    throw new Refusal(BROKEN);
  }
  if (!isOver) throw new Refusal(BROKEN);
}

async function post(url, body, { signal, token }) {
  try {
    return await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream", "X-CSRFToken": token },
      body: JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(AWAY);
  }
}

async function refusalOf(response) {
  const told = await response.json().catch(() => ({}));
  const detail = told.errors?.[0]?.detail ?? told.detail;
  const words = detail || interpolate(gettext("The site answered with an error (%(status)s). Try again in a minute."), { status: response.status }, true);
  return new Refusal(words, { code: told.errors?.[0]?.code ?? told.code, status: response.status });
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parsed(block);
      if (event) yield event;
    }
  }
}

function parsed(block) {
  const lines = block.split("\n");
  const field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
  const data = field("data").join("\n");
  return data ? { name: field("event")[0] ?? "message", data: JSON.parse(data) } : null;
}
