"""What `optstream ui` shows: views as frozen values, made of facts that others gathered, and their pages."""
