// Update the inbox when a message arrives. Without this script, loading the page again does the same.
"use strict";
(() => {
  const region = () => document.getElementById("live");
  const events = new EventSource(region().dataset.stream);
  events.addEventListener("inbox", async (event) => {
    if (event.data === region().dataset.mark) return;
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    // Signed out: the browser shows the sign-in page.
    if (response.redirected || !response.ok) return location.reload();
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const focused = document.activeElement?.closest("form")?.getAttribute("action");
    region().replaceWith(document.adoptNode(fresh.getElementById("live")));
    document.querySelector(".app nav").replaceWith(document.adoptNode(fresh.querySelector(".app nav")));
    document.getElementById("news").textContent = "The inbox was updated.";
    if (focused) document.querySelector(`form[action="${CSS.escape(focused)}"] button`)?.focus();
  });
  addEventListener("pagehide", () => events.close());
})();
