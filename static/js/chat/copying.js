// An answer as text with [n] in it, and below it what the numbers stand for.

export async function copyAnswer(button) {
  const label = button.querySelector("[data-label]");
  try {
    await navigator.clipboard.writeText(asText(button.closest(".turn")));
    label.textContent = gettext("Copied");
  } catch {
    label.textContent = gettext("Copying is not allowed here");
  }
}

function asText(turn) {
  const said = turn.querySelector("[data-said]");
  const bare = [...said.querySelectorAll(".cite")].map((cite) => [cite, cite.textContent]);
  const links = [...said.querySelectorAll("[data-uncopied], svg")];
  // Shown for a moment as it is to be copied: innerText follows what is laid out.
  for (const [cite, number] of bare) cite.textContent = `[${number}]`;
  for (const link of links) link.setAttribute("hidden", "");
  const text = said.innerText.trim();
  for (const [cite, number] of bare) cite.textContent = number;
  for (const link of links) link.removeAttribute("hidden");
  const cited = [...turn.querySelectorAll(".source.cited")].map(sourceLine);
  return [text, cited.join("\n")].filter(Boolean).join("\n\n");
}

function sourceLine(card) {
  const words = (name) => card.querySelector(`[data-slot="${name}"]`).textContent.trim();
  return `[${card.dataset.source}] ${words("title")}, ${words("place")}, ${card.querySelector("a[data-slot]").href}`;
}
