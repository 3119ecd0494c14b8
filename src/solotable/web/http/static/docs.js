// Starts Swagger UI with the options of the page. The validator of swagger.io would be another host.
const page = document.getElementById("swagger-ui");
const options = JSON.parse(page.dataset.options);
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();
SwaggerUIBundle({
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset].filter(Boolean),
  ...options,
  dom_id: "#swagger-ui",
  layout: "BaseLayout",
  validatorUrl: null,
});
