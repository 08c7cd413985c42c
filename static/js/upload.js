// Dropping and choosing files and folders, and sending them with their paths and a progress bar.
// Without this script the form sends what its file input holds.
(() => {
  const form = document.querySelector("[data-upload]");
  if (!form) return;
  const find = (selector) => form.querySelector(selector);
  const maxBytes = Number(form.dataset.maxBytes);
  const maxFiles = Number(form.dataset.maxFiles);
  const chosen = new Map(); // path → File
  const bars = new Map(); // path → its bar and its words, of the rows that are shown
  let request = null;

  const size = (bytes) =>
    bytes < 1024 ? interpolate(ngettext("%(bytes)s byte", "%(bytes)s bytes", bytes), { bytes }, true)
      : bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(0)} KB`
        : `${new Intl.NumberFormat(document.documentElement.lang, { minimumFractionDigits: 1, maximumFractionDigits: 1, useGrouping: false }).format(bytes / 1024 ** 2)} MB`;
  const fill = (text, values) => interpolate(text, values, true);
  const duration = (seconds) =>
    seconds < 60 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
  const say = (text) => { find("[data-said]").textContent = text; };
  const sendable = () => [...chosen].filter(([, file]) => file.size <= maxBytes);

  const row = (path, file) => {
    const item = document.createElement("li");
    const name = item.appendChild(document.createElement("span"));
    name.className = "name";
    name.textContent = path;
    const detail = item.appendChild(document.createElement("span"));
    detail.className = file.size > maxBytes ? "why" : "quiet";
    detail.textContent = file.size > maxBytes
      ? fill(gettext("%(size)s: too large, %(limit)s a file are allowed. It is left out."), { size: size(file.size), limit: size(maxBytes) })
      : size(file.size);
    if (file.size <= maxBytes) {
      const bar = item.appendChild(document.createElement("progress"));
      bar.max = 1;
      bar.value = 0;
      bar.hidden = true;
      bar.setAttribute("aria-label", fill(gettext("How much of %(path)s is sent"), { path }));
      bars.set(path, { bar, detail, file });
    }
    const remove = item.appendChild(document.createElement("button"));
    remove.type = "button";
    remove.className = "plain";
    remove.textContent = gettext("Remove");
    remove.setAttribute("aria-label", fill(gettext("Remove %(path)s"), { path }));
    remove.addEventListener("click", () => { chosen.delete(path); show(); });
    return item;
  };

  const show = () => {
    const files = sendable();
    const bytes = files.reduce((sum, [, file]) => sum + file.size, 0);
    const summary = fill(ngettext("%(count)s file, %(size)s", "%(count)s files, %(size)s", files.length), { count: files.length, size: size(bytes) });
    find("[data-chosen]").hidden = chosen.size === 0;
    find("[data-count]").textContent = summary;
    bars.clear();
    find("[data-files]").replaceChildren(...[...chosen].slice(0, 200).map(([path, file]) => row(path, file)));
    if (chosen.size > 200) {
      const rest = document.createElement("li");
      rest.textContent = fill(gettext("and %(count)s more"), { count: chosen.size - 200 });
      find("[data-files]").append(rest);
    }
    find("[data-send-label]").textContent = files.length ? fill(gettext("Upload %(files)s"), { files: summary }) : gettext("Upload");
    say(chosen.size ? summary : "");
  };

  const fail = (message) => {
    const note = document.createElement("div");
    note.className = "note bad";
    note.appendChild(document.createElement("p")).textContent = message;
    find("#upload-errors").replaceChildren(note);
  };

  const add = (files) => {
    find("#upload-errors").replaceChildren();
    for (const [path, file] of files) chosen.set(path, file);
    if (chosen.size > maxFiles) {
      fail(fill(gettext("These are %(count)s files; %(limit)s at once are allowed. Remove some, send the rest in parts, or load the folder with “manage.py ingest”."), { count: chosen.size, limit: maxFiles }));
    }
    show();
  };

  const entriesOf = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      return [[entry.fullPath.replace(/^\//, ""), file]];
    }
    const reader = entry.createReader();
    const found = [];
    for (;;) { // a directory is read in batches, until one is empty
      const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!batch.length) return found;
      for (const child of batch) {
        if (!child.name.startsWith(".")) found.push(...(await entriesOf(child)));
      }
    }
  };

  for (const input of [find("#id_files"), find("#folder")]) {
    const take = () => {
      add([...input.files].map((file) => [file.webkitRelativePath || file.name, file]));
      input.value = "";
    };
    input.addEventListener("change", take);
    if (input.files.length) take(); // chosen before this script was there
  }

  const overlay = document.querySelector("[data-overlay]");
  let depth = 0;
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    depth += 1;
    overlay.hidden = false;
  });
  document.addEventListener("dragleave", (event) => {
    if (!hasFiles(event)) return;
    depth -= 1;
    overlay.hidden = depth > 0 ? false : true;
  });
  document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    overlay.hidden = true;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const plain = [...event.dataTransfer.files].map((file) => [file.name, file]);
    try {
      add(entries.length ? (await Promise.all(entries.map(entriesOf))).flat() : plain);
    } catch {
      fail(gettext("Part of the folder could not be read. Check that you may open it, or choose the files one by one."));
    }
  });

  const sending = (yes) => {
    find("[data-sending]").hidden = !yes;
    find("[data-send]").disabled = yes;
    for (const remove of form.querySelectorAll("[data-files] button")) remove.hidden = yes;
    for (const { bar, detail, file } of bars.values()) {
      bar.hidden = !yes;
      bar.value = 0;
      detail.textContent = yes ? gettext("waiting") : size(file.size);
    }
  };

  // Files go out one after the other, in the order of their rows.
  const showEach = (sent, seconds) => {
    let before = 0;
    for (const [path, file] of sendable()) {
      const row = bars.get(path);
      const share = Math.min(Math.max((sent - before) / Math.max(file.size, 1), 0), 1);
      before += file.size;
      if (!row || row.bar.value === 1) continue;
      row.bar.value = share;
      const left = ((1 - share) * file.size) / Math.max(sent / seconds, 1);
      row.detail.textContent = share >= 1 ? gettext("sent") : share > 0
        ? fill(gettext("%(share)s % of %(size)s · %(left)s left"), { share: Math.floor(share * 100), size: size(file.size), left: duration(left) })
        : gettext("waiting");
    }
  };

  const progress = (event, began) => {
    if (!event.lengthComputable) return;
    const rate = event.loaded / Math.max((performance.now() - began) / 1000, 0.1);
    const left = (event.total - event.loaded) / rate;
    const bytes = sendable().reduce((sum, [, file]) => sum + file.size, 0);
    showEach(event.loaded - (event.total - bytes), Math.max((performance.now() - began) / 1000, 0.1));
    find("#sent").value = event.loaded / event.total;
    find("[data-sent-label]").textContent = event.loaded < event.total
      ? fill(gettext("Sending %(sent)s of %(size)s · %(rate)s a second · %(left)s left"), { sent: size(event.loaded), size: size(event.total), rate: size(rate), left: duration(left) })
      : gettext("Sent. The site is storing the files…");
  };

  const finish = () => {
    sending(false);
    if (request.status < 300) {
      location.assign(request.responseURL); // the run that the site went on to
      return;
    }
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    const notes = page.querySelectorAll("#upload-errors .note, main .blank p:not(.status):not(.actions)");
    fail([...notes].map((note) => note.textContent.trim()).join(" ")
      || fill(gettext("The site answered %(status)s. Nothing was stored: try again in a minute."), { status: request.status }));
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const files = sendable();
    if (!files.length) {
      fail(gettext("No file is chosen. Choose at least one."));
      return;
    }
    if (files.length > maxFiles) {
      add([]);
      return;
    }
    const data = new FormData();
    data.set("csrfmiddlewaretoken", find("[name=csrfmiddlewaretoken]").value);
    for (const box of form.querySelectorAll("[type=checkbox]:checked")) data.append(box.name, box.value);
    data.set("paths", JSON.stringify(files.map(([path]) => path)));
    for (const [, file] of files) data.append("files", file, file.name);
    const began = performance.now();
    request = new XMLHttpRequest();
    request.upload.addEventListener("progress", (sent) => progress(sent, began));
    request.addEventListener("load", finish);
    request.addEventListener("error", () => {
      sending(false);
      fail(gettext("The connection broke. Nothing was stored: check it, and upload again."));
    });
    request.addEventListener("abort", () => { sending(false); say(gettext("Cancelled. Nothing was stored.")); });
    request.open("POST", location.pathname);
    request.send(data);
    sending(true);
  });
  find("[data-cancel]").addEventListener("click", () => request?.abort());
})();
