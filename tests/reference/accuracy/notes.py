"""The words of docs/accuracy.md."""

TEXT = """# Accuracy
{formulas} {torch} {table} {notes} {calls} {close} {near}
"""

NOTES = ""
