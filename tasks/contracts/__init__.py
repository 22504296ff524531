"""What suites find, kept in the trusted zone: Great Expectations' validation results, and their pages."""
