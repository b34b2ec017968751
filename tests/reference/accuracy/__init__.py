"""Largest errors of the formulas, in ulps, against exact arithmetic."""
