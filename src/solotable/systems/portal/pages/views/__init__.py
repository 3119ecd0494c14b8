"""View models: what templates show, as records without behaviour."""
