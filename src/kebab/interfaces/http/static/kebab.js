// Adds to the pages: search while the user types, keys, copying, live progress. All pages work without it.
"use strict";

const form = document.getElementById("search");
const box = document.getElementById("q");
const results = document.getElementById("results");

// --- search while the user types: the server renders the hits, the script shows them

if (form && results) {
  const PAUSE = 120;
  const said = document.getElementById("said");
  const name = document.title.split(" · ").pop();
  let timer = 0;
  let running = null;
  let shown = asked().toString();

  function asked() {
    const parameters = new URLSearchParams();
    for (const [key, value] of new FormData(form)) if (value.trim()) parameters.append(key, value);
    return parameters;
  }

  async function answer() {
    const parameters = asked();
    const address = parameters.toString();
    if (address === shown) return;
    if (running) running.abort(); // the answer to the older text is no longer needed
    const mine = (running = new AbortController());
    results.classList.add("waiting");
    if (parameters.has("q")) parameters.set("type_ahead", "true"); // the last word may be half typed
    try {
      const response = await fetch(`/results?${parameters}`, { headers: { Accept: "text/html" }, signal: mine.signal });
      if (response.redirected) { location.assign(response.url); return; }
      const html = await response.text();
      if (running !== mine) return;
      const parsed = new DOMParser().parseFromString(html, "text/html"); // DOMParser runs no scripts
      results.replaceChildren(...(parsed.querySelector("main") || parsed.body).childNodes); // an error may be a whole page
      shown = address;
      history.replaceState(null, "", address ? `/?${address}` : "/");
      document.title = parameters.has("q") ? `${parameters.get("q")} · ${name}` : name;
      const summary = results.querySelector(".summary, .error, .empty h2");
      said.textContent = summary ? summary.textContent.trim() : "";
      results.classList.remove("waiting");
    } catch (error) {
      if (error.name === "AbortError") return;
      results.classList.remove("waiting");
      const message = document.createElement("p");
      message.className = "error";
      message.setAttribute("role", "alert");
      message.textContent = "The server does not answer. Is kb serve still running?";
      results.replaceChildren(message);
      shown = null;
    }
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(answer, PAUSE);
  }

  box.addEventListener("input", (event) => { if (!event.isComposing) soon(); });
  box.addEventListener("compositionend", soon);
  form.addEventListener("change", (event) => { if (event.target !== box) soon(); });
  form.addEventListener("submit", () => { clearTimeout(timer); if (running) running.abort(); });
}

// --- keys

function links() {
  return results ? [...results.querySelectorAll(".hit h2 a")] : [];
}

function isWriting(element) {
  return element.matches("input:not([type=radio], [type=checkbox], [readonly]), select, textarea");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const here = document.activeElement || document.body;
  if (event.key === "/" && !isWriting(here)) {
    if (box) { event.preventDefault(); box.focus(); box.select(); }
    else location.assign("/");
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (here !== box && isWriting(here)) return;
    if (here.matches("[type=radio]")) return;
    const all = links();
    const next = all.indexOf(here) + (event.key === "ArrowDown" ? 1 : -1);
    if (!all.length || (here !== box && !all.includes(here) && here !== document.body)) return;
    if (next < -1 || (here === document.body && next < 0)) return;
    event.preventDefault();
    if (next < 0) box.focus(); else if (next < all.length) all[next].focus();
  } else if (event.key === "Escape") {
    const back = document.querySelector("[data-back]");
    if (links().includes(here)) box.focus();
    else if (back && !isWriting(here)) {
      if (document.referrer === back.href) history.back(); else location.assign(back.href);
    }
  }
});

// --- copying a citation

for (const button of document.querySelectorAll("[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      document.execCommand("copy"); // without https, elsewhere than on this machine
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

// --- the reader: to the passage, also when the citation was put behind the address as it stands

if (location.pathname === "/read") {
  const parameters = new URLSearchParams(location.search);
  const cited = /^#(L\d+(-L?\d+)?|page=\d+)$/.test(location.hash) && !document.getElementById(location.hash.slice(1));
  if (cited && parameters.has("uri") && !/#(L\d|page=)/.test(parameters.get("uri"))) {
    parameters.set("uri", parameters.get("uri").replace(/[%#? ]/g, encodeURIComponent) + location.hash);
    location.replace(`/read?${parameters}#cited`);
  } else if (!location.hash) {
    const passage = document.getElementById("cited");
    if (passage) passage.scrollIntoView();
  }
}

// --- ingests: progress as it happens

for (const job of document.querySelectorAll("[data-running]")) {
  const bar = job.querySelector("progress");
  const doing = job.querySelector(".doing");
  const events = new EventSource(`/api/v1/ingest/${encodeURIComponent(job.dataset.job)}/events`);
  const show = (event) => {
    const progress = JSON.parse(event.data);
    if (progress.total) { bar.max = progress.total; bar.value = progress.done || 0; } else bar.removeAttribute("value");
    doing.textContent = [progress.event, progress.path || progress.source].filter(Boolean).join(" ");
  };
  for (const name of ["scanning", "file", "sweeping", "embedding"]) events.addEventListener(name, show);
  for (const name of ["done", "failed", "interrupted"]) events.addEventListener(name, () => { events.close(); location.reload(); });
}
