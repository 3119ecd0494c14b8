"""An enablement portal on four tables: content, notifications, subscriptions and events."""
