"use strict";
// Shows the conversations that have all words of the search in their title, agent, project or prompts.
const prompts = JSON.parse(document.getElementById("prompts").textContent);
const rows = [...document.querySelectorAll(".rows > li")].map((li, i) => ({ li, link: li.querySelector("a"), text: li.textContent.toLowerCase(), prompts: prompts[i] ?? [] }));
const input = document.getElementById("q");
function find() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let n = 0;
  for (const row of rows) {
    row.li.querySelector("ul")?.remove();
    const said = row.prompts.map((p) => p[1].toLowerCase());
    const has = words.every((w) => row.text.includes(w) || said.some((s) => s.includes(w)));
    row.li.hidden = !has;
    if (!has) continue;
    n++;
    const found = words.length ? row.prompts.filter((p, i) => words.some((w) => said[i].includes(w))).slice(0, 5) : [];
    if (!found.length) continue;
    const list = document.createElement("ul");
    for (const [anchor, start] of found) {
      const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("bdi");
      link.href = row.link.getAttribute("href") + "#" + anchor; text.textContent = start; link.append(text); item.append(link); list.append(item);
    }
    row.li.append(list);
  }
  for (const section of document.querySelectorAll(".month")) section.hidden = !section.querySelector(".rows > li:not([hidden])");
  document.getElementById("n").textContent = words.length ? n + " of " + rows.length : rows.length + " conversations";
}
let timer;
input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(find, 120); });
addEventListener("keydown", (e) => { if (e.key === "/" && document.activeElement !== input) { e.preventDefault(); input.focus(); input.select(); } });
document.querySelector(".find").hidden = false;
find();
