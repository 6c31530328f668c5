"use strict";
// The page works without this script. It adds keys, live changes, windows that grow, and search while typing.
const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const view = document.body.dataset.view;
document.documentElement.classList.add("js");
const part = (address) => { const u = new URL(address, location.href); if (!u.searchParams.has("part")) u.searchParams.set("part", ""); u.hash = ""; return u; };
async function fetchPart(address, signal) {
  const answer = await fetch(part(address), { signal, credentials: "same-origin" });
  signedIn(answer);
  // A parsed document runs no script and loads nothing.
  const body = new DOMParser().parseFromString(await answer.text(), "text/html").body;
  local(body);
  if (!answer.ok) throw Object.assign(new Error("status " + answer.status), { status: answer.status, body });
  return body;
}
// A session ends with its server, and another one at the address may not have the name of this page. Only another link leads on.
function signedIn(answer) {
  if (![401, 403, 421].includes(answer.status)) return;
  $("#live").title = "Reload, or open the link of: lineage serve --link --open";
  lasting("signed out");
}
// Times are those of the reader's clock. They are sent in UTC.
const clock = (at, o) => at.toLocaleString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...o });
function local(within) {
  const now = new Date();
  for (const t of $$("time[datetime]", within)) {
    const at = new Date(t.dateTime);
    if (isNaN(at)) continue;
    t.title = clock(at, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
    if (t.dataset.ago !== undefined) continue;
    const day = at.toDateString() === now.toDateString() ? {} : { day: "numeric", month: "short", ...(at.getFullYear() === now.getFullYear() ? {} : { year: "numeric" }) };
    t.textContent = clock(at, day);
  }
}
local(document);
// How long ago something was changes without a request.
function ago() {
  for (const t of $$("time[data-ago]")) {
    const minutes = Math.floor((Date.now() - new Date(t.dateTime)) / 60000);
    if (minutes < 1440 && minutes >= 0) { const text = minutes < 1 ? "now" : minutes < 60 ? minutes + "m" : Math.floor(minutes / 60) + "h"; if (t.textContent !== text) t.textContent = text; }
    if (minutes >= 2) t.closest(".running")?.classList.remove("running");
  }
}
setInterval(ago, 30000);
// What the top of the page says: what holds until the page is loaded again, else what was done just now, else whether the
// page is live.
const said = { lasting: "", note: "", state: "", live: false };
function show() {
  const live = $("#live");
  const text = said.lasting || said.note || (following && said.live ? "following" : said.state);
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("on", said.live && !said.lasting);
  live.classList.toggle("says", text !== said.state); // there is no room for more on a phone
}
function lasting(text) { said.lasting = text; show(); }
let noted;
function note(text, ms = 2500) { clearTimeout(noted); said.note = text; show(); if (text && ms) noted = setTimeout(() => note(""), ms); }
function connection(state, live) { said.state = state; said.live = live; show(); }
let following = false;
const store = { get(key) { try { return JSON.parse(localStorage.getItem("lineage." + key)); } catch { return null; } }, set(key, value) { try { localStorage.setItem("lineage." + key, JSON.stringify(value)); } catch { /* full or not allowed */ } } };

// One stream of events for a browser: the tab that holds the lock reads it and tells the others. A tab that comes later asks
// for the state, and looks at what it missed meanwhile. hear gets the events, and whether the stream was lost before them.
function listen(hear) {
  const missed = [{ kind: "reconnected" }];
  let connected = false;
  const heard = (events) => { const lost = connected && events.some((e) => e.kind === "reconnected"); connected = true; hear(events, lost); };
  const others = new BroadcastChannel("lineage-events");
  let leads = false; let source; let leave;
  const state = (text, live) => { connection(text, live); others.postMessage({ state: [text, live] }); };
  const tell = (events) => { heard(events); others.postMessage({ events }); };
  others.onmessage = (e) => {
    if (e.data.asks && leads && said.state) others.postMessage({ answers: [said.state, said.live] });
    if (leads) return;
    if (e.data.answers && !said.state) heard(missed);
    const is = e.data.state ?? e.data.answers;
    if (is) connection(...is);
    if (e.data.events) heard(e.data.events);
  };
  const connect = () => {
    source = new EventSource("/v1/events");
    source.onopen = () => { state("live", true); tell(missed); };
    // A stream that is refused, because its position is gone or the session ended, begins again without a position.
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) { state("reconnecting", false); return; }
      state("not live", false); setTimeout(connect, 5000);
      fetch("/search", { method: "HEAD", credentials: "same-origin" }).then(signedIn, () => {}); // a stream does not say why it was refused
    };
    source.addEventListener("diverged", () => location.reload());
    source.onmessage = (e) => { let events; try { events = JSON.parse(e.data); } catch { return; } tell([events].flat()); };
  };
  // A page that is left gives the lock back, and one that comes back from the history begins anew.
  const read = () => new Promise((left) => { leads = true; leave = left; connect(); });
  addEventListener("pagehide", () => { source?.close(); leave?.(); });
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
  if (navigator.locks) navigator.locks.request("lineage-events", read); else read();
  others.postMessage({ asks: true });
}
// What was erased leaves every view, also where it was shown before.
const erases = (events) => events.some((e) => e.kind === "content erased");
// soon returns a function that does something once, a moment after its first call. Without an answer of the server it is
// tried again, after pauses of two seconds to a minute, and after the next call.
function soon(ms, does) {
  let timer; let retry; let again = false; let busy = false; let pause = 0;
  const call = () => { timer ??= setTimeout(run, ms); };
  const run = async () => {
    timer = undefined;
    if (busy) { again = true; return; }
    busy = true; clearTimeout(retry);
    try { await does(); pause = 0; } catch (e) { if (!(e.status < 500)) { pause = Math.min(Math.max(2 * pause, 2000), 60000); retry = setTimeout(call, pause); } }
    busy = false;
    if (again) { again = false; call(); }
  };
  return call;
}

// Keys.
let prefix = "";
function move(nodes, step, top) {
  if (!nodes.length) return;
  let i = nodes.indexOf(document.activeElement.closest?.(".hit, .m"));
  if (i < 0 && top) i = nodes.findLastIndex((n) => n.getBoundingClientRect().top < top + 8) ;
  const next = nodes[Math.min(Math.max(i + step, 0), nodes.length - 1)];
  next.focus({ preventScroll: true });
  if (next.matches(".m")) next.scrollIntoView({ block: "start" }); else next.scrollIntoView({ block: "nearest" });
}
const rowsOf = () => view === "conversation" || view === "sides" ? $$(".m") : $$(".hit");
// here is the message that has the focus, else the first on the screen. Those of subagents that are open in another message do not count.
const here = () => document.activeElement.closest?.(".m") ?? $$(".m:not(.inside .m)").find((m) => m.getBoundingClientRect().bottom > 120);
const lists = view === "home" || view === "search" || view === "graph";
const keys = {
  "/": () => { $("#q").focus(); $("#q").select(); },
  "?": () => $("#keys").showModal(),
  j: () => move(rowsOf(), 1, 110), k: () => move(rowsOf(), -1, 110),
  n: () => move($$(".m[data-prompt]"), 1, 110), p: () => move($$(".m[data-prompt]"), -1, 110),
  o: () => { const m = here(); if (!m) return; const parts = $$("details.part", m), long = $$(".text.long", m); const open = !parts.some((d) => d.open) && !long.some((t) => t.classList.contains("all")); for (const d of parts) d.open = open; for (const t of long) t.classList.toggle("all", open); },
  x: () => exact(here()),
  w: () => others(here()), l: () => link(here()),
  e: () => toEnd(),
  f: () => { following = !following; show(); if (following) toEnd(); },
  y: () => copy("resume"),
  "g u": () => { const link = $("a.nav[href='/usage']"); if (link) location.href = link.href; },
  "g h": () => { location.href = "/"; },
  "g c": () => go(""), "g g": () => go("/graph"),
};
function go(to) { const thread = $("[data-thread]")?.dataset.thread; if (thread) location.href = "/t/" + thread + to; }
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || $("dialog[open]")) return;
  if (e.target.closest("input, textarea, select")) { if (e.key === "Escape") e.target.blur(); return; }
  if (e.key === "Escape") { for (const d of $$("details.menu[open]")) d.open = false; return; }
  const key = prefix ? prefix + " " + e.key : e.key;
  prefix = "";
  if (e.key === "g" && key === "g") { prefix = "g"; setTimeout(() => { prefix = ""; }, 1200); return; }
  // The arrows go through a list once it has the focus; before that they scroll. In the graph they go through it at once.
  const arrow = { ArrowDown: "j", ArrowUp: "k" }[e.key];
  if (arrow && lists && (view === "graph" || document.activeElement.matches(".hit"))) { e.preventDefault(); keys[arrow](); return; }
  if (keys[key]) { e.preventDefault(); keys[key](); }
});
addEventListener("click", (e) => {
  for (const d of $$("details.menu[open]")) if (!d.contains(e.target)) d.open = false;
  const button = e.target.closest("[data-copy]");
  if (button) copy(button.dataset.copy);
  const long = e.target.closest(".text.long");
  if (long && !String(getSelection())) long.classList.add("all");
});
$("#keys-button").addEventListener("click", () => $("#keys").showModal());
async function copy(id) { const node = $("#" + id); if (!node) return; try { await navigator.clipboard.writeText(node.textContent); note("copied"); } catch { getSelection().selectAllChildren(node); } }
// showAgain fills the dialog about a message that is open once more.
let showAgain;
async function exact(m) {
  const thread = $("[data-thread]")?.dataset.thread;
  if (!m || !thread) return;
  showAgain = () => exact(m);
  let text;
  try {
    const answer = await fetch("/t/" + thread + "/message/" + m.dataset.id, { credentials: "same-origin" });
    text = answer.ok ? await answer.text() : "It cannot be shown here: status " + answer.status;
  } catch { note("not found: the server did not answer"); return; }
  try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is plain text */ }
  // What reorders text or is not seen is shown as an escape.
  $("#exact pre").textContent = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  if (!$("#exact").open) $("#exact").showModal();
}

// Search while typing, where it is shown.
if (view === "search") {
  let timer; let request;
  const input = $("#q");
  if (!input.value) input.focus();
  input.addEventListener("input", () => {
    clearTimeout(timer);
    request?.abort();
    timer = setTimeout(async () => {
      const mine = request = new AbortController();
      const slow = setTimeout(() => { $("#results").classList.add("waiting"); note("searching", 0); }, 200);
      const address = "/search?q=" + encodeURIComponent(input.value);
      try {
        const body = await fetchPart(address, mine.signal).catch((e) => { if (e.status === 400) return e.body; throw e; }); // half of a query
        if (mine === request) { $("#results").replaceWith(...body.childNodes); history.replaceState(null, "", address); }
      } catch (e) { if (e.name !== "AbortError" && mine === request) note("not found: the server did not answer"); } finally { clearTimeout(slow); if (mine === request) { if (said.note === "searching") note(""); $("#results").classList.remove("waiting"); } }
    }, 150);
  });
}
$(".find").addEventListener("submit", (e) => { if (view === "search") e.preventDefault(); });

// More of a list when its end comes into view.
const edges = new IntersectionObserver((entries) => { for (const e of entries) if (e.isIntersecting) { edges.unobserve(e.target); e.target.dispatchEvent(new Event("reached")); } }, { rootMargin: "600px" });

for (const wide of $$(".days")) wide.scrollLeft = wide.scrollWidth; // the last days are on the right

if (view === "home") home();
function home() {
  if (innerWidth > 640) $("#filters").open = true;
  const list = $("#list"); const seen = store.get("seen") ?? {};
  const marks = (within) => { for (const row of $$(".row", within)) { const at = $("time", row)?.dateTime; row.classList.toggle("unread", !!seen[row.dataset.id] && seen[row.dataset.id] < at); } };
  const names = () => { for (const [id, key] of [["agents", "agent"], ["projects", "project"], ["branches", "branch"]]) { const all = new Set($$(".row", list).map((r) => r.dataset[key]).filter(Boolean)); $("#" + id).replaceChildren(...[...all].sort().map((v) => { const o = document.createElement("option"); o.value = v; return o; })); } };
  const grow = () => { const more = $(".more", list); if (!more) return; more.addEventListener("reached", async () => { let body; try { body = await fetchPart(more.dataset.next); } catch { return; /* its link remains */ } const had = new Set($$(".row", list).map((r) => r.dataset.id)); for (const r of $$(".row", body)) if (had.has(r.dataset.id)) r.remove(); marks(body); more.replaceWith(...body.childNodes); names(); grow(); }); edges.observe(more); };
  marks(list); names(); grow();
  // Rows change in place. They move only while nobody points at them or has the focus there.
  let waiting; let stale = false; let later;
  const rowOf = (id) => $(`.row[data-id="${CSS.escape(id)}"]`, list);
  const time = (row) => $("time", row)?.dateTime ?? "";
  const empty = (body) => { const now = $(".row", list) ? null : $(".empty", body); const old = $("#main > .empty"); if (now && !old) $("#main").append(now); else if (!now) old?.remove(); };
  const refresh = (old, row) => {
    for (const what of [".line1", ".line2", ".facts"]) {
      const from = $(what, old), to = $(what, row);
      if (from.isEqualNode(to)) continue;
      // A link that is about to be used stays.
      if (what === ".facts" && (old.matches(":hover") || from.contains(document.activeElement))) { stale = true; continue; }
      from.replaceWith(to.cloneNode(true));
    }
    for (const key of ["agent", "project", "branch"]) old.dataset[key] = row.dataset[key];
    if (old.className !== row.className) old.className = row.className;
  };
  // What the list has and the server has not any more is gone: the fresh rows are the first ones.
  const drop = (fresh, whole) => {
    const is = new Set(fresh.map((r) => r.dataset.id)); const oldest = fresh.length ? time(fresh.at(-1)) : "";
    for (const r of $$(".row", list)) if (!is.has(r.dataset.id) && (whole || time(r) > oldest)) r.remove();
  };
  const put = (body) => {
    const fresh = $$(".row", body);
    for (const [i, r] of fresh.entries()) { const old = rowOf(r.dataset.id); if (old) refresh(old, r); const row = old ?? r; const at = $$(".row", list)[i]; if (at !== row) { if (at) at.before(row); else list.prepend(row); } }
    waiting = undefined; $("#fresh").hidden = true;
  };
  const update = soon(400, async () => {
    const body = await fetchPart(location.href); const part = $("#list", body); if (!part) return;
    marks(part); stale = false;
    const fresh = $$(".row", part);
    drop(fresh, !$(".more", part));
    const moved = fresh.some((r, i) => $$(".row", list)[i]?.dataset.id !== r.dataset.id);
    if (moved && (list.matches(":hover") || list.contains(document.activeElement))) {
      let n = 0;
      for (const r of fresh) { const old = rowOf(r.dataset.id); if (old) refresh(old, r); else n++; }
      waiting = part; const pill = $("#fresh"); pill.textContent = n ? `${n} new` : "New order"; pill.hidden = false;
    } else put(part);
    if (!waiting) empty(body);
    costs(part);
    names();
  });
  // Costs come without an event.
  const costs = (part) => { clearTimeout(later); if (part.dataset.pending !== undefined) later = setTimeout(update, 5000); };
  costs(list);
  // Rows are read again as far as the list goes: a row only moves up.
  const erased = soon(400, async () => {
    const oldest = $$(".row", list).map(time).sort()[0] ?? "";
    for (let at = location.href; at;) {
      const body = await fetchPart(at); const rows = $$(".row", body);
      let more = rows.length > 0 && time(rows.at(-1)) > oldest;
      for (const r of rows) { const old = rowOf(r.dataset.id); if (old) { refresh(old, r); more = true; } }
      at = more ? $(".more", body)?.dataset.next : undefined;
    }
  });
  $("#fresh").addEventListener("click", () => { if (waiting) put(waiting); scrollTo(0, 0); });
  list.addEventListener("pointerleave", () => { if (stale) update(); });
  listen((events) => { if (events.some((e) => /^(thread|context|branch|reconnected)/.test(e.kind))) update(); if (erases(events)) erased(); });
}

if (view === "conversation") conversation();
function toEnd() { const c = $(".conv"); if (!c) { scrollTo(0, document.body.scrollHeight); return; } const win = $(".win"); if (Number(win.dataset.to) < Number(c.dataset.length)) { location.href = c.dataset.in ? "?in=" + encodeURIComponent(c.dataset.in) : location.pathname; return; } scrollTo(0, document.documentElement.scrollHeight); }

if (view === "graph") {
  const form = $(".compare");
  addEventListener("change", (e) => { if (!e.target.matches(".pick")) return; const picked = $$(".pick:checked"); if (picked.length > 2) picked.find((p) => p !== e.target).checked = false; const two = $$(".pick:checked").map((p) => p.closest("[data-span]").dataset.span); form.a.value = two[0] ?? ""; form.b.value = two[1] ?? ""; $("button", form).disabled = two.length !== 2; });
  const page = $(".graphpage"); const thread = page.dataset.thread;
  let contexts = new Set(page.dataset.contexts.split(" ").filter(Boolean));
  const update = soon(500, async () => {
    let body;
    try { body = await fetchPart(location.href); } catch (e) { if (e.status === 404) lasting("deleted"); throw e; }
    contexts = new Set($(".graphpage", body).dataset.contexts.split(" ").filter(Boolean));
    const now = $(".graph", page), fresh = $(".graph", body);
    if (now && fresh && now.isEqualNode(fresh)) { note(""); return; }
    if ($(".pick:checked") || now?.contains(document.activeElement)) { note("changed", 0); return; }
    if (now && fresh) now.replaceWith(fresh); else location.reload();
    note("");
  });
  const concerns = (e) => e.kind === "reconnected" || e.thread === thread && /^(thread|branch|checkpoint|context)/.test(e.kind) || /^context/.test(e.kind) && (!contexts.size || contexts.has(e.context));
  listen((events) => { if (erases(events)) location.reload(); else if (events.some(concerns)) update(); });
} else if (view === "usage") {
  const update = soon(5000, async () => {
    const body = await fetchPart(location.href);
    const main = $("#main"); const focus = main.contains(document.activeElement) ? document.activeElement.getAttribute("href") : ""; const wide = $$(".days", main).map((d) => d.scrollLeft);
    main.replaceChildren(...body.childNodes);
    for (const [i, d] of $$(".days", main).entries()) d.scrollLeft = wide[i] ?? d.scrollWidth;
    if (focus) $$("a", main).find((a) => a.getAttribute("href") === focus)?.focus({ preventScroll: true });
  });
  listen((events, lost) => { if (lost || events.some((e) => /^(thread|context)/.test(e.kind))) update(); });
} else if (view !== "home" && view !== "conversation") listen((events) => { if (erases(events) && view !== "edit") location.reload(); }); // what is being entered stays
