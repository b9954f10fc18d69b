"""Results as one file of HTML each, which works offline: tables, figures and a script that asks no network."""
