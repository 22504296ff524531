"""What commands print: tables, lines and documents for a terminal."""
