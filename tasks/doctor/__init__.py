"""Checks of security and configuration: `optstream doctor`."""

from tasks.doctor.examination import examine, unusable
from tasks.doctor.finding import Finding, Severity, doctor_document

__all__ = ["Finding", "Severity", "doctor_document", "examine", "unusable"]
