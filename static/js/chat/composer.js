// The box in which questions are typed, and what is chosen beside it.

const DRAFT = "chat-draft";

export class Composer {
  // `draft` names what is kept of a question while the page is away; nothing without it.
  constructor(form, { onAsk, onStop, draft = DRAFT }) {
    this.form = form;
    this.draft = draft;
    this.box = form.elements.question;
    this.onAsk = onAsk;
    this.#restore();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask();
    });
    form.querySelector("[data-stop]").addEventListener("click", onStop);
    form.addEventListener("change", () => this.#labelCollections());
    this.box.addEventListener("keydown", (event) => {
      const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing;
      if (!sends) return;
      event.preventDefault();
      this.#ask();
    });
    this.box.addEventListener("input", () => this.#keep(this.box.value));
    this.#labelCollections();
    form.dataset.ready = "";
  }

  // What goes along with every question. A pipeline says for itself which model it asks, and what
  // of the memory.
  options({ continues }) {
    const data = new FormData(this.form);
    const ticked = data.getAll("collection");
    // A conversation goes on with the collections that it was asked of last, unless some are named.
    const collections = ticked.length || !continues ? ticked : this.#all();
    const pipeline = data.get("pipeline");
    if (pipeline) return { collections, pipeline };
    const model = data.get("model");
    return { collections, ...(model && { model }), memory: data.get("memory") === "1" };
  }

  #all() {
    return [...this.form.querySelectorAll("[name=collection]")].map((box) => box.value).slice(0, 100);
  }

  get token() {
    return this.form.elements.csrfmiddlewaretoken.value;
  }

  set busy(busy) {
    this.form.querySelector("[data-send]").hidden = busy;
    this.form.querySelector("[data-stop]").hidden = !busy;
    this.isBusy = busy;
  }

  // Gives a question back that could not be asked.
  offer(question) {
    if (!this.box.value.trim()) this.box.value = question;
    this.#keep(this.box.value);
  }

  #ask() {
    const question = this.box.value.trim();
    if (!question || this.isBusy) return;
    this.box.value = "";
    this.#keep("");
    for (const menu of this.form.querySelectorAll("details[open]")) menu.open = false;
    this.onAsk(question);
  }

  #labelCollections() {
    const label = this.form.querySelector("[data-chosen]");
    if (!label) return;
    const ticked = [...this.form.querySelectorAll("[name=collection]:checked")];
    const [first] = ticked.map((box) => box.parentElement.textContent.trim());
    label.textContent = ticked.length > 1 ? interpolate(gettext("%(first)s and %(count)s more"), { first, count: ticked.length - 1 }, true) : (first ?? label.dataset.all);
  }

  #keep(text) {
    try {
      if (this.draft) sessionStorage.setItem(this.draft, text);
    } catch { /* it lives in the box, then */ }
  }

  #restore() {
    try {
      if (this.draft) this.box.value ||= sessionStorage.getItem(this.draft) ?? "";
    } catch { /* nothing was kept */ }
  }
}
