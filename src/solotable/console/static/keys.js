// The keyboard: single keys work while no field has the focus. Each one is also a visible control.
const rows = [...document.querySelectorAll("[data-row]")];
const sections = { h: "/", f: "facets", c: "collections", p: "patterns", t: "heat", m: "migrations" };
let chosen = -1;
let afterG = false;

function go(target) {
  if (target === "/") location.href = "/";
  else document.querySelector(`[data-go="${target}"]`)?.click();
}
function choose(step) {
  if (!rows.length) return;
  rows[chosen]?.classList.remove("sel");
  chosen = Math.min(rows.length - 1, Math.max(0, chosen + step));
  rows[chosen].classList.add("sel");
  const link = rows[chosen].querySelector("a");
  link?.focus();
  rows[chosen].scrollIntoView({ block: "nearest" });
}
const actions = {
  "/": () => document.getElementById("jump").focus(),
  "?": () => { location.href = "/-/shortcuts"; },
  j: () => choose(1),
  k: () => choose(chosen < 0 ? 1 : -1),
  "[": () => document.querySelector("[data-first]")?.click(),
  "]": () => document.querySelector("[data-next]")?.click(),
  e: () => document.querySelector("[data-edit]")?.focus(),
  t: () => document.getElementById("theme")?.click(),
  y: () => rows[chosen] && navigator.clipboard?.writeText(rows[chosen].dataset.key),
};
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select, [contenteditable]");
  if ((event.ctrlKey || event.metaKey) && event.key === "s") {
    const save = document.querySelector("[data-save]");
    if (save) { event.preventDefault(); save.click(); }
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    document.querySelector("[data-run]")?.click();
    return;
  }
  if (event.key === "Escape" && typing) { event.target.blur(); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (afterG) {
    afterG = false;
    if (sections[event.key]) { event.preventDefault(); go(sections[event.key]); }
    return;
  }
  if (event.key === "g") { afterG = true; return; }
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
});
