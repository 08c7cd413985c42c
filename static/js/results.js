// What one does with results: the keyboard, judging, further passages in their place, and finding
// a value in a long facet. All of it reads the page as it is when something happens, because
// swap.js may have changed it.
(() => {
  const box = document.getElementById("q");
  const links = () => [...document.querySelectorAll("[data-hit] h2 a")];
  const hitOf = (element) => element.closest?.("[data-hit]") ?? null;

  const part = async (url, options = {}) => {
    const headers = { "HX-Request": "true" };
    const response = await fetch(url, { ...options, headers });
    const elsewhere = response.headers.get("HX-Redirect");
    if (elsewhere) location.assign(elsewhere); // logged out meanwhile
    if (!response.ok) throw new Error(`answered ${response.status}`);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  };
  const reveal = (root) => {
    for (const element of root.querySelectorAll("[data-js]")) element.hidden = false;
  };

  // --- the keyboard

  const move = (step) => {
    const all = links();
    const at = all.indexOf(hitOf(document.activeElement)?.querySelector("h2 a"));
    if (at === 0 && step < 0) box.focus();
    else all[at < 0 ? 0 : Math.min(at + step, all.length - 1)]?.focus();
  };
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const keys = {
    e: (hit) => {
      const there = hit?.querySelector(".reasons");
      if (there) there.open = !there.open;
      else hit?.querySelector("[data-why]")?.click();
    },
    s: (hit) => hit?.querySelector("[data-similar]")?.click(),
    c: (hit) => hit?.querySelector("[data-copylink]")?.click(),
    n: () => document.querySelector(".pages [rel=next]")?.click(),
    p: () => document.querySelector(".pages [rel=prev]")?.click(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const typing = event.target.closest("input, textarea, select, dialog[open]");
    const inside = event.target.closest("details.menu, .segments");
    const step = steps[event.key];
    if (step && links().length && !inside && (!typing || (event.target === box && step > 0))) {
      event.preventDefault();
      move(step);
    } else if (!typing && document.documentElement.dataset.keys !== "off") {
      keys[event.key]?.(hitOf(document.activeElement));
    }
  });

  // --- judging

  const judge = async (button) => {
    const form = document.getElementById("judge");
    const group = button.closest(".grades");
    const at = [...group.children].indexOf(button);
    const body = new FormData(form);
    body.append(button.name, button.value);
    group.setAttribute("aria-busy", "true");
    try {
      const found = await part(form.action, { method: "POST", body });
      const fresh = found.querySelector(".grades");
      group.replaceWith(fresh);
      fresh.children[at].focus();
      form.querySelector("[data-golden]").replaceWith(found.querySelector("[data-golden]"));
    } catch {
      form.requestSubmit(button); // the page then says what is wrong
    }
  };

  // --- why a hit is where it is

  // The page with all reasons is fetched once, when the first is asked for.
  let explained = { address: "", page: null };
  const explain = async (link) => {
    const [address, id] = link.href.split("#");
    if (explained.address !== address) explained = { address, page: part(address) };
    link.setAttribute("aria-busy", "true");
    try {
      const reasons = (await explained.page).getElementById(id)?.querySelector(".reasons");
      const isFocused = document.activeElement === link;
      link.replaceWith(reasons.cloneNode(true));
      if (isFocused) document.querySelector(`#${id} .reasons > summary`).focus();
    } catch {
      location.assign(link.href);
    }
  };

  // --- further passages of a document

  // All are of one document, so that its title says nothing: the headings above each do.
  const headByPath = (item) => {
    const path = item.querySelector(".path");
    if (!path) return;
    const headings = [...path.children].map((heading) => heading.textContent);
    item.querySelector("h2 a").textContent = headings.join(" › ");
    path.remove();
  };

  const more = async (link) => {
    const hit = hitOf(link);
    const there = hit.querySelector(".further");
    if (there) {
      there.hidden = !there.hidden;
      link.setAttribute("aria-expanded", String(!there.hidden));
      return;
    }
    link.setAttribute("aria-busy", "true");
    try {
      const found = await part(link.href);
      const list = document.createElement("ol");
      list.className = "further";
      const others = found.querySelectorAll(`[data-hit]:not(#hit-${link.dataset.more})`);
      list.append(...others);
      reveal(list);
      for (const item of others) headByPath(item);
      hit.append(list);
      link.setAttribute("aria-expanded", "true");
    } catch {
      location.assign(link.href);
    }
    link.removeAttribute("aria-busy");
  };

  document.addEventListener("click", (event) => {
    const grade = event.target.closest("button[form=judge]");
    const further = event.target.closest("[data-more]");
    const filters = event.target.closest("[data-filters]");
    const why = event.target.closest("[data-why]");
    const copy = event.target.closest("[data-copylink]");
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    // site.js copies it then.
    if (copy) copy.dataset.copy = hitOf(copy).querySelector("h2 a").href;
    if (why && plain) {
      event.preventDefault();
      explain(why);
    } else if (grade) {
      event.preventDefault();
      judge(grade);
    } else if (further && plain) {
      event.preventDefault();
      more(further);
    } else if (filters) {
      event.preventDefault();
      const isOpen = document.getElementById("filters").classList.toggle("open");
      const next = isOpen ? "#filters [data-filters]" : ".toolbar [data-filters]";
      document.querySelector(next).focus();
    }
  }, true);

  // --- a value of a long facet

  let typed = 0;
  const find = async (input) => {
    const turn = ++typed;
    const query = new URLSearchParams(input.dataset.parameters);
    query.set("facet", input.dataset.facet);
    query.set("prefix", input.value);
    try {
      const found = await part(`/facets/?${query}`);
      if (turn !== typed) return;
      const list = document.getElementById(input.getAttribute("aria-controls"));
      list.replaceChildren(...found.querySelectorAll("li"));
      const rest = list.parentElement.querySelector(".rest");
      if (rest) rest.hidden = input.value !== "";
    } catch { /* what was there stays */ }
  };
  let timer = 0;
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-facet]")) return;
    clearTimeout(timer);
    timer = setTimeout(() => find(event.target), 150);
  });
})();
