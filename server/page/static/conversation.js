"use strict";
// A conversation: windows that grow, what is new, subagents in place.
function conversation() {
  const conv = $(".conv"); const win = $(".win"); const most = 400; const pill = $("#new");
  const thread = conv.dataset.thread;
  // see notes that what has come so far was seen, for the list.
  const see = () => { if (document.hidden) return; const seen = store.get("seen") ?? {}; seen[thread] = new Date().toISOString().slice(0, 19) + "Z"; store.set("seen", Object.fromEntries(Object.entries(seen).sort((a, b) => a[1] < b[1] ? 1 : -1).slice(0, 2000))); };
  see(); document.addEventListener("visibilitychange", see); addEventListener("pagehide", see);
  const own = (within = win) => [...within.children].filter((c) => c.matches(".m"));
  const number = (key) => Number(win.dataset[key]);
  const address = (query) => { const q = new URLSearchParams(query); if (conv.dataset.in) q.set("in", conv.dataset.in); return location.pathname + "?" + q; };
  // The message that is first on the screen stays where it is, whatever is added above it or taken away.
  function still(change) {
    const first = own().find((m) => m.getBoundingClientRect().bottom > 100);
    const was = first?.getBoundingClientRect().top;
    change();
    if (first?.isConnected) scrollBy({ top: first.getBoundingClientRect().top - was, behavior: "instant" });
  }
  // The prompts of the whole history, by position. Those on the page come from its messages, the others are fetched once.
  let asked = new Map(), cut = false; // earlier ones are not listed
  function prompts() {
    const index = $("#prompts"); if (!index) return;
    for (const at of asked.keys()) if (at >= number("from") && at <= number("to")) asked.delete(at);
    for (const m of own()) { const at = Number(m.dataset.pos); if (m.dataset.prompt && !asked.has(at)) asked.set(at, { id: m.id, text: m.dataset.prompt }); }
    index.replaceChildren(...[...asked.keys()].sort((a, b) => a - b).map((at) => { const li = document.createElement("li"), a = document.createElement("a"), b = document.createElement("bdi"); a.href = at >= number("from") && at <= number("to") ? "#" + asked.get(at).id : address({ at }) + "#m" + at; a.dataset.pos = at; b.textContent = asked.get(at).text; a.append(b); li.append(a); return li; }));
    if (cut) { const li = document.createElement("li"); li.className = "note"; li.textContent = "Earlier prompts are not listed."; index.prepend(li); }
    spy();
  }
  const elsewhere = soon(200, async () => {
    if (gone || !$(".side")?.offsetParent || number("from") <= 1 && number("to") >= Number(conv.dataset.length)) return;
    const u = new URL(address({}), location.href); u.pathname += "/prompts";
    const list = $(".prompts", await fetchPart(u)); if (!list) return;
    asked = new Map($$("li", list).map((li) => [Number(li.dataset.pos), { id: "m" + li.dataset.pos, text: li.textContent }]));
    cut = list.dataset.earlier !== undefined;
    prompts();
    if (list.dataset.rest !== undefined) elsewhere();
  });
  const grown = soon(2000, async () => elsewhere());
  const edge = (up) => $(up ? ".edge.up" : ".edge.down", win);
  const last = () => own().at(-1);
  // windowOf fetches a window. It fails if the reader has gone to another part of the history meanwhile.
  let jumps = 0;
  const windowOf = async (query) => { const was = jumps; const body = $(".win", await fetchPart(address(query))); if (was !== jumps) throw new Error("left"); return body; };
  async function earlier() {
    const body = await windowOf({ to: number("from") - 1 });
    still(() => {
      edge(true)?.remove();
      const first = own()[0]; const more = [...body.children].filter((c) => c.matches(".edge.up, .m"));
      if (first) first.before(...more); else win.append(...more);
      win.dataset.from = body.dataset.from;
      const extra = own().slice(most);
      if (extra.length) { win.dataset.to = Number(extra[0].dataset.pos) - 1; for (const m of extra) m.remove(); if (!edge(false)) win.append(later()); }
    });
    prompts(); watch();
  }
  function later() { const p = document.createElement("p"), a = document.createElement("a"); p.className = "edge down"; a.textContent = "later messages"; a.href = address({ at: number("to") }) ; p.append(a); return p; }
  // moved says that what is shown is not the history any more. It is loaded again, but not while somebody enters something.
  let gone = false;
  const reload = () => { if (gone) return; gone = true; if (!$("dialog[open], .acts[open]") && !document.activeElement.matches("input, textarea, select")) { location.reload(); return; } lasting("moved"); pill.textContent = "The branch was moved: show it"; pill.hidden = false; };
  const isMoved = (body) => body.dataset.context !== win.dataset.context || Number(body.dataset.length) < Number(conv.dataset.length) || own(body).some((m) => (document.getElementById(m.id)?.dataset.id ?? m.dataset.id) !== m.dataset.id);
  // What a reader did to a message: what is open in it, and that it is the one of the address.
  const plain = (m) => { const is = m.cloneNode(true); is.classList.remove("cont", "at"); for (const d of $$("details", is)) d.open = false; for (const t of $$(".text.all", is)) t.classList.remove("all"); for (const i of $$(".insider", is)) i.remove(); return is; };
  const keep = (old, m) => {
    for (const c of ["cont", "at"]) m.classList.toggle(c, old.classList.contains(c));
    for (const what of ["details", ".text.long"]) { const was = $$(what, old); for (const [i, is] of $$(what, m).entries()) { if (was[i]?.open) is.open = true; if (was[i]?.classList.contains("all")) is.classList.add("all"); } }
    for (const is of $$(".inside", m)) { const was = $$(".inside", old).find((d) => d.dataset.src === is.dataset.src); if (was?.open) { $(":scope > summary", was).replaceWith($(":scope > summary", is)); is.replaceWith(was); } }
    const focus = old.contains(document.activeElement); old.replaceWith(m); if (focus) m.focus({ preventScroll: true });
  };
  const changes = (old, m) => !plain(old).isEqualNode(plain(m));
  // headline shows another title, and in the form too unless somebody has entered one.
  const headline = (body) => {
    const title = body.dataset.title, input = $(".acts [name=title]");
    if (conv.dataset.title === title && conv.dataset.was === body.dataset.was) return;
    conv.dataset.title = title; conv.dataset.was = body.dataset.was;
    $("h1 bdi").textContent = title; document.title = title + " · Lineage";
    if (input && input.value === input.defaultValue) { input.defaultValue = body.dataset.given; $(".acts [name=was]").value = body.dataset.was; }
  };
  // The cost comes without an event, after what cost it.
  let counted;
  const costs = (body) => {
    const cost = $(".headline .cost"); cost.textContent = body.dataset.cost; cost.hidden = !body.dataset.cost;
    clearTimeout(counted); if (body.dataset.pending !== undefined) counted = setTimeout(update, 5000);
  };
  const tip = (body) => { for (const key of ["to", "length", "tip"]) win.dataset[key] = body.dataset[key]; conv.dataset.length = body.dataset.length; for (const input of $$(".acts [name=tip]")) input.value = body.dataset.tip; for (const input of $$("input.here")) input.max = body.dataset.length; };
  // add shows the messages from a position on. Those that are there are replaced if they changed.
  function add(body) {
    still(() => {
      edge(false)?.remove(); $(".empty", win)?.remove();
      for (const m of own(body)) { const old = document.getElementById(m.id); if (!old) win.append(m); else if (changes(old, m)) keep(old, m); }
      const down = $(".edge.down", body); if (down) win.append(down);
      tip(body);
      const extra = own().slice(0, -most);
      for (const m of extra) m.remove();
      if (extra.length) { win.dataset.from = own()[0].dataset.pos; if (!edge(true)) { const p = document.createElement("p"), a = document.createElement("a"); p.className = "edge up"; a.textContent = "earlier messages"; a.href = address({ at: number("from") }); p.append(a); win.prepend(p); } }
    });
    if (atEnd()) { unseen = 0; pill.hidden = true; }
    prompts(); watch(); map.draw();
    if (following) toEnd();
  }
  // from is where new messages begin: at the first call that has no result yet, if that is near the end.
  const from = () => { const open = own().slice(-20).find((m) => m.classList.contains("open")); return Math.max(1, Number((open ?? last())?.dataset.pos ?? 1)); };
  function watch() { for (const up of [true, false]) { const e = edge(up); if (e && !e.dataset.watched) { e.dataset.watched = "1"; e.addEventListener("reached", async () => { try { if (up) await earlier(); else add(await windowOf({ from: number("to") + 1 })); } catch { /* its link remains */ } }); edges.observe(e); } } }
  const atEnd = () => number("to") >= number("length");
  const near = () => following || document.documentElement.scrollHeight - innerHeight - scrollY < innerHeight;
  let unseen = 0;
  const count = () => { pill.textContent = `${unseen} new`; pill.hidden = false; };
  const update = soon(60, async () => {
    if (gone) return;
    let body;
    try { body = await windowOf({ from: from() }); } catch (e) { if (e.status === 404) { gone = true; lasting("deleted"); conv.classList.add("gone"); pill.hidden = true; } throw e; }
    if (isMoved(body)) { reload(); return; }
    headline(body); costs(body);
    const length = Number(body.dataset.length); const known = Number(conv.dataset.length);
    if (atEnd() && near()) { add(body); unseen = length - number("to"); if (unseen) count(); return; }
    unseen += Math.max(0, length - known); conv.dataset.length = length;
    if (unseen) count();
    if (length > known) grown();
  });
  // Everything that is shown is read again.
  const fresh = soon(60, async () => {
    for (let at = number("from"); !gone && at <= number("to");) {
      const body = await windowOf({ from: at });
      if (isMoved(body)) { reload(); return; }
      headline(body);
      still(() => { for (const m of own(body)) { const old = document.getElementById(m.id); if (old && changes(old, m)) keep(old, m); } });
      at = Math.max(at, Number(body.dataset.to)) + 1;
    }
    elsewhere(); prompts(); await beside();
    if ($("#exact[open], #where[open]")) showAgain();
  });
  pill.addEventListener("click", async () => { if (gone) { location.reload(); return; } pill.hidden = true; unseen = 0; if (!atEnd()) { location.href = conv.dataset.in ? "?in=" + encodeURIComponent(conv.dataset.in) : location.pathname; return; } add(await windowOf({ from: from() })); last()?.scrollIntoView({ block: "end" }); });
  addEventListener("scroll", () => { if (!pill.hidden && atEnd() && near()) update(); }, { passive: true });
  // The prompt that the screen is at is marked in the list, which scrolls to it.
  const mark = (top) => {
    const list = $("#prompts"); let now;
    for (const a of $$("a", list)) if (a.classList.toggle("here", !!top && a.hash === "#" + top.id)) now = a;
    if (now) { const box = list.getBoundingClientRect(), is = now.getBoundingClientRect(); if (is.top < box.top) list.scrollTop -= box.top - is.top; else if (is.bottom > box.bottom) list.scrollTop += is.bottom - box.bottom; }
  };
  const spy = () => { const top = own().filter((m) => m.dataset.prompt).findLast((m) => m.getBoundingClientRect().top < 160); mark(top); const at = here(); row(at); if (at && !$(".acts[open]")) for (const input of $$(".acts input.here")) input.value = at.dataset.pos; map.show(); };
  let ticking = false;
  addEventListener("scroll", () => { if (!ticking) { ticking = true; requestAnimationFrame(() => { ticking = false; spy(); }); } }, { passive: true });
  // The graph beside the history: the row of what is on the screen is marked, and a row of this history is gone to in place.
  const nodes = (of = "") => $$("#beside .node" + of);
  const row = (at) => { const now = at && nodes(".on").findLast((n) => Number(n.dataset.pos) <= Number(at.dataset.pos)); for (const n of nodes()) n.classList.toggle("here", n === now); };
  const beside = async () => {
    const side = $("#beside"); if (!side) return;
    const u = new URL(address({ part: "beside", at: here()?.dataset.pos ?? 1 }), location.href); u.pathname += "/graph";
    const body = await fetchPart(u); const fresh = $("#beside", body); if (!fresh) return;
    const old = $(".graph", side)?.scrollTop ?? 0; const focus = side.contains(document.activeElement) ? document.activeElement.getAttribute("href") : "";
    side.replaceWith(fresh); const box = $(".graph", fresh); if (box) box.scrollTop = old;
    if (focus) $$("a", fresh).find((a) => a.getAttribute("href") === focus)?.focus({ preventScroll: true });
    $("#subagents").replaceWith($("#subagents", body));
    row(here());
  };
  const graph = soon(1000, async () => { if ($(".side")?.offsetParent) await beside(); }); // else there is no room for it
  $(".side")?.addEventListener("click", (e) => { const n = e.target.closest("#beside .on, #prompts a"); if (!n || e.ctrlKey || e.metaKey || e.shiftKey || !e.target.closest("a") || n.hash && document.getElementById(n.hash.slice(1))) return; e.preventDefault(); goTo(Number(n.dataset.pos)); });
  const anchor = location.hash && document.getElementById(location.hash.slice(1));
  if (anchor) { anchor.classList.add("at"); anchor.scrollIntoView(); } else if (!new URLSearchParams(location.search).has("at")) scrollTo(0, document.documentElement.scrollHeight);
  // Another part of the history, around a position or at a prompt. Its address is that of the page from then on.
  async function jump(query) {
    const mine = ++jumps;
    const body = $(".win", await fetchPart(address(query)));
    if (mine !== jumps) return;
    if (isMoved(body)) { reload(); return; }
    const to = Number(body.dataset.at ?? query.at);
    win.replaceChildren(...body.childNodes);
    win.dataset.from = body.dataset.from; tip(body);
    history.replaceState(null, "", address({ at: to }));
    prompts(); watch();
    bring(to);
  }
  // bring brings a position to the top of the screen.
  function bring(to, focus = true) {
    const m = own().find((m) => Number(m.dataset.pos) >= to) ?? last();
    if (!m) return;
    m.scrollIntoView({ block: "start", behavior: "instant" });
    if (focus) m.focus({ preventScroll: true });
    spy();
  }
  const goTo = (to) => { if (to >= number("from") && to <= number("to")) { bring(to, false); return Promise.resolve(); } return jump({ at: to }); };
  // The next or previous prompt, wherever in the history it is.
  const prompt = async (step) => {
    const at = document.activeElement.closest?.(".win > .m") ?? own().findLast((m) => m.getBoundingClientRect().top < 118) ?? own()[0];
    const now = Number(at?.dataset.pos ?? 1);
    const known = own().filter((m) => m.dataset.prompt && (step > 0 ? Number(m.dataset.pos) > now : Number(m.dataset.pos) < now));
    const m = step > 0 ? known[0] : known.at(-1);
    if (m) { m.focus({ preventScroll: true }); m.scrollIntoView({ block: "start" }); return; }
    if (step > 0 ? atEnd() : number("from") <= 1) return;
    try { await jump({ at: now, prompt: step > 0 ? "next" : "previous" }); } catch { note("not found: the server did not answer"); }
  };
  keys.n = () => prompt(1); keys.p = () => prompt(-1);
  const map = minimap({ conv, address, own, goTo, length: () => Number(conv.dataset.length) });
  tools({ conv, win, own });
  // A subagent that is opened is loaded, and again when it goes on.
  const load = async (d) => { const body = $(".insider", await fetchPart(d.dataset.src)); const was = $(".insider", d); if (was) was.replaceWith(body); else d.append(body); };
  const open = async (d) => { try { await load(d); } catch { note("the subagent was not loaded"); } };
  addEventListener("toggle", (e) => { if (e.target.matches?.("details.inside") && e.target.open && !$(".insider", e.target)) open(e.target); }, true);
  const inside = soon(400, async () => { for (const d of $$("details.inside[open]", win)) if (d.dataset.stale) { delete d.dataset.stale; try { await load(d); } catch (e) { note("the subagent was not loaded"); if (!(e.status < 500)) { d.dataset.stale = "1"; throw e; } } } });
  spy(); setTimeout(watch, 100); map.draw(); elsewhere(); costs(win);
  listen((events, lost) => {
    if (lost || erases(events)) fresh();
    for (const d of $$("details.inside", win)) if (events.some((e) => e.kind === "reconnected" || e.kind === "content erased" || e.context && d.dataset.src.includes(e.context))) { if (d.open) { d.dataset.stale = "1"; inside(); } else $(".insider", d)?.remove(); }
    if (events.some((e) => e.thread === thread || e.kind === "reconnected" || e.context && nodes().some((n) => n.dataset.contexts.includes(e.context)))) graph();
    if (events.some((e) => e.thread === thread || e.context === conv.dataset.context || e.kind === "reconnected")) update();
  });
}

