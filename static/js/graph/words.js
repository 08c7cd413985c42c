// The words beside the drawing: parts of the page that the server renders, swapped in place.

export class Words {
  constructor(explorer) {
    this.explorer = explorer;
    this.spoken = explorer.querySelector("[data-spoken]");
  }

  say(text) {
    this.spoken.textContent = text;
  }

  // All parts of another address. The old ones stay until the new ones are there.
  async replace(url, signal) {
    try {
      const page = await this.#page(url, signal);
      const told = page.querySelector("[data-told]")?.textContent.trim() ?? "";
      for (const part of this.explorer.querySelectorAll("[data-part]")) {
        this.#swap(part, page.getElementById(part.id));
      }
      document.title = page.title;
      this.say(told);
    } catch (error) {
      if (error.name !== "AbortError") this.say(gettext("The page could not be loaded. Try again."));
    }
  }

  // Only what is said of one thing. Quick steps from node to node ask once, at the end.
  about(url, id) {
    this.name(id);
    clearTimeout(this.timer);
    this.asked?.abort();
    this.timer = setTimeout(() => this.#about(url), 120);
  }

  async #about(url) {
    this.asked = new AbortController();
    const part = this.explorer.querySelector("#about");
    try {
      const page = await this.#page(new URL(part.dataset.source + url.search, url), this.asked.signal);
      const fresh = page.getElementById("about");
      this.#swap(part, fresh);
      this.say(fresh?.dataset.says ?? "");
    } catch (error) {
      if (error.name !== "AbortError") this.say(gettext("What is known of it could not be loaded."));
    }
  }

  async #page(url, signal) {
    const response = await fetch(url, { signal });
    if (response.redirected) location.reload();
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  // The new part in place of the old one; what was focused in it is focused again.
  #swap(old, fresh) {
    if (!fresh) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const place = focused?.id || focused?.getAttribute("href");
    document.adoptNode(fresh);
    for (const element of fresh.querySelectorAll("[data-js]")) element.hidden = false;
    old.replaceWith(fresh);
    if (!focused) return;
    const same = [...fresh.querySelectorAll("a, button")].find(
      (element) => element.id === place || element.getAttribute("href") === place,
    );
    (same ?? fresh.querySelector("a, button"))?.focus({ preventScroll: true });
    this.name(new URL(location.href).searchParams.get("at"));
  }

  // Marks the row of a thing in the list.
  name(id) {
    for (const row of this.explorer.querySelectorAll("[data-row]")) {
      if (row.dataset.row === id) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  busy(canvas, isBusy) {
    canvas.setAttribute("aria-busy", String(isBusy));
    canvas.querySelector("[data-failed]").hidden = true;
    clearTimeout(this.waiting);
    const wait = canvas.querySelector("[data-wait]");
    if (isBusy) this.waiting = setTimeout(() => (wait.hidden = false), 150);
    else wait.hidden = true;
  }

  failed(canvas, error) {
    this.busy(canvas, false);
    const note = canvas.querySelector("[data-failed]");
    note.querySelector("[data-why]").textContent = error.message;
    note.hidden = false;
  }
}
