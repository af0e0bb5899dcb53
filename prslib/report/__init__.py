"""Turn runs into tables, sentences, verdicts and figures; notebooks share this code."""
