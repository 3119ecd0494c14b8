// The form of an item: mark what changed, and warn before leaving with unsaved edits.
const form = document.getElementById("edit");
let dirty = false;
form?.addEventListener("input", (event) => {
  dirty = true;
  event.target.closest("[data-attr]")?.classList.add("changed");
});
form?.addEventListener("submit", () => { dirty = false; });
window.addEventListener("beforeunload", (event) => { if (dirty) event.preventDefault(); });
document.querySelector("[aria-invalid=true]")?.focus();
