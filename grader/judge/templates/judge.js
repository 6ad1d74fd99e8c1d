// Keeps the live parts of a page up to date, and accepts dropped files. Without this script every page still works: it
// shows the state at the time of loading, and the form submits.
"use strict";
const parts = [...document.querySelectorAll("[data-part]")];
const OFTEN_MS = 700, POLL_MS = 5000, SPREAD_MS = 1500, RETRY_MS = 2000, TRIES = 30;

// What a link or button is for. Its place in the page does not say this: rows come and go.
const identity = (one) => [one.tagName, one.getAttribute("href"), one.ariaLabel ?? one.textContent,
  ...[...(one.closest("form")?.elements ?? [])].map((field) => field.value)].join("\n");

for (const part of parts) {
  let etag = "", last = part.innerHTML, due = 0;
  const load = async () => {
    due = 0;
    try {
      const headers = { Accept: "text/html;part=live", ...(etag ? { "If-None-Match": etag } : {}) };
      const answer = await fetch(part.dataset.part, { headers });
      part.classList.toggle("stale", !answer.ok && answer.status !== 304);
      if (!answer.ok) return;
      etag = answer.headers.get("ETag") ?? "";
      const text = await answer.text();
      if (text === last || part.contains(document.activeElement) && document.activeElement.matches("input")) return;
      last = text;
      // Keep what the reader opened, and the keyboard focus.
      const open = [...part.querySelectorAll("details")].map((one) => one.open);
      const focused = part.contains(document.activeElement) ? identity(document.activeElement) : null;
      part.innerHTML = text;
      makeSortable(part);
      [...part.querySelectorAll("details")].forEach((one, place) => { one.open ||= open[place] ?? false; });
      if (focused) [...part.querySelectorAll("a, button, summary, [tabindex]")].find((one) => identity(one) === focused)?.focus({ preventScroll: true });
    } catch {
      part.classList.add("stale"); // the judge may be restarting, and the content out of date
    }
  };
  // All open boards get an event at the same moment. Each waits a random time, to spread their requests.
  part.refresh = () => { due ||= setTimeout(load, OFTEN_MS + Math.random() * (part.dataset.on === "board" ? SPREAD_MS : 0)); };
}

if (parts.length) {
  let polling = 0, source = null;
  const all = () => parts.forEach((part) => part.refresh());
  const stopPolling = () => { clearInterval(polling); polling = 0; };
  // A browser opens six connections to a site at most, and a stream occupies one: only the visible tab has a stream.
  const listen = () => {
    source?.close();
    stopPolling();
    if (document.hidden) return;
    source = new EventSource("/api/v1/events");
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      for (const part of parts)
        if (part.dataset.on.split(" ").includes(event.kind) && (!part.dataset.id || part.dataset.id === event.id)) part.refresh();
    };
    source.onopen = () => { stopPolling(); all(); };
    source.onerror = () => { polling ||= setInterval(all, POLL_MS); };
  };
  document.addEventListener("visibilitychange", listen);
  listen();
}

// The seconds that a submission has run for, between two answers of the judge.
setInterval(() => {
  for (const one of document.querySelectorAll("[data-elapsed]")) {
    one.began ??= performance.now() - 1000 * one.dataset.elapsed;
    const seconds = Math.floor((performance.now() - one.began) / 1000);
    one.textContent = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }
}, 1000);

const form = document.querySelector("#submit");
if (form) {
  const said = form.querySelector("#submit-said"), chosen = form.querySelector("#files"), folder = form.querySelector("#folder");
  // Uploads files and opens the submission's page. Returns the sentence to show if that fails, else an empty one.
  const upload = async (files) => {
    const data = new FormData(), shown = files.filter(([name]) => !name.split("/").some((part) => part.startsWith(".")));
    const bytes = shown.reduce((sum, [, file]) => sum + file.size, 0);
    if (bytes > form.dataset.bytes) return `The files have ${bytes} bytes, and the judge takes at most ${form.dataset.bytes}: submit source code only.`;
    for (const [name, file] of shown) {
      const content = await file.arrayBuffer().catch(() => null);
      if (!content) return `${name} cannot be read, or has changed since it was chosen: choose it again.`;
      data.append("file", new Blob([content]), name);
    }
    // If only the answer gets lost, the key lets a retry find the submission instead of making a second one.
    const headers = { "Idempotency-Key": [...crypto.getRandomValues(new Uint8Array(12))].join(".") };
    for (let tries = 1; ; tries++) {
      const answer = await fetch("/api/v1/submissions", { method: "POST", body: data, headers }).catch(() => null);
      const content = await answer?.json().catch(() => null);
      if (answer?.ok) return location.assign(content.url), "";
      if (content) return content.detail;
      if (answer && answer.status < 502) return `The upload was refused (${answer.status}).`;
      if (tries === TRIES) return "The judge does not answer. Submit again in a moment.";
      said.textContent = "The judge does not answer. Trying again …";
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  };
  let sending = false;
  const send = async (files) => {
    if (sending) return; // a second click would submit twice
    sending = true;
    said.textContent = "";
    said.textContent = await upload(files);
    sending = false;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send([...chosen.files].map((file) => [file.name, file]));
  });
  const choose = form.querySelector("#choose-folder");
  choose.hidden = false;
  choose.addEventListener("click", () => folder.click());
  folder.addEventListener("change", () => send([...folder.files].map((file) => [file.webkitRelativePath, file])));
  for (const kind of ["dragover", "dragleave", "drop"])
    form.addEventListener(kind, (event) => { event.preventDefault(); form.classList.toggle("over", kind === "dragover"); });
  form.addEventListener("drop", async (event) => {
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    send((await Promise.all(entries.map((entry) => within(entry, "")))).flat());
  });
}

// The files of a dropped file or folder, each with its path.
async function within(entry, before) {
  const name = before + entry.name;
  if (entry.isFile) return [[name, await new Promise((done, fail) => entry.file(done, fail))]];
  const reader = entry.createReader(), found = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) break;
    for (const one of some) found.push(...await within(one, `${name}/`));
  }
  return found;
}

for (const input of document.querySelectorAll("[data-goto]"))
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.assign(input.dataset.goto + encodeURIComponent(input.value.trim()));
  });

// A link may have a token after #. Browsers never send the part of an address after #, so no log has it. The page says
// whose token it is and asks: otherwise a link could log somebody in as the person who sent it.
const login = document.querySelector("#login");
if (login) {
  const said = document.querySelector("#login-said"), button = login.querySelector("button");
  const offer = async () => {
    if (location.hash.length < 2) return login.token.focus();
    const token = location.hash.slice(1), now = login.dataset.who;
    history.replaceState(null, "", location.pathname);
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await fetch("/api/v1/me", { headers }).catch(() => null);
    const meant = answer?.ok ? (await answer.json()).id : "";
    said.hidden = false;
    said.textContent = !answer ? "The judge does not answer. Open the link again in a moment."
      : !meant ? "The judge does not know the token of this link: ask for a new one."
      : now === meant ? `You are logged in as ${meant} already.`
      : now ? `You are logged in as ${now}, and this link is for ${meant}. What you submit after it belongs to ${meant}.`
      : `This link is for ${meant}: go on only if that is you.`;
    if (!meant) return;
    login.token.value = token;
    button.textContent = `Log in as ${meant}`;
    button.focus();
  };
  addEventListener("hashchange", offer);
  offer();
}
