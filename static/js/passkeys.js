// Passkeys: a form with data-passkey="get" or "create" asks the browser for one, and sends what it
// answers. Its data-options are JSON, or data-begin is the address that they are fetched from.
(() => {
  const understands =
    window.PublicKeyCredential?.parseRequestOptionsFromJSON &&
    window.PublicKeyCredential?.parseCreationOptionsFromJSON;

  const optionsOf = async (form) => {
    if (form.dataset.options) return JSON.parse(form.dataset.options);
    const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
    const answer = await fetch(form.dataset.begin, {
      method: "POST",
      headers: { "X-CSRFToken": token },
    });
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.json();
  };

  const ask = async (form) => {
    const options = await optionsOf(form);
    if (form.dataset.passkey === "create") {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
      return navigator.credentials.create({ publicKey });
    }
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
    return navigator.credentials.get({ publicKey });
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const problem = form.querySelector("[data-problem]");
    if (!understands) {
      form.querySelector("[data-unsupported]")?.removeAttribute("hidden");
      continue;
    }
    form.querySelector("[data-supported]")?.removeAttribute("hidden");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      problem.hidden = true;
      try {
        form.elements.answer.value = JSON.stringify((await ask(form)).toJSON());
      } catch {
        problem.hidden = false;
        return;
      }
      form.submit();
    });
  }
})();
