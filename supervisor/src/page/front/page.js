
"use strict";
// What jobs say goes into text nodes and nowhere else.
const $ = id => document.getElementById(id);
const STATES = ["queued", "running", "paused", "interrupted", "done", "failed", "cancelled"];
const jobs = new Map();   // by id, as `list --json` has them
const rows = new Map();   // rows of the table, by id
const PAGE = 300;
const LOG_MOST = 400000;
const NUMBERS = ["created_at_ms", "started_at_ms", "ended_at_ms", "updated_at_ms", "next_attempt_at_ms"];
let limit = PAGE, states = new Set(), words = [];
let source = null, stream = 0, knows = new Set(), complete = false;
let chosen = null, token = null, mayChange = false, due = false;

function make(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}
const pad = n => String(n).padStart(2, "0");
function time(ms) {
  if (ms == null) return "";
  const at = new Date(ms);
  const clock = pad(at.getHours()) + ":" + pad(at.getMinutes()) + ":" + pad(at.getSeconds());
  if (at.toDateString() === new Date().toDateString()) return clock;
  return at.getFullYear() + "-" + pad(at.getMonth() + 1) + "-" + pad(at.getDate()) + " " + clock;
}
function span(ms) {
  if (ms < 10000) return (Math.max(0, ms) / 1000).toFixed(1) + " s";
  const s = Math.floor(ms / 1000);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + s % 60 + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}
function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let n = bytes, unit = 0;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit++; }
  return (unit && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[unit];
}
// Bytes that are no text come as {"hex": "..."}.
const text = bytes => bytes == null ? "" : typeof bytes === "string" ? bytes : "\\x" + bytes.hex;
function quoted(word) {
  const plain = text(word);
  return /^[\w@%+=:,.\/-]+$/.test(plain) ? plain : "'" + plain.replaceAll("'", "'\\''") + "'";
}
const work = job => job.reference != null ? job.reference : (job.command || []).map(quoted).join(" ");
const slot = job => job.alive && job.pool != null && job.slot != null ? job.pool + "/" + job.slot : "";
function exit(job) {
  if (job.exit && job.exit.code != null) return String(job.exit.code);
  if (job.exit && job.exit.signal != null) return "signal " + job.exit.signal;
  return job.failure ? String(job.failure).replaceAll("_", " ") : "";
}
function condition(job) {
  const stops = job.stopping && !job.ended_at_ms ? "stopping" : job.state;
  const waits = job.state === "running" && job.next_attempt_at_ms && !job.pid ? ", waits for attempt " + (job.attempt + 1) : "";
  return stops + waits + (job.leftovers ? ", processes left" : "");
}
function took(job) {
  if (job.started_at_ms == null) return "";
  const ends = job.ended_at_ms != null ? job.ended_at_ms : job.state === "running" ? Date.now() : job.updated_at_ms;
  return span(ends - job.started_at_ms);
}
function far(job) {
  const p = job.progress, total = p.total_bytes;
  if (!p.done_bytes && !total) return job.status_line || "";
  return size(p.done_bytes) + (total ? " of " + size(total) : "");
}

const CELLS = [["state", condition], ["name", job => job.name || ""], ["task", job => job.task || ""], ["command", work], ["exit", exit],
  ["started", job => time(job.started_at_ms)], ["took", took], ["slot", slot], ["progress", far], ["id", job => job.id]];
function fill(row, job) {
  CELLS.forEach(([name, show], nth) => {
    const cell = row.cells[nth], shown = show(job);
    const total = name === "progress" && job.progress.total_bytes;
    if (total && !job.ended_at_ms) {
      const bar = make("progress");
      bar.max = total;
      bar.value = job.progress.done_bytes;
      cell.replaceChildren(bar, document.createTextNode(" " + shown));
    } else if (cell.textContent !== shown || cell.firstElementChild) {
      cell.textContent = shown;
    }
    if (name === "state") cell.className = "state " + job.state;
    if (name === "command") cell.title = shown;
    if (name === "exit") cell.title = job.message || "";
  });
  row.of = job;
}
function rowOf(job) {
  let row = rows.get(job.id);
  if (!row) {
    row = make("tr");
    row.tabIndex = 0;
    row.id = "job-" + job.id;
    for (const [name] of CELLS) row.append(make("td", name));
    row.addEventListener("click", () => choose(job.id));
    row.addEventListener("keydown", event => { if (event.key === "Enter") choose(job.id); });
    rows.set(job.id, row);
  }
  if (row.of !== job) fill(row, job);
  row.classList.toggle("chosen", job.id === chosen);
  return row;
}
function holds(job) {
  if (states.size && !states.has(job.state)) return false;
  if (!words.length) return true;
  const all = [job.id, job.name, job.task, job.pool, text(job.project), work(job)].join("\n").toLowerCase();
  return words.every(word => all.includes(word));
}
function show() {
  due = false;
  const meant = [], counts = {};
  for (const job of jobs.values()) {
    counts[job.state] = (counts[job.state] || 0) + 1;
    if (holds(job)) meant.push(job);
  }
  meant.sort((a, b) => b.created_at_ms - a.created_at_ms || (a.id < b.id ? 1 : -1));
  const shown = new Set(), body = $("rows");
  let next = body.firstChild;
  for (const job of meant.slice(0, limit)) {
    const row = rowOf(job);
    shown.add(job.id);
    if (row === next) next = next.nextSibling;
    else body.insertBefore(row, next);
  }
  for (const [id, row] of rows) if (!shown.has(id)) { row.remove(); rows.delete(id); }
  $("count").textContent = meant.length === jobs.size ? jobs.size + " jobs" : meant.length + " of " + jobs.size + " jobs";
  $("more").hidden = meant.length <= limit;
  $("none").hidden = meant.length > 0 || !complete;
  for (const button of $("states").children) {
    const state = button.dataset.state;
    button.textContent = state + " " + (counts[state] || 0);
    button.setAttribute("aria-pressed", states.has(state));
  }
  showFacts();
}
function soon() {
  if (due) return;
  due = true;
  requestAnimationFrame(show);
}

function showPools(told) {
  const all = told.pools.map(pool => {
    const made = make("span", "pool");
    made.append(make("b", "", pool.name));
    const placed = told.slots.find(slots => slots.pool === pool.name), dots = make("span", "slots");
    const most = Math.min(Math.max(pool.slots, placed ? placed.slots.length : 0), 64);
    for (let n = 1; n <= most; n++) {
      const here = placed && placed.slots.find(slot => slot.number === n);
      const state = here ? here.state : !placed && n <= pool.taken ? "claimed" : "idle";
      const dot = make("span", "slot " + state);
      dot.title = pool.name + "/" + n + " " + state + (here && here.holder ? ", " + here.holder : "") + (here && here.broken ? ": " + here.broken : "");
      dots.append(dot);
    }
    const words = pool.taken + "/" + pool.slots + " taken" + (pool.waiting ? ", " + pool.waiting + " waiting" : "") + (pool.paused ? ", paused" : "");
    made.append(dots, make("span", "faint", words));
    return made;
  });
  all.push(make("span", "faint", told.supervised ? "supervisor is up" : "no supervisor"));
  $("pools").replaceChildren(...all);
}
function showDamaged(lines) {
  $("damaged").hidden = !lines.length;
  $("damaged").replaceChildren(...lines.map(line => make("span", "", line)));
}

function connect() {
  if (source) return;
  source = new EventSource("/events");
  const on = (name, does) => source.addEventListener(name, event => does(JSON.parse(event.data)));
  on("hello", told => {
    stream = told.stream;
    mayChange = told.changes;
    $("root").textContent = told.root;
    link("good", "live");
    follow();
  });
  // What is known stays shown until everything was told anew; then what was not told is gone.
  on("reset", () => { knows = new Set(); complete = false; });
  on("jobs", told => { for (const job of told) { jobs.set(job.id, job); knows.add(job.id); } soon(); });
  on("gone", told => { for (const id of told) { jobs.delete(id); knows.delete(id); } soon(); });
  on("ready", () => {
    complete = true;
    for (const id of [...jobs.keys()]) if (!knows.has(id)) jobs.delete(id);
    const asked = new URLSearchParams(location.hash.slice(1)).get("job");
    if (asked && !chosen) choose(asked);
    soon();
  });
  on("pools", showPools);
  on("damaged", showDamaged);
  on("output", () => readLog());
  source.onerror = () => {
    link("bad", "not connected");
    if (source && source.readyState === EventSource.CLOSED) { disconnect(); setTimeout(connect, 2000); }
  };
}
function disconnect() {
  if (source) source.close();
  source = null;
  stream = 0;
}
function link(kind, words) { $("link").className = kind; $("link").textContent = words; }

// The log of the job that is chosen: asked for piece by piece, each time that it is told that there is more.
let log = null;
function follow() {
  if (stream) fetch("/events/" + stream + "/follow?job=" + encodeURIComponent(chosen || "")).catch(() => {});
}
function beginLog(name) {
  log = { job: chosen, name, next: null, file: null, ...nothingWaits(), reads: false, again: false };
  $("log").replaceChildren();
  readLog();
}
// Half a character, and half a command for a terminal, wait for their other half; that is in the same file.
const nothingWaits = () => ({ decoder: new TextDecoder(), rest: "" });
async function readLog() {
  const of = log;
  if (!of) return;
  if (of.reads) { of.again = true; return; }
  of.reads = true;
  try {
    do {
      of.again = false;
      const query = new URLSearchParams();
      if (of.name) query.set("stream", of.name);
      if (of.next != null) { query.set("from", of.next); query.set("file", of.file); }
      const reply = await fetch("/api/jobs/" + encodeURIComponent(of.job) + "/log?" + query);
      if (!reply.ok || of !== log) break;
      const number = name => Number(reply.headers.get("outlive-log-" + name));
      const bytes = await reply.arrayBuffer();
      if (of !== log) break;
      const file = reply.headers.get("outlive-log-file") || "";
      if (of.next != null && file !== of.file && of.file) {
        Object.assign(of, nothingWaits());
        addLog("\n… another file, after a rotation …\n");
      } else if (of.next == null && number("from")) addLog("…\n");
      addLog(whole(of, of.decoder.decode(bytes, { stream: true })));
      of.file = file;
      of.next = number("next");
      if (of.next < number("size")) of.again = true;
    } while (of.again);
  } catch (error) { /* it is asked for again when there is more */ }
  of.reads = false;
}
// Colours and moves of the cursor are for terminals. A title that has no end ends with its line.
const ESCAPES = /\x1b(?:\[[0-?]*[ -\/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -\/]*[0-~])/g;
const HALF = /\x1b(?:\[[0-?]*[ -\/]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[ -\/]*)$/;
// What may be the first half of one waits for the second.
function whole(of, words) {
  words = of.rest + words;
  const half = words.search(HALF);
  of.rest = half >= 0 && words.length - half < 4096 ? words.slice(half) : "";
  return of.rest ? words.slice(0, half) : words;
}
function addLog(words) {
  if (!words) return;
  const pre = $("log"), atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 8;
  pre.append(document.createTextNode(words.replace(ESCAPES, "")));
  while (pre.childNodes.length > 1 && pre.textContent.length > LOG_MOST) pre.firstChild.remove();
  if (atEnd) pre.scrollTop = pre.scrollHeight;
}

function choose(id) {
  if (!jobs.has(id)) return;
  chosen = id;
  history.replaceState(null, "", "#job=" + encodeURIComponent(id));
  document.body.classList.add("open");
  $("details").hidden = false;
  $("said").textContent = "";
  const split = text(jobs.get(id).log).endsWith("/stdout.log");
  const names = split ? ["stdout", "stderr"] : ["log"];
  const streams = names.concat("on_end").map(name => {
    const button = make("button", "", name.replace("_", " "));
    button.type = "button";
    button.addEventListener("click", () => chooseStream(button, name));
    return button;
  });
  $("streams").replaceChildren(...streams);
  follow();
  chooseStream(streams[0], names[0]);
  $("title").focus({ preventScroll: true });
  soon();
}
function chooseStream(button, name) {
  for (const other of $("streams").children) other.setAttribute("aria-pressed", other === button);
  beginLog(name);
}
function close() {
  chosen = null;
  log = null;
  history.replaceState(null, "", location.pathname);
  document.body.classList.remove("open");
  $("details").hidden = true;
  follow();
  soon();
}
function showFacts() {
  if (!chosen) return;
  const job = jobs.get(chosen);
  $("changes").hidden = !mayChange || !token || !job;
  $("unlock").hidden = !mayChange || !!token || !job;
  if (!job) { $("title").textContent = chosen + " is gone"; return; }
  $("title").textContent = (job.name || job.id) + ": " + condition(job);
  const facts = [["work", work(job)], ["exit", exit(job)], ["took", took(job)]];
  for (const [key, value] of Object.entries(job)) {
    if (value == null || ["command", "reference", "exit"].includes(key)) continue;
    if (key === "progress") facts.push([key, job.kind === "pull" ? far(job) : ""]);
    else if (NUMBERS.includes(key)) facts.push([key.slice(0, -3).replaceAll("_", " "), time(value)]);
    else facts.push([key.replaceAll("_", " "), typeof value === "object" ? value.hex ? text(value) : JSON.stringify(value) : String(value)]);
  }
  const list = $("facts"), shown = facts.filter(([, value]) => value);
  const now = JSON.stringify(shown);
  if (list.shown === now) return;
  list.shown = now;
  list.replaceChildren(...shown.flatMap(([key, value]) => [make("dt", "", key), make("dd", "", value)]));
}
async function change(verb) {
  const job = chosen;
  $("said").textContent = verb + " …";
  try {
    const reply = await fetch("/api/jobs/" + encodeURIComponent(job) + "/" + verb, { method: "POST", headers: { Authorization: "Bearer " + token } });
    const told = await reply.json();
    if (reply.status === 401) { setToken(null); soon(); }
    $("said").textContent = told.error || told.message || (told.job ? "now " + told.job : verb + ": done");
  } catch (error) { $("said").textContent = "not connected"; }
}
function setToken(value) {
  token = value;
  try { value ? sessionStorage.setItem("token", value) : sessionStorage.removeItem("token"); } catch (error) { /* for this page only, then */ }
}

function begin() {
  const hash = new URLSearchParams(location.hash.slice(1));
  let stored = null;
  try { stored = sessionStorage.getItem("token"); } catch (error) { /* none */ }
  setToken(hash.get("token") || stored);
  // The token is not to stay where it is seen, and kept.
  if (hash.has("token")) { hash.delete("token"); history.replaceState(null, "", location.pathname + (String(hash) ? "#" + hash : "")); }
  for (const state of STATES) {
    const button = make("button", state, state);
    button.type = "button";
    button.dataset.state = state;
    button.addEventListener("click", () => { states.delete(state) || states.add(state); soon(); });
    $("states").append(button);
  }
  $("filter").addEventListener("input", event => { words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean); limit = PAGE; soon(); });
  $("more").addEventListener("click", () => { limit += PAGE; soon(); });
  $("close").addEventListener("click", close);
  document.addEventListener("keydown", event => { if (event.key === "Escape" && chosen) close(); });
  for (const button of $("changes").querySelectorAll("button")) button.addEventListener("click", () => change(button.dataset.verb));
  $("unlock").addEventListener("submit", event => { event.preventDefault(); setToken($("token").value.trim() || null); $("token").value = ""; soon(); });
  // A page that nobody sees takes no connection; a browser has six.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { disconnect(); link("", "asleep"); } else connect();
  });
  if (!document.hidden) connect();
  setInterval(() => {
    for (const row of rows.values()) if (row.of.state === "running") fill(row, row.of);
    if (chosen) showFacts();
  }, 1000);
}
begin();
