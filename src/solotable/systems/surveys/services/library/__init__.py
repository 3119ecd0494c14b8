"""The library of a tenant: templates of sections, elements and components, and phrases."""
