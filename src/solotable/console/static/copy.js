// Copy buttons: shown only where scripts run, so that no button does nothing.
for (const button of document.querySelectorAll(".copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.closest(".code").querySelector("pre").innerText);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
for (const field of document.querySelectorAll("[data-submit]")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}
document.querySelector(".nav-in [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
const toast = document.querySelector(".toast");
if (toast) setTimeout(() => toast.remove(), 6000);
