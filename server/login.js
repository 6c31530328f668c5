"use strict";
const code = location.hash.slice(1);
// Neither the history nor a reload has the code.
history.replaceState(null, "", location.pathname);
if (code) {
  const state = document.getElementById("state");
  const instead = state.textContent;
  state.textContent = "Opening …";
  fetch("/login", { method: "POST", headers: { "Content-Type": "text/plain" }, body: code }).then(
    (answer) => {
      if (answer.ok) location.replace("/");
      else state.textContent = "This link has been used, or is older than a minute. Get another one:";
    },
    () => { state.textContent = "The server cannot be reached. " + instead; },
  );
}
