"use strict";
// What can be done with a message: a bar at the one that the pointer is on, or that has the focus.
function tools({ conv, win, own }) {
  const bar = $("#tools");
  if (!bar) return;
  let at; // the message
  const put = (m) => {
    if (!m || m === at && !bar.hidden) return;
    at = m; bar.hidden = false;
    bar.style.top = m.offsetTop + "px";
    for (const a of $$("a[data-to]", bar)) { const u = new URL(a.dataset.to, location.href); if (conv.dataset.in) u.searchParams.set("in", conv.dataset.in); u.searchParams.set("at", m.dataset.pos); a.href = u.pathname + u.search; }
  };
  const ownOf = (node) => { const m = node.closest?.(".win > .m"); return m?.dataset.id ? m : undefined; };
  win.addEventListener("pointerover", (e) => put(ownOf(e.target)));
  win.addEventListener("focusin", (e) => put(ownOf(e.target)));
  // The bar goes with its message, and with the pointer.
  $("#history").addEventListener("pointerleave", () => { if (!bar.contains(document.activeElement)) bar.hidden = true; });
  new ResizeObserver(() => { if (at?.isConnected) bar.style.top = at.offsetTop + "px"; else bar.hidden = true; }).observe(win);
  const dialog = $("#act");
  bar.addEventListener("click", (e) => {
    const act = e.target.closest("[data-act]")?.dataset.act;
    if (!act || !at) return;
    if (act === "exact") exact(at); else if (act === "where") others(at); else if (act === "link") link(at);
    else {
      const form = $(`.acts form[action$="/${act}"]`).cloneNode(true);
      $("[name=at]", form).value = at.dataset.pos;
      $("div", dialog).replaceChildren(form);
      dialog.showModal(); $("[name=name]", form).focus();
    }
  });
  // A key does what the bar does, to the message that has the focus or is first on the screen.
  const press = (what) => () => { const m = here(); if (!m || !ownOf(m)) return; put(ownOf(m)); $(what, bar)?.click(); };
  keys.b = press("[data-act=fork]"); keys.c = press("[data-act=checkpoint]"); keys.r = press("[data-to$='/edit']");
}

// others shows where else the text of a message is.
async function others(m) {
  const thread = $("[data-thread]")?.dataset.thread;
  if (!m?.dataset.id || !thread) return;
  showAgain = () => others(m);
  try { $("#where > div").replaceChildren(...(await fetchPart(`/t/${thread}/where/${m.dataset.id}`)).childNodes); if (!$("#where").open) $("#where").showModal(); } catch { note("not found: the server did not answer"); }
}

// link copies the address of a message.
async function link(m) {
  if (!m) return;
  const u = new URL(location.href); u.searchParams.set("at", m.dataset.pos); u.hash = m.id; u.searchParams.delete("did");
  try { await navigator.clipboard.writeText(u.href); note("link copied"); } catch { location.hash = m.id; }
}
