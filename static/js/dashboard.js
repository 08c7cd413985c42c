// The dashboard: what is under the pointer is told beside the number, and figures stay fresh.
(() => {
  const LEFT = 38;
  const RIGHT = 10;
  const WIDTH = 360;
  const figures = document.getElementById("figures");
  if (!figures) return;

  const tell = (svg, place) => {
    const chart = svg.closest(".chart");
    const rows = chart.querySelector("tbody").rows;
    const heads = [...chart.querySelectorAll("thead th")].slice(1);
    const cells = [...rows[place].cells];
    const values = heads.map((head, n) => (heads.length > 1 ? `${head.textContent} ` : "") + cells[n + 1].textContent);
    const about = chart.querySelector("[data-about]");
    about.dataset.was ??= about.textContent;
    about.textContent = `${cells[0].textContent}: ${values.join(", ")}`;
    const x = LEFT + ((WIDTH - LEFT - RIGHT) * (place + 0.5)) / rows.length;
    const cursor = svg.querySelector("[data-cursor]");
    cursor.setAttribute("transform", `translate(${x})`);
    cursor.setAttribute("visibility", "visible");
  };

  const untell = (svg) => {
    const about = svg.closest(".chart").querySelector("[data-about]");
    if (about.dataset.was !== undefined) about.textContent = about.dataset.was;
    delete about.dataset.was;
    svg.querySelector("[data-cursor]").setAttribute("visibility", "hidden");
  };

  let told = null;
  figures.addEventListener("pointermove", (event) => {
    const svg = event.target.closest("svg[data-parts]");
    if (told && told !== svg) untell(told);
    told = svg;
    if (!svg) return;
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const parts = Number(svg.dataset.parts);
    const place = Math.floor(((x - LEFT) / (WIDTH - LEFT - RIGHT)) * parts);
    if (place >= 0 && place < parts) tell(svg, place);
    else untell(svg);
  });
  figures.addEventListener("pointerleave", () => {
    if (told) untell(told);
    told = null;
  });

  // Open tables stay open and scrolled where they were; nobody's reading is disturbed.
  const refresh = async () => {
    if (document.hidden || told || figures.contains(document.activeElement)) return;
    const answer = await fetch(location.href, { headers: { "X-Part": "figures" } });
    if (!answer.ok || answer.redirected) return;
    const open = [...figures.querySelectorAll("details[open]")];
    const kept = open.map((each) => [each.id, each.querySelector(".table").scrollTop]);
    figures.innerHTML = await answer.text();
    for (const [id, top] of kept) {
      const details = document.getElementById(id);
      if (!details) continue;
      details.open = true;
      details.querySelector(".table").scrollTop = top;
    }
  };
  setInterval(() => refresh().catch(() => { /* the next time, then */ }), 1000 * Number(figures.dataset.refresh));
})();
