"""The operators' web application: routes and the loop that looks; what is shown is `tasks.ui`."""
