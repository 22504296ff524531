"""What OptStream is compared with: programs that do less, or do it plainly."""
