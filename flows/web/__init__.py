"""The operators' web application: routes and the loop that looks; `tasks.pages` makes the pages."""
