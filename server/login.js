"use strict";
const wanted = "lineage-wanted"; // the address that this tab asked for
const entered = new BroadcastChannel("lineage-login");
const state = document.getElementById("state");
if (location.pathname === "/login") {
  const code = location.hash.slice(1);
  // Neither the history nor a reload has the code.
  history.replaceState(null, "", location.pathname);
  if (code) login(code);
} else {
  // The page that was asked for, which needs a session. It is shown as soon as another tab, or this one, has begun one.
  sessionStorage.setItem(wanted, location.href);
  entered.onmessage = () => location.reload();
}
async function login(code) {
  const instead = state.textContent;
  state.textContent = "Opening …";
  let answer;
  try {
    answer = await fetch("/login", { method: "POST", headers: { "Content-Type": "text/plain" }, body: code });
  } catch {
    state.textContent = "The server cannot be reached. " + instead;
    return;
  }
  if (!answer.ok) {
    state.textContent = "This link has been used, or is older than a minute. Get another one:";
    return;
  }
  entered.postMessage("");
  const to = new URL(sessionStorage.getItem(wanted) ?? "/", location.href);
  sessionStorage.removeItem(wanted);
  location.replace(to.origin === location.origin ? to.href : "/");
}
