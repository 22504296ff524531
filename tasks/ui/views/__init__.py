"""What each of the operators' pages shows, as frozen values made of a snapshot."""
