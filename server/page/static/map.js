"use strict";
// The map of a conversation: what its messages are, and where the screen is. It scrolls as a scroll bar does.
function minimap({ conv, address, own, goTo, length }) {
  const map = $("#map");
  const none = { draw() {}, show() {} };
  if (!map || length() < 30) return none;
  const thumb = $(".thumb", map);
  const ofMap = (path) => { const u = new URL(address({}), location.href); u.pathname += path; return u; };
  let shown = [1, 1];
  function show() {
    const seen = own().filter((m) => { const r = m.getBoundingClientRect(); return r.bottom > 110 && r.top < innerHeight; });
    if (!seen.length) return;
    shown = [Number(seen[0].dataset.pos), Number(seen.at(-1).dataset.pos)];
    const n = Math.max(length(), 1);
    thumb.style.top = (shown[0] - 1) / n * 100 + "%";
    thumb.style.height = Math.max((shown[1] - shown[0] + 1) / n * 100, 0.6) + "%";
    map.setAttribute("aria-valuenow", shown[0]); map.setAttribute("aria-valuemax", n);
    map.setAttribute("aria-valuetext", `message ${shown[0]} of ${n}`);
  }
  // The picture is drawn again some time after the history has grown, and at once while it is not whole.
  const picture = async () => {
    const body = await fetchPart(ofMap("/map")); const svg = $("svg", body);
    if (!svg) return;
    const was = $("svg", map); if (was) was.replaceWith(svg); else map.prepend(svg);
    map.hidden = false; show();
    if (svg.dataset.rest !== undefined) setTimeout(first, 200);
  };
  const first = soon(1, picture); const again = soon(5000, picture);
  let drawn = false;
  const positionOf = (e) => { const r = map.getBoundingClientRect(); return Math.min(length(), Math.max(1, 1 + Math.floor((e.clientY - r.top) / r.height * length()))); };
  let going = Promise.resolve(); let want = 0;
  const go = (to) => { want = to; going = going.then(async () => { if (want !== to) return; try { await goTo(to); } catch { note("not found: the server did not answer"); } }); };
  map.addEventListener("pointerdown", (e) => { if (e.button !== 0) return; e.preventDefault(); map.setPointerCapture(e.pointerId); map.focus({ preventScroll: true }); go(positionOf(e)); });
  map.addEventListener("pointermove", (e) => { map.title = "message " + positionOf(e); if (map.hasPointerCapture(e.pointerId)) go(positionOf(e)); });
  map.addEventListener("keydown", (e) => {
    const page = Math.max(1, shown[1] - shown[0]);
    const to = { ArrowDown: shown[0] + 1, ArrowUp: shown[0] - 1, PageDown: shown[0] + page, PageUp: shown[0] - page, Home: 1, End: length() }[e.key];
    if (to === undefined) return;
    e.preventDefault(); go(Math.min(Math.max(to, 1), length()));
  });
  return { draw() { if (drawn) again(); else { drawn = true; first(); } }, show };
}
